"""Rates, errors and bounds: against the formulas written anew, and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.lab import theory
from discreet.releases.release import Predictor, Release
from discreet.releases.released import Released
from tolerances import EXACT

horizons = st.integers(1, 2**40)
actions = st.integers(2, 500)
functions = st.integers(1, 10**12)
chances = st.floats(1e-12, 0.5)
errors = st.floats(1.0, 1e6)
epsilons = st.floats(1e-3, 1e3)


def test_epochs_and_fits_are_those_of_the_schedule():
    for T in [*range(1, 300), 2**17 - 1, 2**17, 2**17 + 1]:
        lengths = Schedule(horizon=T).lengths()
        assert theory.epochs(T) == len(lengths) == math.ceil(math.log2(T + 1))
        assert theory.fits(T) == len(lengths) - 1
        assert (
            sum(theory.batch_length(m) for m in range(1, len(lengths)))
            == 2 ** (len(lengths) - 1) - 1
        )


@given(T=horizons, F=functions, delta=chances, epsilon=epsilons)
def test_error_bounds_are_the_stated_ones(T, F, delta, epsilon):
    M = theory.epochs(T)
    stated = {
        theory.least_squares_error(F, delta): 24 * math.log(F / delta),
        theory.batch_least_squares_error(T, F, delta): 10 * math.log(4 * F * M / delta),
        theory.exponential_mechanism_error(T, F, delta, epsilon): (10 + 4 / epsilon)
        * math.log(4 * F * M / delta),
        theory.approximate_erm_error(F, delta, 3.0): 6 + 10 * math.log(2 * F / delta),
    }
    for ours, theirs in stated.items():
        assert ours == pytest.approx(theirs, rel=EXACT)
    assert theory.batch_error(T, F, delta) == theory.batch_least_squares_error(T, F, delta)
    assert theory.batch_error(T, F, delta, epsilon) > theory.batch_error(T, F, delta) >= 1


@given(T=horizons, A=actions, error=errors)
def test_rates_are_the_stated_ones(T, A, error):
    rate = theory.vanilla_po_rate(T, A, error)
    assert rate == pytest.approx(
        math.sqrt((1 + math.log(A * T)) / (A * T * (1 + error))), rel=EXACT
    )
    assert rate <= 1, "Algorithm 1 asks for η in (0, 1]"
    B = theory.batch_length(theory.epochs(T))
    batched = theory.batched_vanilla_po_rate(B, A, error)
    assert batched == pytest.approx(min(1 / A, 1 / math.sqrt(6 * A * B * error)), rel=EXACT)
    assert batched <= theory.batched_vanilla_po_order(B, A, error)
    if B > 1:
        bonus = theory.batched_bonus_po_parameters(B, A, error)
        exploration = min(B, math.sqrt(A * B / 2 / error))
        assert bonus.exploration == pytest.approx(exploration, rel=EXACT)
        assert bonus.bonus == pytest.approx(B / exploration, rel=EXACT)
        assert bonus.bonus >= 1 - EXACT
        assert bonus.rate == pytest.approx(min(1, math.sqrt(2 * math.log(A) / B)), rel=EXACT)


@given(T=st.integers(1, 10**6), A=actions, error=errors, delta=chances)
def test_theorem_1_follows_from_the_bound_at_any_rate(T, A, error, delta):
    """The tuned bound is the general one at the theorem's rate, rounded up."""
    rate = theory.vanilla_po_rate(T, A, error)
    general = theory.vanilla_po_regret_at(T, A, error, delta, rate).total
    assert general <= theory.vanilla_po_regret(T, A, error, delta).total * (1 + EXACT)
    for factor in (0.01, 100.0):  # other rates cannot be much better: the tuning is right
        other = theory.vanilla_po_regret_at(T, A, error, delta, min(1.0, factor * rate)).total
        assert other > 0.2 * general


@given(T=st.integers(1, 2**30), A=actions, error=errors, delta=chances)
@settings(max_examples=500)
def test_batched_bounds_follow_from_those_of_the_epochs(T, A, error, delta):
    """1 + Σ n_m·R(π_m) + concentration ≤ the theorem, for both batched algorithms."""
    kinds = {
        theory.batched_vanilla_po_epoch_regret: theory.batched_vanilla_po_regret,
        theory.batched_bonus_po_epoch_regret: theory.batched_bonus_po_regret,
    }
    M = theory.epochs(T)
    for epoch_regret, total in kinds.items():
        summed = 1.0 + theory.concentration(T, delta / 2)
        for m in range(2, M + 1):
            B = theory.batch_length(m)
            summed += min(B, T - B + 1) * epoch_regret(B, A, error)
        assert summed <= total(T, A, error, delta).total * (1 + EXACT)


@pytest.mark.parametrize("name", theory.STATEMENTS)
def test_the_horizon_where_a_bound_begins_to_speak(name):
    def bound(T):
        return theory.statement(name, T, 4, 64, 0.05, 1.0).regret_bound.total

    first = theory.below_horizon_from(bound)
    assert bound(first) < first
    assert bound(first - 1) >= first - 1
    assert bound(100 * first) < 100 * first
    assert first > 10**6, "the constants are large"


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: theory.statement("vanila", 10, 2, 2, 0.1), "vanilla"),
        (lambda: theory.statement("vanilla", 10, 2, 2, 0.6), "1/2"),
        (lambda: theory.batched_vanilla_po_rate(4, 2, 0.5), "at least 1"),
        (lambda: theory.batched_bonus_po_parameters(1, 2, 1.0), "second"),
    ],
)
def test_mistakes_are_refused_in_words(call, word):
    with pytest.raises(InvalidInput, match=word):
        call()


@pytest.mark.parametrize("epsilon", [math.inf, 0.5])
def test_theoretical_policies_carry_the_parameters_of_their_theorems(epsilon):
    given_ = {"horizon": 5000, "functions": 64, "delta": 0.05, "epsilon": epsilon}
    error = theory.batch_error(5000, 64, 0.05, epsilon)
    released = Released(3, Schedule(horizon=5000))
    for number in range(1, 13):
        predictor = Predictor(np.zeros((3, 1)), "clip")
        released = released.add(Release(number, 2 ** (number - 1), predictor))
    vanilla = dc.VanillaPO.theoretical(**given_)
    length, rate = vanilla._length_and_rate(released, None)
    assert length == 4096
    assert rate == pytest.approx(theory.batched_vanilla_po_rate(4096, 3, error), rel=EXACT)
    assert dc.BonusPO.theoretical(**given_).error_bound == error
    assert dc.VanillaPO(scale=8.0) == dc.VanillaPO(scale=8.0, error_bound=1.0)
