"""The solver's certificate: it holds for every input, and without Newton's help too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalogue import ACTIONS, WIDTH, batch
from discreet.oracles.mechanisms import newton
from discreet.oracles.mechanisms.newton import minimise
from reference.logistic import gradient_norm, minimiser
from tolerances import EXACT

TOLERANCE = 1e-9


def solve(data, ridge, tilt, tolerance=TOLERANCE):
    """Each action's gradient norm is at most TOLERANCE, so the whole one is at most √A of it."""
    weights = data.observed.astype(float)
    values = np.full(ACTIONS, ridge)
    return minimise(data.features, weights, data.losses, values, tilt, tolerance)


def certificate(data, theta, ridge, tilt):
    arrays = data.features, data.losses, data.observed
    return gradient_norm(theta.reshape(-1), *arrays, ridge, tilt.reshape(-1))


def check(data, ridge, tilt):
    theta = solve(data, ridge, tilt)
    rounding = 1e-13 * (len(data.features) + np.abs(tilt).sum())
    assert certificate(data, theta, ridge, tilt) <= TOLERANCE * ACTIONS**0.5 + rounding
    return theta


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 40),
    ridge=st.sampled_from([1e-6, 1e-3, 0.3, 5.0, 1e3]),
    size=st.sampled_from([0.0, 0.1, 10.0, 1e3]),
    feedback=st.sampled_from(["bandit", "full"]),
)
def test_certified_for_any_batch_ridge_and_tilt(seed, rows, ridge, size, feedback):
    data = batch(rows, feedback, seed)
    check(data, ridge, size * np.random.default_rng(seed).normal(size=(ACTIONS, WIDTH)))


def test_separable_labels_and_a_tiny_ridge():
    """Far minimisers, where full Newton steps overshoot."""
    data = batch(200, "full", 4)
    labels = np.repeat((data.features[:, 1:2] > 0).astype(float), ACTIONS, axis=1)
    for ridge in (1e-8, 1e-4):
        check(type(data)(data.features, labels, data.observed), ridge, np.zeros((ACTIONS, WIDTH)))


@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize(("ridge", "size"), [(0.5, 0.0), (0.05, 3.0), (5.0, 100.0)])
def test_accelerated_gradient_alone_certifies(steps, ridge, size, monkeypatch):
    monkeypatch.setattr(newton, "NEWTON_STEPS", steps)
    data = batch(30, "bandit", 2)
    tilt = size * np.random.default_rng(1).normal(size=(ACTIONS, WIDTH))
    theta = check(data, ridge, tilt)
    arrays = data.features, data.losses, data.observed
    expected = minimiser(*arrays, ridge, tilt.reshape(-1))
    np.testing.assert_allclose(theta.reshape(-1), expected, rtol=0, atol=1e-7 / ridge)


@pytest.mark.parametrize(("steps", "tolerance"), [(60, 1e-3), (60, TOLERANCE), (0, TOLERANCE)])
def test_runs_do_not_hear_of_each_other(steps, tolerance, monkeypatch):
    """Newton leaves a solved problem where it is; the fallback goes on, within the certificate."""
    monkeypatch.setattr(newton, "NEWTON_STEPS", steps)
    data = [batch(25, "bandit", seed) for seed in range(2)]
    ridges = np.array([0.05, 2.0, 50.0])
    tilt = np.random.default_rng(3).normal(size=(2, 1, ACTIONS, WIDTH))
    x, y = (np.stack([getattr(d, name) for d in data])[:, None] for name in ("features", "losses"))
    w = np.stack([d.observed for d in data])[:, None].astype(float)
    together = minimise(x, w, y, ridges[:, None], tilt, tolerance)
    assert together.shape == (2, 3, ACTIONS, WIDTH)
    for s in range(2):
        for r, ridge in enumerate(ridges):
            alone = solve(data[s], ridge, tilt[s, 0], tolerance)
            allowed = EXACT / ridge if steps else 2 * tolerance / ridge
            np.testing.assert_allclose(together[s, r], alone, rtol=0, atol=allowed)


def test_single_precision_ends_where_no_step_improves(monkeypatch):
    """With a tolerance below what rounding lets a gradient reach, steps would go on for ever."""
    monkeypatch.setattr(newton, "SINGLE", 1e-12)
    rows, ridges = 8192, np.array([1e-2, 0.3, 1.0, 30.0, 1e3])
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 1, rows, WIDTH)) / 2
    steep = 1 / (1 + np.exp(-40 * x[..., 1:2]))
    y = np.repeat((rng.random(steep.shape) < steep).astype(float), ACTIONS, axis=-1)
    observed = rng.integers(ACTIONS, size=(1, 5, rows, 1)) == np.arange(ACTIONS)
    tilt = rng.normal(size=(1, 1, ACTIONS, WIDTH))
    steps, honest = [], newton.LogisticObjective.hessian

    def counted(objective, means):
        steps.append(1)
        return honest(objective, means)

    exact = minimise(x, observed.astype(float), y, ridges[:, None], tilt, TOLERANCE)
    monkeypatch.setattr(newton.LogisticObjective, "hessian", counted)
    single = (each.astype(np.float32) for each in (x, observed, y, ridges[:, None], tilt))
    made = minimise(*single, TOLERANCE)
    size = np.linalg.norm(exact, axis=-1)
    assert size.max() > 20
    assert (np.linalg.norm(made - exact, axis=-1) < 1e-4 * size).all()
    assert len(steps) < 20


def test_a_step_is_taken_again_only_where_it_was_worse():
    rng = np.random.default_rng(1)
    data = batch(25, "bandit", 3)
    theta = rng.normal(size=(1, 4, ACTIONS, WIDTH))
    weights = np.repeat(data.observed[None, None], 4, axis=1)
    given = data.features[None, None], weights, data.losses[None, None]
    ridge, tilt = np.ones((1, 4, ACTIONS, 1)), rng.normal(size=theta.shape)
    objective = newton.LogisticObjective.of(*given, ridge, tilt)
    other = theta.copy()
    other[:, 2] *= 0.5
    made = newton._again(objective, objective.at(theta), other, np.arange(4) == 2)
    wanted = objective.at(other)
    pairs = zip(
        (made.theta, *made.means, *made[2:]),
        (wanted.theta, *wanted.means, *wanted[2:]),
        strict=True,
    )
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=EXACT)
