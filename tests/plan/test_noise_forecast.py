"""What a plan says of its noise, against noise that was drawn."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import discreet as dc
from discreet.batches.release_batch import fit_batch
from discreet.plan.noise_forecast import (
    HOPELESS,
    LARGEST_SPREAD,
    STANDARD_ERRORS,
    prediction_noise,
    sample_sizes,
    too_few,
    too_noisy,
    warn_if_too_noisy,
)
from discreet.privacy.noise import SeededNoise
from discreet.releases.released import Released
from discreet.simulate.played_batches import play
from tolerances import EXACT
from wording import refused

ROWS, COLUMNS, SEEDS = 3000, 4, 24


def plan(epsilon=1.0, horizon=ROWS, **rest):
    sizes = {"n_actions": 2, "features": dc.UnitBall(COLUMNS), "horizon": horizon}
    return dc.Plan(**sizes | {"budget": dc.Budget(epsilon, 1e-5)} | rest)


def drawn_noise(made, clicks=None, of_means=False):
    """Standard deviation over seeds of the last predictor's losses, for rows that never differ.

    Losses are those of random labels, or 1 but for a share of ``clicks``. With ``of_means`` it is
    that of the mean over all rows: the mean of an action.
    """
    rng = np.random.default_rng(0)
    rows = made.features.map(rng.normal(size=(ROWS, COLUMNS)) / 2)
    truth, u = rng.integers(2, size=ROWS), rng.random((ROWS, 2))
    if clicks is not None:
        truth = 1.0 - (rng.random((ROWS, 2)) < clicks)
    scores = []
    for seed in range(SEEDS):
        released = Released(2, made.schedule)
        noise = SeededNoise(seed)
        *_, last, _ = play(made, released, rows, truth, u, partial(fit_batch, made, noise))
        scores.append(last.release.predictor.scores(rows if of_means else rows[:500]))
    scores = np.mean(scores, axis=1, keepdims=True) if of_means else scores
    return float(np.sqrt(np.var(scores, axis=0).mean()))


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_noise_of_a_prediction_is_what_seeds_show(epsilon):
    """Within a third: actions draw on noise too, and the geometry is learned from noisy numbers."""
    made = plan(epsilon, policy=dc.Uniform())
    stated = prediction_noise(made, len(made.schedule.lengths()))[-1]
    assert 0.75 * stated < drawn_noise(made) < 1.33 * stated


def factors(offset, p, share=None):
    """Literal factors of the noise of a prediction and of a mean, with twice the noise on Grams."""
    k = max(1 / p, 2 * (math.sqrt(offset**4 + offset**2 / 2) - offset**2))
    k = k if share is None else share
    of_responses = (1 / k + (p - 1) ** 2 / (1 - k)) / p**2
    personal = math.sqrt(4 * (0.25 + offset**2 / (2 * k)) * of_responses)
    of_constant, of_sums = (1 + 4 * offset**2 / k) / k, 16 * (1 + offset**2)
    return personal, math.sqrt(1 / (1 / of_constant + 1 / of_sums)) / p


@pytest.mark.parametrize("clicks", [0.02, 0.3])
def test_rare_clicks_have_more_noise_by_the_factors_of_sample_sizes(clicks):
    """The Gram's noise meets weights that predict a mean loss of 0.98, far from the centre."""
    made = plan(4.0, policy=dc.Uniform(), outcome=dc.Reward(0, 1))
    stated = prediction_noise(made, len(made.schedule.lengths()))[-1]
    personal, mean = factors(0.5 - clicks, COLUMNS + 1)
    assert 0.75 * stated * personal < drawn_noise(made, clicks) < 1.33 * stated * personal
    assert 0.75 * stated * mean < drawn_noise(made, clicks, of_means=True) < 1.33 * stated * mean


def test_a_hopeless_plan_is_told_so_and_can_be_silenced():
    assert too_noisy(plan(8.0)) is None
    assert "unlikely to beat the best fixed action within 200 rounds" in too_noisy(plan(0.5, 200))
    assert "nothing is released" in too_noisy(plan(1.0, 10))
    with pytest.warns(dc.Advice, match=r"docs/warnings.md#too-much-noise"):
        warn_if_too_noisy(plan(0.5, 200))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dc.Advice)
        warn_if_too_noisy(plan(0.5, 200))


def test_where_nothing_can_be_said():
    assert prediction_noise(plan(oracle=dc.Logistic()), 3) is None
    assert too_noisy(plan(float("inf"), 100)) is None
    assert too_noisy(plan(0.5, None)) is None
    assert prediction_noise(plan(0.5, 200), 7)[-1] > HOPELESS * LARGEST_SPREAD


def test_noise_is_compared_with_the_spread_where_one_is_known():
    made = plan(1.0, 1_000)
    noise = prediction_noise(made, len(made.schedule.lengths()))[-1]
    assert too_noisy(made) is None
    assert too_noisy(made, 1.01 * noise / HOPELESS) is None
    words = too_noisy(made, 0.99 * noise / HOPELESS)
    assert f"noise of ±{noise:.2g}" in words
    assert f"losses a spread of {0.99 * noise / HOPELESS:.2g}" in words
    money = replace(made, outcome=dc.Reward(0, 200))
    assert f"a predicted reward has noise of ±{200 * noise:.2g}" in too_noisy(money, noise / 2)


def test_an_evaluation_knows_the_spread_of_its_losses():
    """A loss of 0.01 in one of ten rounds has a spread of 0.003, far below the noise."""
    rng = np.random.default_rng(1)
    contexts, rare = rng.uniform(-0.5, 0.5, size=(1_000, COLUMNS)), rng.random((1_000, 2)) < 0.1
    made = plan(1.0, 1_000)
    with pytest.warns(dc.Advice, match=r"losses a spread of 0\.003"):
        dc.evaluate(made, contexts, losses=0.01 * rare)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dc.Advice)
        dc.evaluate(made, contexts, losses=1.0 * (rng.random((1_000, 2)) < 0.5))


def clicks(high=1.0, **rest):
    return plan(1.0, None, outcome=dc.Reward(0, high), **rest)


def test_without_noise_the_sample_size_is_that_of_an_ab_test():
    """Two arms of n/2: n = 4·s²·(1.96 + 0.84)²/D², and p times that for personal predictions."""
    found = sample_sizes(clicks(), 0.01, epsilons=[math.inf])
    assert found.spread == pytest.approx(math.sqrt(0.01 * 0.99), rel=EXACT)
    assert found.difference == pytest.approx(0.001, rel=EXACT)
    expected = 4 * 0.0099 * (1.959964 + 0.841621) ** 2 / 0.001**2
    (size,) = found.table
    assert size.means == pytest.approx(expected, rel=1e-5)
    assert size.personal == pytest.approx(expected * (COLUMNS + 1), rel=1e-5)


def test_a_sample_size_counts_chance_and_noise():
    """With batches of one length the error at the end of batch k is known: the size lies there."""
    made = clicks(first_batch=5_000, longest_batch=5_000)
    batches, spread = 40, 0.2
    noise, p, offset = prediction_noise(made, batches)[-1], COLUMNS + 1, 0.7 - 0.5
    personal, mean = factors(offset, p)
    error = 2 * (spread**2 * 2 * p / (batches * 5_000) + (noise * personal) ** 2)
    found = sample_sizes(made, 0.3, spread, STANDARD_ERRORS * math.sqrt(error), epsilons=[1.0])
    assert found.table[0].personal == pytest.approx(batches * 5_000, abs=1)
    error = 2 * (spread**2 * 2 / (batches * 5_000) + (noise * mean) ** 2)
    found = sample_sizes(made, 0.3, spread, STANDARD_ERRORS * math.sqrt(error), epsilons=[1.0])
    assert found.table[0].means == pytest.approx(batches * 5_000, abs=1)


@pytest.mark.parametrize(("records", "detected"), [(0.99, True), (1.01, False)])
def test_a_plan_that_forgets_counts_what_it_remembers(records, detected):
    """Batches of n with weights 1, k, k², … are worth n·(1 + k)/(1 − k) records in the end."""
    made = clicks(half_life=2, first_batch=1_000, longest_batch=1_000)
    kept = math.sqrt(0.5)
    error = 2 * 0.2**2 * 2 / (records * 1_000 * (1 + kept) / (1 - kept))
    difference = STANDARD_ERRORS * math.sqrt(error)
    (size,) = sample_sizes(made, 0.3, 0.2, difference, epsilons=[math.inf]).table
    assert (size.means is not None) == detected


def test_a_catalogue_has_no_means_of_actions():
    items = dc.Catalogue(dc.UnitBall(1), {f"i{number}": [0.1 * number] for number in range(4)})
    size = sample_sizes(clicks(n_actions=None, actions=items), 0.1).at(1.0)
    assert size.means is None
    assert size.personal > 0


def test_a_horizon_that_ends_too_early_is_told_so():
    found = sample_sizes(clicks(), 0.1)
    needed = found.at(1.0).means
    assert too_few(replace(clicks(), horizon=needed), found) is None
    assert too_few(clicks(), found) is None
    words = too_few(replace(clicks(), horizon=needed - 1), found)
    assert "too few to tell a difference of 0.01 between two actions" in words


@pytest.mark.parametrize(
    ("numbers", "facts"),
    [
        ((1.5,), ("mean reward must be inside the declared range [0, 1]", "got 1.5")),
        ((-0.1,), ("mean reward must be a positive",)),
        ((0.01, 0.5), ("spread must be at most 0.0995", "got 0.5")),
        ((0.01, 0.05, 2.0), ("difference must fit into the declared range [0, 1]", "got 2")),
    ],
)
def test_numbers_that_the_range_does_not_allow_are_refused(numbers, facts):
    with refused(dc.InvalidInput, *facts):
        sample_sizes(clicks(), *numbers)


def test_a_delta_that_is_too_large_for_the_horizon_is_advised_against():
    large = plan(epsilon=8.0, horizon=2000)
    large = replace(large, budget=dc.Budget(8.0, 1 / 2000))
    with pytest.warns(dc.Advice, match=r"δ = 0.0005 .*2,000 .*large-delta"):
        dc.Learner(large)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dc.Advice)
        for budget, horizon in ((dc.Budget(8.0, 4e-4), 2000), (dc.Budget(8.0, 0.01), None)):
            warn_if_too_noisy(replace(large, budget=budget, horizon=horizon))
