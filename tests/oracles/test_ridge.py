"""Ridge against the whole design matrix, without noise and with the same draws added literally."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from catalogue import (
    ACTIONS,
    NONE,
    PRIVATE,
    SHAPES,
    WIDTH,
    OracleCase,
    batch_for,
    features,
)
from reference import ridge as literal
from reference.design import scores
from tolerances import SOLVER

SEED, BATCH = 11, 4
NOISE = dc.SeededNoise(SEED, BATCH)
SIZE = ACTIONS * WIDTH


def fitted(case, rows):
    data = batch_for(case, rows, seed=rows)
    return data, case.calibrated.fit(data, NOISE)


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("strength", [1e-4, 0.05, 1.0])
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
def test_paper_without_noise(feedback, losses, strength, rows):
    case = OracleCase(dc.Ridge(strength, mechanism="paper"), NONE, feedback, losses, radii=True)
    data, fit = fitted(case, rows)
    count = rows * (ACTIONS if feedback == "full" else 1)
    theta, _ = literal.paper(data.features, data.losses, data.observed, strength, count)
    np.testing.assert_allclose(fit.predictor.weights.reshape(-1), theta, rtol=0, atol=SOLVER)


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
def test_paper_with_the_same_draws(feedback, losses, rows):
    case = OracleCase(dc.Ridge(0.05, mechanism="paper"), PRIVATE, feedback, losses, radii=True)
    data, fit = fitted(case, rows)
    sigma_gram, sigma_response = literal.paper_sigmas(PRIVATE, feedback, losses, ACTIONS)
    W = sigma_gram * NOISE.normal("dense gram", (SIZE, SIZE))
    Z = sigma_response * NOISE.normal("dense response", (SIZE,))
    count = rows * (ACTIONS if feedback == "full" else 1)
    theta, gram = literal.paper(data.features, data.losses, data.observed, 0.05, count, W, Z)
    np.testing.assert_allclose(fit.predictor.weights.reshape(-1), theta, rtol=SOLVER, atol=SOLVER)
    assert fit.gram.dense
    np.testing.assert_allclose(fit.gram.values, gram, rtol=0, atol=SOLVER)


def literal_structured(case, data, sigma, noise):
    """Predictions at fresh rows, and the released blocks."""
    blocks = 1 if case.feedback == "full" else ACTIONS
    oracle, middle = case.oracle, literal.middle(case.losses, ACTIONS)
    theta, grams = literal.structured(
        data.features,
        data.losses,
        data.observed,
        middle,
        oracle.ridge,
        sigma,
        oracle.noise_ridge,
        noise.normal("gram", (blocks, WIDTH * (WIDTH + 1) // 2)),
        noise.normal("response", (ACTIONS, WIDTH)),
    )
    fresh = features(9, seed=99)
    return fresh, scores(fresh, theta.reshape(-1), ACTIONS) + middle, grams[:blocks]


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("budget", [NONE, PRIVATE], ids=["none", "private"])
@pytest.mark.parametrize("noise_ridge", [0.0, 0.5])
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
def test_structured(feedback, losses, noise_ridge, budget, rows):
    oracle = dc.Ridge(0.05, noise_ridge=noise_ridge)
    case = OracleCase(oracle, budget, feedback, losses, radii=True)
    data, fit = fitted(case, rows)
    sigma = case.calibrated.gram
    assert sigma == case.calibrated.response
    fresh, expected, grams = literal_structured(case, data, sigma, NOISE)
    np.testing.assert_allclose(fit.predictor.losses(fresh), expected, rtol=SOLVER, atol=SOLVER)
    np.testing.assert_allclose(fit.gram.values, grams, rtol=0, atol=SOLVER)
    assert not fit.gram.dense


def test_the_repair_is_at_work_in_small_noisy_batches():
    """Without it the solve is another one: the test above would not see the repair otherwise."""
    repaired = 0
    for seed in range(20):
        noise = dc.SeededNoise(seed)
        case = OracleCase(dc.Ridge(0.05, noise_ridge=0.0), PRIVATE)
        data = batch_for(case, 3)
        sigma = case.calibrated.gram
        fresh, expected, grams = literal_structured(case, data, sigma, noise)
        fit = case.calibrated.fit(data, noise)
        np.testing.assert_allclose(fit.predictor.losses(fresh), expected, rtol=SOLVER, atol=SOLVER)
        shifted = grams + 3 * 0.05 * np.eye(WIDTH)
        repaired += np.linalg.eigvalsh(shifted).min() < 0
    assert repaired > 10


@pytest.mark.parametrize(("mechanism", "prior"), [("structured", 0.5), ("paper", 0.0)])
@pytest.mark.parametrize("rows", [1, 25])
def test_an_action_never_played_keeps_its_prior(mechanism, prior, rows):
    case = OracleCase(dc.Ridge(0.05, mechanism=mechanism), NONE)
    data = batch_for(case, rows)
    observed = np.zeros_like(data.observed)
    observed[:, 1] = True
    fit = case.calibrated.fit(replace(data, observed=observed), NOISE)
    predicted = fit.predictor.losses(features(5))
    np.testing.assert_allclose(predicted[:, [0, 2]], prior, rtol=0, atol=SOLVER)
    assert np.abs(predicted[:, 1] - prior).min() > 1e-6
