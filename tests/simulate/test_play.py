"""``play``: a run is the protocol round by round."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import discreet as dc
from catalogue import ACTIONS, DIMENSION, FEATURES, POLICIES, WIDTH, plan_of
from discreet.batches.release_batch import fit_batch
from discreet.design.schedule import Schedule
from discreet.releases.released import Released
from discreet.simulate.played_batches import play, shuffle
from reference import confidence, inverse_gap, policy_optimisation, ridge
from reference import simulate as literal
from reference.design import scores

ROWS = 45
BUDGETS = (dc.Budget.none(), dc.Budget(8.0, 1e-5), dc.Budget(1.0, 1e-5))


def stream(seed):
    """Features, labels and uniforms of a seed, in its order."""
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(ROWS, DIMENSION))
    labels = (contexts[:, 0] > 0).astype(int) + (contexts[:, 1] > 0.5)
    order, u = shuffle(seed, ROWS)
    return FEATURES.map(contexts)[order], labels[order], u


def losses_of(plan, x, y, u, noise):
    released = Released(ACTIONS, Schedule(horizon=ROWS))
    played = play(plan, released, x, y, u, partial(fit_batch, plan, noise))
    return np.concatenate([batch.incurred for batch in played]).astype(float)


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
