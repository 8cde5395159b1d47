"""A private plan inside coba: its own experiments report the loss that ``evaluate`` reports."""

import copy
import pickle
from dataclasses import replace

import coba
import numpy as np
import pytest

import discreet as dc
from adapter_plays import CONTEXTS, PLAN, PLANS, ROWS, SEED, TABLE, loss_of, rewards_of
from discreet.adapters.coba_learner import CobaLearner
from discreet.adapters.played_rows import played_order
from discreet.errors import InvalidInput, StateClaimed
from tolerances import EXACT

ORDER = played_order(SEED, ROWS)


class Rows:
    """An environment of coba: rows in the order of ``evaluate``, with the reward of each action."""

    params = {"env_type": "rows"}  # noqa: RUF012

    def __init__(self, rewards):
        self.rewards = rewards

    def read(self):
        for row in ORDER:
            rewards = self.rewards[row].tolist()
            yield {"context": tuple(CONTEXTS[row]), "actions": ["a", "b", "c"], "rewards": rewards}


def mean_reward(environment, *learners):
    result = coba.Experiment(environment, list(learners)).run(quiet=True)
    table = result.interactions.to_dicts()
    rewards = [line["reward"] for line in table]
    assert len(rewards) == ROWS * len(learners)
    return float(np.mean(rewards[:ROWS]))


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_coba_reports_the_loss_of_evaluate(plan):
    found = mean_reward([Rows(rewards_of(plan, TABLE))], CobaLearner(plan, seed=SEED))
    expected = dc.evaluate(plan, CONTEXTS, losses=TABLE, seed=SEED)
    assert loss_of(plan, found) == pytest.approx(expected.loss, abs=EXACT)
    assert abs(expected.loss - expected.uniform) > 1e-3  # it is not the loss of anything


def test_words_are_names_and_may_be_offered_in_part():
    plan = dc.Plan(actions=["none", "mail", "call"], features=dc.UnitBall(4), budget=PLAN.budget)
    learner = CobaLearner(plan)
    chosen = {learner.predict(CONTEXTS[row], ["call", "mail"])[0] for row in range(30)}
    assert chosen == {"call", "mail"}
    with pytest.raises(InvalidInput, match="actions must be the 3 of the plan"):
        learner.predict(CONTEXTS[0], ["call", "fax"])


def test_a_schema_reads_rows_in_its_order():
    columns = dc.Schema([dc.Number(f"c{place}", -1, 1) for place in range(4)])
    learner = CobaLearner(replace(PLAN, features=columns), seed=SEED)
    found = mean_reward([Rows(1.0 - TABLE)], learner)
    rows = [dict(zip(("c0", "c1", "c2", "c3"), map(float, row), strict=True)) for row in CONTEXTS]
    expected = dc.evaluate(replace(PLAN, features=columns), rows, losses=TABLE, seed=SEED)
    assert 1.0 - found == pytest.approx(expected.loss, abs=EXACT)
    with pytest.raises(InvalidInput, match="context must have 4 values"):
        learner.played.decide([0.5])


def test_it_is_copied_before_it_is_played_and_not_after():
    learner = CobaLearner(PLAN)
    assert pickle.loads(pickle.dumps(learner)).params == learner.params
    learner.predict(CONTEXTS[0], [1, 2, 3])
    with pytest.raises(StateClaimed, match="must not be copied"):
        copy.deepcopy(learner)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unit": "user"}, "unit 'decision'"),
        ({"feedback": "full", "policy": dc.Greedy()}, "feedback 'bandit'"),
        ({"outcome": dc.Loss(0, 5)}, "outcome must be Reward"),
        ({"horizon": None}, "horizon must be the number of rows"),
    ],
)
def test_plans_that_others_cannot_play_are_refused(change, said):
    with pytest.raises(InvalidInput, match=said):
        CobaLearner(replace(PLAN, **change), seed=SEED)


def test_what_is_no_reward_of_a_decision_is_refused_and_changes_nothing():
    learner = CobaLearner(PLAN)
    action, chance, keys = learner.predict(CONTEXTS[0], [1, 2, 3])
    with pytest.raises(InvalidInput, match="loss must be a number in"):
        learner.learn(CONTEXTS[0], action, 1.5, chance, **keys)
    with pytest.raises(InvalidInput, match="learn='on'"):
        learner.learn(CONTEXTS[0], action, 1.0, chance)
    learner.learn(CONTEXTS[0], action, 1.0, chance, **keys)
