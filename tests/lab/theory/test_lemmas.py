"""The lemmas hold pointwise: at every context of thousands of random predictors.

Each is then broken, so that a check which cannot fail would be noticed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import discreet as dc
from discreet.design.schedule import Schedule
from discreet.lab import theory
from discreet.releases.release import Predictor, Release
from discreet.releases.released import Released
from reference.policy_optimisation import exponential_update
from tolerances import EXACT

CONTEXTS = 16
lemmas = settings(max_examples=300, deadline=None)
"""300 predictors of 16 contexts, so 4,800 cases a lemma."""
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 9)
epochs = st.integers(2, 9)
errors = st.floats(1.0, 200.0)
shapes = st.sampled_from(["spread", "tied", "two levels", "tiny gaps", "one best"])


def predictions(seed, A, shape):
    """Predicted losses (16, A) in [0, 1] of several kinds."""
    rng = np.random.default_rng(seed)
    losses = rng.random((CONTEXTS, A))
    if shape == "tied":
        losses = np.round(losses * 2) / 2
    if shape == "two levels":
        losses = (losses < 0.5).astype(float)
    if shape == "tiny gaps":
        losses = 0.5 + 1e-3 * losses
    if shape == "one best":
        losses = np.ones_like(losses)
        losses[np.arange(CONTEXTS), rng.integers(A, size=CONTEXTS)] = 0.0
    return losses


def released_before(losses, epoch):
    """Releases before an epoch whose predictor says ``losses`` in the contexts."""
    released = Released(losses.shape[1], Schedule(horizon=2**12))
    for number in range(1, epoch):
        predictor = Predictor(losses.T, "clip")
        released = released.add(Release(number, 2 ** (number - 1), predictor))
    assert released.batch_length == theory.batch_length(epoch)
    return released


def played(policy, losses, epoch):
    return policy.probabilities(released_before(losses, epoch), np.eye(len(losses)))


def vanilla_bounds(B, A, error, gaps):
    rate = theory.batched_vanilla_po_rate(B, A, error)
    least = theory.vanilla_po_probability(B, A, rate, gaps) * (1 - EXACT)
    return least, theory.vanilla_po_predicted_regret(B, A, rate)


def bonus_bounds(B, A, error, gaps):
    least = theory.bonus_po_probability(B, A, error, gaps) * (1 - 1e-10)
    return least, theory.bonus_po_predicted_regret(B, A, error)


def holds(bounds, policy, losses, epoch, error):
    """Whether probabilities are large enough, and the predicted regret small enough."""
    gaps = losses - losses.min(axis=-1, keepdims=True)
    least, most = bounds(theory.batch_length(epoch), losses.shape[1], error, gaps)
    return (policy >= least).all(), ((policy * gaps).sum(axis=-1) <= most).all()


@pytest.mark.parametrize(
    ("bounds", "policy"),
    [
        (vanilla_bounds, lambda error: dc.VanillaPO(scale=1.0, error_bound=6 * error)),
        (bonus_bounds, lambda error: dc.BonusPO(error_bound=error)),
    ],
    ids=["vanilla", "bonus"],
)
@given(seed=seeds, A=sizes, epoch=epochs, error=errors, shape=shapes)
@lemmas
def test_batched_policies(bounds, policy, seed, A, epoch, error, shape):
    losses = predictions(seed, A, shape)
    found = played(policy(error), losses, epoch)
    assert holds(bounds, found, losses, epoch, error) == (True, True)


@pytest.mark.parametrize("shape", ["spread", "one best"])
def test_the_checks_catch_a_policy_that_explores_too_little_or_too_much(shape):
    losses = predictions(0, 4, shape)
    greedy = (losses == losses.min(axis=-1, keepdims=True)) * 1.0
    for bounds, epoch in ((vanilla_bounds, 12), (bonus_bounds, 24)):
        assert not holds(bounds, greedy, losses, 9, 1.0)[0]
        assert not holds(bounds, np.full_like(losses, 0.25), np.round(losses), epoch, 1.0)[1]


@given(B=st.integers(1, 400), x=st.floats(0.0, 50.0))
@lemmas
def test_geometric_average(B, x):
    average = np.exp(-x * np.arange(B)).mean()
    assert theory.geometric_average(B, x) <= average * (1 + EXACT)


@given(seed=seeds, A=sizes, sharp=st.floats(0.1, 10.0))
@lemmas
def test_prediction_error_under_another_policy(seed, A, sharp):
    """With Err the error that there is, for policies near to the one that collected, and far."""
    rng = np.random.default_rng(seed)
    truth, fitted = rng.random((2, CONTEXTS, A))
    collected, other = rng.dirichlet(np.full(A, sharp), size=(2, CONTEXTS)) + 1e-9
    collected, other = (each / each.sum(axis=-1, keepdims=True) for each in (collected, other))
    error = 64 * (collected * (fitted - truth) ** 2).sum(axis=-1).mean()
    coverage = (other / collected).sum(axis=-1).mean()
    difference = abs((other * (fitted - truth)).sum(axis=-1).mean())
    assert difference <= theory.prediction_error(error, 64, coverage) * (1 + EXACT)


def updates(fitted, rate):
    """Policies π_1 … π_{T+1} of Algorithm 1 at one context: fitted (T, A) -> (T + 1, A)."""
    logits = -rate * np.concatenate([np.zeros((1, fitted.shape[1])), np.cumsum(fitted, axis=0)])
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def dichotomy_holds(policies, fitted, truth, rate):
    """π_t(a) < 1/(AT), or Δ(a) ≤ 256·A·η·S_{t−1}, for every late round t and action a."""
    T, A = fitted.shape
    averages = np.cumsum(policies[:T], axis=0) / np.arange(1, T + 1)[:, None]
    S = np.concatenate([[0.0], np.cumsum((averages * (fitted - truth) ** 2).sum(axis=-1))])
    gaps = truth - truth.min()
    for a in np.flatnonzero(gaps > 0):
        late = np.arange(1, T + 1) >= theory.late_round(T, A, rate, gaps[a])
        rare = policies[:T, a] < 1 / (A * T)
        misjudged = gaps[a] <= 256 * A * rate * S[:T]
        if not (rare | misjudged)[late].all():
            return False
    return True


@given(
    seed=seeds, A=st.integers(2, 5), rate=st.floats(0.05, 1.0), noise=st.floats(0, 0.3), bias=shapes
)
@settings(max_examples=1000, deadline=None)
def test_the_late_round_dichotomy(seed, A, rate, noise, bias):
    """For predictors that are right, noisy, or wrong for a while."""
    rng = np.random.default_rng(seed)
    T, truth = 1500, rng.random(A)
    fitted = truth + noise * rng.standard_normal((T, A)) / np.sqrt(np.arange(1, T + 1))[:, None]
    if bias == "tied":  # wrong for a while: the good action looks bad
        fitted[: rng.integers(T // 2), truth.argmin()] = 1.0
    fitted = np.clip(fitted, 0.0, 1.0)
    assert dichotomy_holds(updates(fitted, rate), fitted, truth, rate)


@given(seed=seeds, A=sizes, rate=st.floats(0.05, 1.0), share=st.floats(0, 1))
@settings(max_examples=300, deadline=None)
def test_pathwise_regret(seed, A, rate, share):
    rng = np.random.default_rng(seed)
    T, truth = 400, rng.random(A)
    fitted = share * truth + (1 - share) * rng.random((T, A))
    policies = updates(fitted, rate)[:T]
    averages = np.cumsum(policies, axis=0) / np.arange(1, T + 1)[:, None]
    S = (averages * (fitted - truth) ** 2).sum()
    regret = (policies * (truth - truth.min())).sum()
    assert regret <= theory.pathwise_regret(T, A, rate, S)


@pytest.mark.parametrize(("A", "epoch"), [(2, 4), (5, 7)])
def test_average_of_updates_is_the_mixture_is_the_sampler(A, epoch):
    """[paper, Proposition "Batched vanilla PO as an average of policy updates"]

    The sampler by chi-square over 200,000 draws; the seed is fixed, and 1 in 10⁶ would fail.
    """
    losses = predictions(1, A, "spread")
    policy = dc.VanillaPO(scale=3.0)
    B = theory.batch_length(epoch)
    rate = 3.0 * min(1 / A, 1 / math.sqrt(A * B))
    mixture = played(policy, losses, epoch)
    for context in range(CONTEXTS):
        current, total = [1 / A] * A, np.zeros(A)
        for _ in range(B):
            total += current
            current = exponential_update(current, losses[context], rate)
        np.testing.assert_allclose(total / B, mixture[context], rtol=0, atol=EXACT)
    draws, released = 200_000, released_before(losses, epoch)
    x = np.repeat(np.eye(CONTEXTS)[:1], draws, axis=0)
    drawn = policy.sample(released, x, np.random.default_rng(5).random((draws, 2)))
    counts = np.bincount(drawn, minlength=A)
    assert _statistic(counts, mixture[0]) < chi2.ppf(1 - 1e-6, A - 1)
    assert _statistic(counts, played(dc.VanillaPO(scale=2.7), losses, epoch)[0]) > chi2.ppf(
        1 - 1e-6, A - 1
    ), "a rate that is off by a tenth must be caught"


def _statistic(counts, chances):
    expected = counts.sum() * chances
    return float(((counts - expected) ** 2 / expected).sum())
