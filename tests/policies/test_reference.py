"""Every policy's probabilities equal the literal transcription of its rule."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from catalogue import ACTIONS, POLICIES, WIDTH, features, predicting, releases, signals_for
from discreet.releases.release import Gram, Predictor, Release
from discreet.releases.released import Released
from reference import confidence, inverse_gap, policy_optimisation
from reference.design import scores, sigmoid
from tolerances import EXACT

COUNTS = (1, 2, 3, 6, 10)
LINK = {"identity": lambda s: s, "logistic": sigmoid, "clip": lambda s: min(max(s, 0.0), 1.0)}


class Literal:
    """The history as a transcription sees it: tables of numbers, one row a context."""

    def __init__(self, released, x):
        self.lengths = [item.records for item in released.items]
        self.scores = [
            scores(x, item.predictor.weights.reshape(-1), released.n_actions)
            for item in released.items
        ]
        link = LINK[released.latest.predictor.link]
        self.losses = [[[link(s) for s in row] for row in table] for table in self.scores]
        grams = [
            item.gram.values
            if item.gram.dense
            else confidence.block_diagonal(item.gram.values, released.n_actions)
            for item in released.items
        ]
        self.radii = confidence.radii(grams, x, released.n_actions)


def literal_probabilities(policy, released, x):
    history = Literal(released, x)
    m = len(history.lengths) + 1  # the batch now played
    B, previous = 2 ** (m - 1), 2 ** (m - 2)
    table = []
    for i in range(len(x)):
        losses = [float(loss) for loss in history.losses[-1][i]]
        raw, radii = history.scores[-1][i], history.radii[i]
        match policy:
            case dc.Uniform():
                row = [1 / len(losses)] * len(losses)
            case dc.Greedy():
                row = confidence.even_among_minimisers(losses)
            case dc.SquareCB(scale, exponent):
                gamma = inverse_gap.gap_weight(scale, exponent, history.lengths)
                row = inverse_gap.square_cb(losses, gamma)
            case dc.FastCB(scale, exponent):
                gamma = inverse_gap.gap_weight(scale, exponent, history.lengths)
                row = inverse_gap.fast_cb(losses, gamma)
            case dc.LinUCB(width):
                row = confidence.lin_ucb(losses, radii, width)
            case dc.RegCB(width):
                row = confidence.reg_cb(raw, radii, width)
            case dc.AdaCB(scale, exponent, width):
                gamma = inverse_gap.gap_weight(scale, exponent, history.lengths)
                row = inverse_gap.ada_cb(losses, confidence.survivors(raw, radii, width), gamma)
            case dc.VanillaPO(scale, rollout):
                length = B if rollout == "current" else previous
                rate = policy_optimisation.vanilla_rate(scale, len(losses), length)
                row = policy_optimisation.vanilla_po(losses, rate, length)
            case dc.BonusPO(bound, rate, bonus):
                row = policy_optimisation.bonus_po(losses, B, previous, bound, rate, bonus)
            case dc.ReplayBonusPO(rate, bonus):
                replayed = [table[i] for table in history.losses]
                row = policy_optimisation.replay_bonus_po(replayed, history.lengths, rate, bonus)
            case dc.AdaptivePO(rate, bonus, scale):
                replayed = [table[i] for table in history.losses]
                bonus /= math.sqrt(1 + sum(history.lengths) / 10_000)
                row = policy_optimisation.replay_bonus_po(replayed, history.lengths, rate, bonus)
                if released.signal is not None:
                    clear, *errors = released.signal
                    newest = policy_optimisation.maillard(losses, errors, scale)
                    both = zip(row, newest, strict=True)
                    row = [clear * one + (1 - clear) * two for one, two in both]
        table.append(row)
    return np.array(table)


def check_literal(policy, released, x):
    found, expected = policy.probabilities(released, x), literal_probabilities(policy, released, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("link", ["identity", "logistic", "clip"])
@pytest.mark.parametrize("name", POLICIES)
def test_probabilities_are_the_literal_ones(name, link):
    x = features(4, seed=8)
    for policy in POLICIES[name]:
        for count in COUNTS:
            for grams in ("block", "shared", "dense") if policy.uses_radii else ("block",):
                for clear in signals_for(policy):
                    released = releases(count, link, grams, seed=10 * count, clear=clear)
                    check_literal(policy, released, x)


ONE = np.ones((1, 1))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    losses=st.lists(st.integers(-4, 12).map(lambda k: k / 8), min_size=2, max_size=6),
    count=st.integers(1, 7),
    name=st.sampled_from(sorted(POLICIES)),
    number=st.integers(0, 1),
)
def test_ties_and_predictions_outside_the_unit_interval(losses, count, name, number):
    """Eighths make exact ties and best predictions of zero and below common."""
    blocks = np.arange(len(losses), dtype=float)[:, None, None]  # radii differ between actions
    released = predicting([losses] * count, gram=Gram(blocks, dense=False, step=1.0))
    check_literal(POLICIES[name][number], released, ONE)


@pytest.mark.parametrize("rollout", ["current", "previous"])
@pytest.mark.parametrize(("first", "count"), [(1, 12), (3, 10), (5, 10), (1000, 2)])
def test_vanilla_po_is_the_direct_sum_for_long_batches(rollout, first, count):
    """B up to several thousand, powers of two and not."""
    losses = [0.31, 0.12, 0.77, 0.1201]
    released = predicting([losses] * count, first)
    length = first << (count if rollout == "current" else count - 1)
    for scale in (0.5, 8.0, 512.0):
        rate = policy_optimisation.vanilla_rate(scale, len(losses), length)
        expected = policy_optimisation.vanilla_po(losses, rate, length)
        table = dc.VanillaPO(scale=scale, rollout=rollout).probabilities(released, ONE)
        np.testing.assert_allclose(table[0], expected, rtol=0, atol=1e-10)


def test_bonus_po_uses_nominal_lengths_of_a_larger_first_batch():
    losses = [0.9, 0.2, 0.5]
    expected = policy_optimisation.bonus_po(losses, 12, 6, 2.0, 3.0, 0.1)
    table = dc.BonusPO(2.0, 3.0, 0.1).probabilities(predicting([losses], 6), ONE)
    np.testing.assert_allclose(table[0], expected, rtol=0, atol=EXACT)


def test_replay_keeps_weights_that_an_early_update_drowned():
    """exp(−2000) is no float; kept as a logarithm, the action comes back."""
    tables = [[1.0, 0.0]] * 11 + [[0.0, 1.0]]
    policy = dc.ReplayBonusPO(learning_rate=1.0, bonus=1e-9)
    before, after = (policy.probabilities(predicting(tables[:m]), ONE) for m in (11, 12))
    assert before[0, 0] == 0.0
    # 2^11 − 1 against, 2^11 for: the log-odds are 1 up to the bonuses, which are below 1e-4.
    assert after[0, 0] == pytest.approx(1 / (1 + np.exp(-1.0)), abs=1e-4)


def with_gram(values, dense, step=2.0):
    predictor = Predictor(np.zeros((ACTIONS, WIDTH)), "identity")
    return Released(ACTIONS).add(Release(1, 1, predictor, Gram(values, dense, step)))


def test_a_negative_quadratic_form_clamps_to_zero_in_a_dense_gram():
    values = -3.0 * np.eye(ACTIONS * WIDTH)
    table = with_gram(values, dense=True).radii(features(3))
    np.testing.assert_array_equal(table, 0.0)


def test_an_indefinite_block_is_repaired_by_its_public_step():
    """I + G = −2I; a step of 2 leaves 0, which is not definite, and 4 leaves 2I."""
    blocks = np.tile(-3.0 * np.eye(WIDTH), (ACTIONS, 1, 1))
    blocks[0] = np.eye(WIDTH)  # this one is sound and must not move
    x = features(4)
    table = with_gram(blocks, dense=False).radii(x)
    squares = (x**2).sum(axis=1)
    np.testing.assert_allclose(table[:, 0] ** 2, squares / 2.0, rtol=0, atol=EXACT)
    np.testing.assert_allclose(table[:, 1] ** 2, squares / (-2.0 + 4.0), rtol=0, atol=EXACT)
