"""FiniteClass: least squares without privacy, the exponential mechanism's exact law with it."""

import numpy as np
import pytest
from scipy.stats import chi2

import discreet as dc
from catalogue import ACTIONS, FINITE, NONE, ORACLES, PURE, SHAPES, OracleCase, batch_for
from discreet.audit import HOLDS, Chosen
from discreet.audit.noise_law import choice
from discreet.audit.subjects import Subject
from discreet.oracles.mechanisms import finite_choice
from reference.finite import exponential_mechanism, summed_losses
from tolerances import EXACT

FALSE_ALARM = 1e-6
"""Rate of each statistical test in this file."""


def totals_of(data):
    return summed_losses(FINITE, data.features, data.losses, data.observed)


def which(fit):
    """The index of the function that was chosen."""
    same = np.isclose(fit.predictor.weights, FINITE, rtol=0, atol=EXACT).all(axis=(-1, -2))
    assert same.sum() == 1
    return int(same.argmax())


@pytest.mark.parametrize("rows", [1, 2, 50])
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
@pytest.mark.parametrize("noise", [dc.SeededNoise(0), dc.SecureNoise()], ids=["float", "grid"])
def test_without_privacy_it_is_least_squares(noise, feedback, losses, rows):
    case = OracleCase(dc.FiniteClass(FINITE), NONE, feedback, losses)
    data = batch_for(case, rows, seed=rows)
    fit = case.calibrated.fit(data, noise)
    assert fit.predictor.link == "clip"
    assert which(fit) == int(np.argmin(totals_of(data)))


def test_ties_go_to_the_first():
    """Two functions that predict 0 everywhere, after one that does not."""
    below = np.zeros_like(FINITE[0])
    below[:, 0] = -1.0
    case = OracleCase(dc.FiniteClass(np.stack([FINITE[0], below, 2 * below])), NONE)
    data = batch_for(case, 30)
    data.losses[:] = 0.0
    for noise in (dc.SeededNoise(0), dc.SecureNoise()):
        chosen = case.calibrated.fit(data, noise).predictor.weights
        np.testing.assert_array_equal(chosen, below)


@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
@pytest.mark.parametrize("exact", [False, True])
def test_scores_and_scale_give_the_exponential_mechanism(exact, feedback, losses):
    case = OracleCase(dc.FiniteClass(FINITE), PURE, feedback, losses)
    data = batch_for(case, 40)
    choice_made = Chosen()
    choice_made.exact = exact
    case.calibrated.fit(data, choice_made)
    sensitivity = ACTIONS if feedback == "full" else 1
    grid = finite_choice.GRID if exact else 1.0
    assert choice_made.scale == pytest.approx(2 * sensitivity * grid / PURE.epsilon, rel=EXACT)
    # On the grid each of the terms is rounded once, and rows move by 2^-20 beforehand.
    terms = 40 * sensitivity
    slack = terms * 40 / grid if exact else terms * EXACT
    np.testing.assert_allclose(choice_made.scores / grid, totals_of(data), rtol=0, atol=slack)
    assert (choice_made.scores.dtype == np.int64) == exact


def chi_square(counts, probabilities):
    expected = counts.sum() * np.asarray(probabilities)
    return ((counts - expected) ** 2 / expected).sum()


def test_seeded_choices_follow_the_law():
    case = ORACLES["FiniteClass-private"]
    data = batch_for(case, 12)
    law = exponential_mechanism(totals_of(data), PURE.epsilon, 1.0)
    fits = [case.calibrated.fit(data, dc.SeededNoise(seed)) for seed in range(4000)]
    counts = np.bincount([which(fit) for fit in fits], minlength=len(FINITE))
    limit = chi2.isf(FALSE_ALARM, df=len(FINITE) - 1)
    assert chi_square(counts, law) < limit
    twice = exponential_mechanism(totals_of(data), 2 * PURE.epsilon, 1.0)
    assert chi_square(counts, twice) > limit  # and it would have seen half the noise


@pytest.mark.entropy
def test_secure_choices_follow_the_law():
    """OpenDP's own sampler, with a false-alarm rate of 1e-10."""
    assert choice(Subject("finite", "bandit", "general", 2.0), 5e-11).verdict == HOLDS


@pytest.mark.parametrize("chunk", [1, 7])
def test_rows_are_summed_in_chunks(chunk, monkeypatch):
    """A large class limits how many rows are predicted at once; the sums are the same."""
    case = ORACLES["FiniteClass-private"]
    data = batch_for(case, 40)
    whole, parts = Chosen(), Chosen()
    case.calibrated.fit(data, whole)
    monkeypatch.setattr(
        finite_choice, "max", lambda *values: min(chunk, max(values)), raising=False
    )
    case.calibrated.fit(data, parts)
    np.testing.assert_array_equal(whole.scores, parts.scores)
