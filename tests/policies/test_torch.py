"""NumPy and torch run the same rules: probabilities and, with the same u, actions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from catalogue import every_policy, every_policy_stack, features, releases
from libraries import NO_TORCH
from tolerances import EXACT

torch = pytest.importorskip("torch", reason=NO_TORCH)
pytestmark = pytest.mark.torch


def as_torch(released):
    items = []
    for item in released.items:
        predictor = replace(item.predictor, weights=torch.asarray(item.predictor.weights))
        gram = replace(item.gram, values=torch.asarray(item.gram.values))
        items.append(replace(item, predictor=predictor, gram=gram))
    return replace(released, items=tuple(items))


def check_equal(policy, released, x, u):
    expected = policy.probabilities(released, x)
    other = policy.probabilities(as_torch(released), torch.asarray(x))
    assert other.dtype == torch.float64
    np.testing.assert_allclose(other.numpy(), expected, rtol=0, atol=EXACT)
    actions = policy.sample(as_torch(released), torch.asarray(x), torch.asarray(u))
    # A uniform within 1e-12 of a boundary could fall on either side; these do not.
    np.testing.assert_array_equal(actions.numpy(), policy.sample(released, x, u))


@pytest.mark.parametrize("link", ["identity", "logistic", "clip"])
@pytest.mark.parametrize("policy", every_policy)
def test_one_policy(policy, link):
    x = features(20)
    u = np.random.default_rng(0).random((20, 2))
    for grams in ("block", "shared", "dense") if policy.uses_radii else ("block",):
        for count in (0, 1, 4):
            check_equal(policy, releases(count, link, grams), x, u)


@pytest.mark.parametrize("policies", every_policy_stack)
def test_a_stack(policies):
    stacked = dc.stack(policies)
    x = np.stack([features(7, seed) for seed in range(2)])[:, None]
    u = np.random.default_rng(1).random((2, 1, 7, 2))
    check_equal(stacked, releases(3, lead=(2, len(policies))), x, u)


@pytest.mark.parametrize("policy", every_policy)
def test_single_precision_stays_single_and_close(policy):
    """A campaign may use float32 features; u stays float64."""
    released = releases(4, "logistic")
    items = tuple(
        replace(
            item,
            predictor=replace(item.predictor, weights=item.predictor.weights.float()),
            gram=replace(item.gram, values=item.gram.values.float()),
        )
        for item in as_torch(released).items
    )
    x = features(5)
    single = policy.probabilities(replace(released, items=items), torch.asarray(x).float())
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single.sum(-1).numpy(), 1.0, rtol=0, atol=1e-6)
    u = torch.asarray(np.random.default_rng(2).random((5, 2)))
    actions = policy.sample(replace(released, items=items), torch.asarray(x).float(), u)
    assert actions.shape == (5,)
