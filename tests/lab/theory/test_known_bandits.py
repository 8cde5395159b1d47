"""Bandits with known truth: their gaps, their draws, and who is right in them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from discreet.data import fried, linear, load, logistic
from discreet.errors import InvalidInput
from discreet.features.unit_ball import UnitBall
from discreet.lab.theory import known_bandits
from discreet.releases.release import Predictor
from tolerances import EXACT

CLASSES = {
    "random": known_bandits.random_class(8, 3, 5),
    "gap": known_bandits.gap_class(8, 3, 0.2, 5),
}


@pytest.mark.parametrize("truth", CLASSES.values(), ids=CLASSES)
def test_every_world_is_a_function_of_the_class(truth):
    """Realizability: f* ∈ F."""
    functions = np.moveaxis(truth.predictions, -1, 0)  # (F, C, A)
    for world in truth.expected:
        assert min(abs(function - world).max() for function in functions) < EXACT


@pytest.mark.parametrize("truth", CLASSES.values(), ids=CLASSES)
def test_losses_have_their_expectation(truth):
    """By binomial counts; the seed is fixed, and 1 in 10⁶ would fail."""
    T = 40_000
    rounds = truth.draw(T, 1, first_seed=3)
    expected = truth.expected[rounds.worlds[0]]
    losses = rounds.v[0][:, None] < expected[rounds.contexts[0]]
    tail = 1e-6 / (2 * expected.size)
    for context in range(5):
        rows = losses[rounds.contexts[0] == context]
        low, high = binom.ppf([tail, 1 - tail], len(rows), expected[context][:, None]).T
        assert (rows.sum(axis=0) >= low).all()
        assert (rows.sum(axis=0) <= high).all()
    low, high = binom.ppf([tail, 1 - tail], T, 1 / 5)
    counts = np.bincount(rounds.contexts[0], minlength=5)
    assert ((counts >= low) & (counts <= high)).all()


@pytest.mark.parametrize("epsilon", [np.inf, 0.5])
def test_playing_blindly_in_the_hard_instance_costs_what_it_should(epsilon):
    T, A, F = 10_000, 5, 32
    truth = known_bandits.gap_class(F, A, known_bandits.worst_gap(T, A, F, epsilon))
    cost = T * truth.gaps.mean(axis=-1)
    expected = 0.5 * np.sqrt(A * T * np.log(F) * (1 + 1 / epsilon))
    np.testing.assert_allclose(cost, expected, rtol=1e-9)


@pytest.mark.parametrize("make", [linear, logistic, fried])
def test_generated_sets_know_their_truth(make):
    data = make(300)
    truth = known_bandits.known(data)
    np.testing.assert_array_equal(truth.expected[0], data.expected)
    if data.weights is not None:
        link = "identity" if make is linear else "logistic"
        said = Predictor(data.weights, link).losses(UnitBall(data.dimension).map(data.contexts))
        np.testing.assert_allclose(said, truth.expected[0], rtol=0, atol=1e-9)


def test_mistakes_are_refused():
    with pytest.raises(InvalidInput, match="digits"):
        known_bandits.known(load("digits"))
    with pytest.raises(InvalidInput, match="finite class"):
        _ = known_bandits.known(linear(50)).predictions
    with pytest.raises(InvalidInput, match="expected"):
        known_bandits.table(np.full((2, 3, 2), 1.5))
    with pytest.raises(InvalidInput, match="horizon"):
        known_bandits.random_class(2, 2).draw(0, 1)
