"""Logistic against the whole design matrix: the objective literally, tilt and all."""

import math

import numpy as np
import pytest

import discreet as dc
from catalogue import ACTIONS, NONE, ORACLES, PRIVATE, SHAPES, WIDTH, OracleCase, batch_for
from discreet.oracles.mechanisms.logistic import OUTPUT_MULTIPLIER, OUTPUT_SHARE, chaudhuri
from discreet.oracles.mechanisms.newton import TOLERANCE
from reference import logistic as literal
from reference.ridge import block_noise, zcdp
from tolerances import EXACT, SOLVER

NOISE = dc.SeededNoise(21, 3)
SIZE = ACTIONS * WIDTH


def check_minimiser(theta, data, ridge, tilt):
    """Certified by the literal gradient, and the same point as the literal minimiser."""
    arrays = data.features, data.losses, data.observed
    assert literal.gradient_norm(theta, *arrays, ridge, tilt) <= TOLERANCE
    expected = literal.minimiser(*arrays, ridge, tilt)
    error = literal.gradient_norm(expected, *arrays, ridge, tilt)
    assert error <= SOLVER
    # Strong convexity: two near-minimisers are within (sum of gradient norms)/Λ.
    assert np.linalg.norm(theta - expected) <= (TOLERANCE + error) / ridge


def fitted(case, rows):
    data = batch_for(case, rows, seed=rows)
    fit = case.calibrated.fit(data, NOISE)
    assert fit.predictor.link == "logistic"
    return data, fit.predictor.weights.reshape(-1), fit


@pytest.mark.parametrize("rows", [1, 3, 60])
@pytest.mark.parametrize("ridge", [1e-4, 0.05, 1.0])
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
@pytest.mark.parametrize("mechanism", ["structured", "paper"])
def test_without_privacy(mechanism, feedback, losses, ridge, rows):
    case = OracleCase(dc.Logistic(ridge, mechanism=mechanism), NONE, feedback, losses)
    data, theta, _ = fitted(case, rows)
    # The paper divides by the number of fitting rows, the default by the number of records.
    factor = ACTIONS if (mechanism, feedback) == ("paper", "full") else 1
    check_minimiser(theta, data, factor * rows * ridge, np.zeros(SIZE))


@pytest.mark.parametrize("rows", [1, 3, 60])
@pytest.mark.parametrize("ridge", [1e-4, 0.05])
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
def test_paper(feedback, losses, ridge, rows):
    """ε/A with all losses seen, and both branches of Algorithm 2 (see the next test)."""
    case = OracleCase(dc.Logistic(ridge, mechanism="paper"), PRIVATE, feedback, losses)
    data, theta, _ = fitted(case, rows)
    h = ACTIONS if feedback == "full" else 1
    extra, share = literal.chaudhuri(PRIVATE.epsilon / h, h * rows, ridge)
    tilt = 2 / share * NOISE.ball("objective", (SIZE,))
    check_minimiser(theta, data, h * rows * (ridge + extra), tilt)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("rows", [1, 10, 1000])
@pytest.mark.parametrize("ridge", [1e-6, 0.01, 1.0])
def test_both_branches_of_algorithm_2(epsilon, rows, ridge):
    extra, share = chaudhuri(epsilon, rows, ridge)
    expected = literal.chaudhuri(epsilon, rows, ridge)
    np.testing.assert_allclose([extra, share], expected, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("rows", [1, 3, 60])
@pytest.mark.parametrize("ridge", [1e-4, 0.05])
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
def test_structured_gamma(feedback, losses, ridge, rows):
    budget = dc.Budget(2.0)
    case = OracleCase(dc.Logistic(ridge, noise="gamma"), budget, feedback, losses)
    data, theta, _ = fitted(case, rows)
    h = ACTIONS if feedback == "full" else 1
    total, share = literal.gamma_blocks((1 - OUTPUT_SHARE) * budget.epsilon / h, rows, ridge)
    output = 2 * TOLERANCE / total / (OUTPUT_SHARE * budget.epsilon)
    theta = theta - output * NOISE.ball("output", (SIZE,))
    tilt = 2 / share * NOISE.ball("objective blocks", (ACTIONS, WIDTH))
    check_minimiser(theta, data, total, tilt.reshape(-1))


@pytest.mark.parametrize("rows", [1, 3, 60, 400])
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
def test_structured_gaussian(feedback, losses, rows):
    case = OracleCase(dc.Logistic(0.05, noise="gaussian"), PRIVATE, feedback, losses)
    data, theta, _ = fitted(case, rows)
    scales = case.calibrated
    assert scales.least_ridge >= 5.0
    total = max(rows * 0.05, scales.least_ridge)
    output = 2 * TOLERANCE / total * OUTPUT_MULTIPLIER
    theta = theta - output * NOISE.normal("output", (ACTIONS, WIDTH)).reshape(-1)
    tilt = scales.sigma * NOISE.normal("objective blocks", (ACTIONS, WIDTH))
    check_minimiser(theta, data, total, tilt.reshape(-1))


def test_the_output_noise_covers_the_tolerance():
    """Subtracting nothing leaves a point that is not certified: the noise is really there."""
    case = ORACLES["Logistic-gaussian-private"]
    data, theta, _ = fitted(case, 60)
    tilt = case.calibrated.sigma * NOISE.normal("objective blocks", (ACTIONS, WIDTH))
    total = max(60 * 0.05, case.calibrated.least_ridge)
    arrays = data.features, data.losses, data.observed
    assert literal.gradient_norm(theta, *arrays, total, tilt.reshape(-1)) > TOLERANCE


@pytest.mark.parametrize(
    "name", ["Logistic-paper-private-radii", "Logistic-gaussian-private-radii"]
)
def test_grams_beside_the_predictor(name):
    """ε/2 each in the paper (σ_G = Δ_G/√(2ρ)); one Rényi budget in the default."""
    case = ORACLES[name]
    data, _, fit = fitted(case, 30)
    X, _ = literal.design(data.features, data.losses, data.observed)
    gram = X.T @ X
    if fit.gram.dense:
        sigma = math.sqrt(2) / math.sqrt(2 * zcdp(PRIVATE.epsilon / 2, PRIVATE.delta))
        W = sigma * NOISE.normal("dense gram", (SIZE, SIZE))
        np.testing.assert_allclose(fit.gram.values, gram + (W + W.T) / 2, rtol=0, atol=SOLVER)
        assert case.calibrated.epsilon == PRIVATE.epsilon / 2
        return
    sigma = case.calibrated.gram
    assert sigma == pytest.approx(case.calibrated.sigma / math.sqrt(2))
    drawn = NOISE.normal("gram", (ACTIONS, WIDTH * (WIDTH + 1) // 2))
    for action in range(ACTIONS):
        block = slice(action * WIDTH, (action + 1) * WIDTH)
        expected = gram[block, block] + block_noise(drawn[action], sigma, WIDTH)
        np.testing.assert_allclose(fit.gram.values[action], expected, rtol=0, atol=SOLVER)


def test_auto_takes_the_smaller_noise_for_the_public_width():
    """Gamma noise grows with p, Gaussian noise with √p."""
    kinds = []
    for p in (2, 200):
        mechanism = dc.Logistic().calibrate(dc.Problem(ACTIONS, p), PRIVATE)
        kinds.append(mechanism.noise)
        alternatives = [
            dc.Logistic(noise=noise).calibrate(dc.Problem(ACTIONS, p), PRIVATE).noise_norm
            for noise in ("gamma", "gaussian")
        ]
        assert mechanism.noise_norm == pytest.approx(min(alternatives), rel=0.02)
    assert kinds == ["gamma", "gaussian"]


def test_an_action_never_played_is_predicted_at_one_half():
    case = ORACLES["Logistic-gaussian-none"]
    data = batch_for(case, 20)
    data.observed[:] = np.arange(ACTIONS) == 1
    weights = case.calibrated.fit(data, NOISE).predictor.weights
    np.testing.assert_allclose(weights[[0, 2]], 0.0, rtol=0, atol=EXACT)
    assert np.abs(weights[1]).max() > 0.01
