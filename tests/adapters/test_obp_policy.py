"""A private plan as a policy of Open Bandit Pipeline, played as its simulators play."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import discreet as dc
from adapter_plays import CONTEXTS, PLAN, PLANS, ROWS, SEED, TABLE, loss_of, rewards_of
from discreet.adapters.obp_policy import ObpPolicy
from discreet.adapters.played_rows import played_order
from discreet.errors import InvalidInput
from tolerances import EXACT

ORDER = played_order(SEED, ROWS)


def played(policy, rewards, delay=0):
    """The loop of obp's online simulators; rewards may come rounds later."""
    waiting, got = [], []
    for row in ORDER:
        context = CONTEXTS[row].reshape(1, -1)
        action = policy.select_action(context)[0]
        got.append(rewards[row, action])
        waiting.append({"action": action, "reward": got[-1], "context": context})
        if len(waiting) > delay:
            policy.update_params(**waiting.pop(0))
    return float(np.mean(got))


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_it_has_the_loss_of_evaluate(plan):
    found = played(ObpPolicy(plan, seed=SEED), rewards_of(plan, TABLE))
    expected = dc.evaluate(plan, CONTEXTS, losses=TABLE, seed=SEED).loss
    assert loss_of(plan, found) == pytest.approx(expected, abs=EXACT)


def test_rewards_find_their_decisions_when_they_are_late():
    policy = ObpPolicy(replace(PLAN, horizon=None))
    played(policy, 1.0 - TABLE, delay=20)
    assert len(policy._waiting) == 20
    assert len(policy.played.learner.released.items) >= 5
    again, chosen = ObpPolicy(PLAN, seed=SEED), []
    for context in (CONTEXTS[:1], CONTEXTS[:1], CONTEXTS[1:2]):
        chosen.append((again.select_action(context)[0], 0.5, context))
    for each in reversed(chosen):
        again.update_params(*each)
    assert not again._waiting


def test_a_replay_that_answers_few_still_releases():
    """Slots without a reward are void once the window is over."""
    policy = ObpPolicy(replace(PLAN, horizon=None))
    policy.played._learner = dc.Learner(policy.played.plan, window=10)
    logged = np.random.default_rng(1).integers(3, size=ROWS)
    for row in range(ROWS):
        action = policy.select_action(CONTEXTS[row : row + 1])[0]
        if action == logged[row]:
            policy.update_params(action, 1.0 - TABLE[row, action], CONTEXTS[row : row + 1])
    assert len(policy.played.learner.released.items) >= 5
    assert policy.played.learner.ledger.spent().epsilon <= 4.0


def test_a_refused_reward_leaves_its_decision_waiting():
    policy = ObpPolicy(PLAN)
    action = policy.select_action(CONTEXTS[:1])[0]
    with pytest.raises(InvalidInput, match="loss must be a number in"):
        policy.update_params(action, 7.0, CONTEXTS[:1])
    policy.update_params(action, np.array([1.0]), CONTEXTS[:1])  # obp sends arrays of one
    assert not policy._waiting


@pytest.mark.torch  # obp needs torch
def test_obp_plays_it():
    """The real package: its type of policy, its replay, and its Monte Carlo value."""
    from obp import simulator
    from obp.policy import BaseContextualPolicy
    from obp.policy.policy_type import PolicyType

    policy = ObpPolicy(replace(PLAN, horizon=None))
    assert policy.policy_type == PolicyType.CONTEXTUAL
    attributes = set(BaseContextualPolicy.__dataclass_fields__)
    assert {name for name in attributes if not hasattr(policy, name)} == set()
    logged = np.random.default_rng(1).integers(3, size=ROWS)
    rewards = 1.0 - TABLE
    feedback = {
        "n_rounds": ROWS,
        "n_actions": 3,
        "context": CONTEXTS[ORDER],
        "action": logged,
        "reward": rewards[ORDER, logged],
        "position": np.zeros(ROWS, dtype=int),
        "pscore": np.full(ROWS, 1 / 3),
        "expected_reward": rewards[ORDER],
    }
    if hasattr(simulator, "run_bandit_simulation"):
        chances = simulator.run_bandit_simulation(feedback, policy)
        assert chances.shape == (ROWS, 3, 1)
        assert (chances.sum(axis=1) == 1.0).all()
    # The ground truth is the mean over the run of the expected reward of what was chosen. Rewards
    # are drawn in the order of rounds, so a counter says which round it is.
    rounds = SimpleNamespace(number=-1)

    def reward(_, action):
        rounds.number += 1
        return rewards[ORDER][rounds.number, action]

    found = simulator.calc_ground_truth_policy_value(
        feedback, reward, ObpPolicy(PLAN, seed=SEED), n_sim=1
    )
    expected = dc.evaluate(PLAN, CONTEXTS, losses=TABLE, seed=SEED).loss
    assert 1.0 - found == pytest.approx(expected, abs=EXACT)
