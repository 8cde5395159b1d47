"""``play``: a stack of runs is its single runs, and a run is the protocol round by round."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import discreet as dc
from catalogue import ACTIONS, DIMENSION, FEATURES, POLICIES, WIDTH, every_policy_stack
from discreet.batches.release_batch import fit_batch
from discreet.design.schedule import Schedule
from discreet.releases.released import Released
from discreet.simulate.played_batches import play, shuffle
from reference import confidence, inverse_gap, policy_optimisation, ridge
from reference import simulate as literal
from reference.design import scores

ROWS, SEEDS = 45, (5, 6)
BUDGETS = (dc.Budget.none(), dc.Budget(8.0, 1e-5), dc.Budget(1.0, 1e-5))


def stream(seed):
    """Features, labels and uniforms of a seed, in its order."""
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(ROWS, DIMENSION))
    labels = (contexts[:, 0] > 0).astype(int) + (contexts[:, 1] > 0.5)
    order, u = shuffle(seed, ROWS)
    return FEATURES.map(contexts)[order], labels[order], u


def plan_of(policy, oracle, budget, feedback="bandit"):
    return dc.Plan(
        n_actions=ACTIONS,
        features=FEATURES,
        policy=policy,
        oracle=oracle,
        budget=budget,
        feedback=feedback,
        first_batch=1,
        growth=2.0,
    )


def losses_of(plan, x, y, u, noise):
    released = Released(ACTIONS, Schedule(horizon=ROWS))
    parts = [
        np.asarray(batch.incurred)
        for batch in play(plan, released, x, y, u, partial(fit_batch, plan, noise))
    ]
    lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    spread = [np.broadcast_to(part, (*lead, part.shape[-1])) for part in parts]
    return np.concatenate(spread, axis=-1).astype(float)


class Stack:
    """Plans that share their structure, as ``play`` wants them."""

    def __init__(self, plans):
        self.played_policy = dc.stack([plan.policy for plan in plans])
        self.mechanism = dc.stack([plan.mechanism for plan in plans])
        self.event = self.mechanism.event
        self.feedback = plans[0].feedback
        self.loss_sums = self.guardrail_sums = None


ORACLES = [
    pytest.param(dc.Ridge(0.02), id="ridge"),
    pytest.param(dc.Ridge(0.02, mechanism="paper"), id="ridge-paper"),
    pytest.param(dc.Logistic(0.02, noise="gaussian"), id="logistic"),
    pytest.param(dc.Logistic(0.02, mechanism="paper"), id="logistic-paper"),
]


def family(policies, oracle):
    if isinstance(policies[0], dc.FastCB) and isinstance(oracle, dc.Ridge):
        oracle = dc.Logistic(0.02, noise="gamma")  # FastCB refuses Ridge; gamma is not above
    budgets = BUDGETS if len(policies) == 3 else BUDGETS[1:]
    return [plan_of(policy, oracle, b) for policy, b in zip(policies, budgets, strict=True)]


def stacked_arrays():
    return (np.stack(part)[:, None] for part in zip(*map(stream, SEEDS), strict=True))


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("policies", every_policy_stack)
def test_a_stack_of_runs_is_its_single_runs(policies, oracle):
    """Seeds (S, 1) meet runs (R,), budgets differ, and no run hears of another.

    Sums in another order differ in their last bits, so an action could differ where a uniform
    lies within 1e-12 of a boundary or two predictions tie to that; with these seeds none does.
    """
    plans = family(policies, oracle)
    together = losses_of(Stack(plans), *stacked_arrays(), dc.SeededNoise(SEEDS))
    together = np.broadcast_to(together, (len(SEEDS), len(plans), ROWS))
    for s, seed in enumerate(SEEDS):
        for r, plan in enumerate(plans):
            alone = losses_of(plan, *stream(seed), dc.SeededNoise(seed))
            np.testing.assert_array_equal(together[s, r], alone)


@pytest.mark.torch
@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("policies", every_policy_stack)
def test_torch_plays_the_same_rounds(policies, oracle):
    torch = pytest.importorskip("torch")
    plans = family(policies, oracle)
    arrays = [torch.asarray(np.ascontiguousarray(part)) for part in stacked_arrays()]
    noise = dc.SeededNoise(SEEDS)
    expected = losses_of(Stack(plans), *stacked_arrays(), noise)
    np.testing.assert_array_equal(losses_of(Stack(plans), *arrays, noise), expected)


SIZE = ACTIONS * WIDTH
RIDGE = 0.02


def literal_fit(budget, noise):
    """The paper's private ridge on the records of a batch: (θ, noisy Gram, records)."""

    def fit(records, number):
        features = [b for b, _, _ in records]
        losses = [[loss] * ACTIONS for _, _, loss in records]
        observed = [[a == action for a in range(ACTIONS)] for _, action, _ in records]
        W = Z = None
        if budget.private:
            gram, response = ridge.paper_sigmas(budget, "bandit", "general", ACTIONS)
            draws = noise.for_batch(number)
            W = gram * draws.normal("dense gram", (SIZE, SIZE))
            Z = response * draws.normal("dense response", (SIZE,))
        theta, gram = ridge.paper(features, losses, observed, RIDGE, len(records), W, Z)
        return theta, gram, len(records)

    return fit


def predictions(history, b):
    return [list(scores([b], theta, ACTIONS)[0]) for theta, _, _ in history]


def literal_square_cb(history, b):
    gamma = inverse_gap.gap_weight(16.0, 0.5, [records for _, _, records in history])
    return inverse_gap.square_cb(predictions(history, b)[-1], gamma)


def literal_lin_ucb(history, b):
    radii = confidence.radii([gram for _, gram, _ in history], [b], ACTIONS)[0]
    return confidence.lin_ucb(predictions(history, b)[-1], radii, 0.25)


def literal_replay(history, b):
    lengths = [records for _, _, records in history]
    return policy_optimisation.replay_bonus_po(predictions(history, b), lengths, 1.0, 0.1)


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        (POLICIES["SquareCB"][1], literal_square_cb),
        (POLICIES["LinUCB"][1], literal_lin_ucb),
        (POLICIES["ReplayBonusPO"][1], literal_replay),
    ],
    ids=["SquareCB", "LinUCB", "ReplayBonusPO"],
)
@pytest.mark.parametrize("budget", BUDGETS, ids=["none", "8", "1"])
def test_a_run_is_the_protocol_round_by_round(policy, rule, budget):
    x, y, u = stream(5)
    noise = dc.SeededNoise(5)
    plan = plan_of(policy, dc.Ridge(RIDGE, mechanism="paper"), budget)
    expected, _ = literal.play(x, y, u[:, 0], ACTIONS, rule, literal_fit(budget, noise))
    np.testing.assert_array_equal(losses_of(plan, x, y, u, noise), expected)
