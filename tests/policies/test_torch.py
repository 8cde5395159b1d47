"""NumPy and torch run the same rules: probabilities and, with the same u, actions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import discreet as dc
from catalogue import every_policy, every_policy_stack, features, releases, signals_for
from libraries import NO_TORCH
from tolerances import EXACT

torch = pytest.importorskip("torch", reason=NO_TORCH)
pytestmark = pytest.mark.torch


def as_torch(released):
    items = []
    for item in released.items:
        predictor = replace(item.predictor, weights=torch.asarray(item.predictor.weights))
        gram = replace(item.gram, values=torch.asarray(item.gram.values))
        made = item.statistics
        if made is not None:
            made = replace(made, signal=torch.asarray(made.signal))
        items.append(replace(item, predictor=predictor, gram=gram, statistics=made))
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
        for count, clear in product((0, 1, 4), signals_for(policy)):
            check_equal(policy, releases(count, link, grams, clear=clear), x, u)


@pytest.mark.parametrize("policies", every_policy_stack)
def test_a_stack(policies):
    stacked = dc.stack(policies)
    x = np.stack([features(7, seed) for seed in range(2)])[:, None]
    u = np.random.default_rng(1).random((2, 1, 7, 2))
    for clear in signals_for(policies[0]):
        check_equal(stacked, releases(3, lead=(2, len(policies)), clear=clear), x, u)


@pytest.mark.parametrize("policy", every_policy)
def test_single_precision_stays_single_and_close(policy):
    """A campaign may use float32 features; u stays float64."""
    x = features(5)
    u = torch.asarray(np.random.default_rng(2).random((5, 2)))
    for clear in signals_for(policy):
        released = releases(4, "logistic", clear=clear)
        items = tuple(  # signals stay in double precision, as all statistics of a simulation
            replace(
                item,
                predictor=replace(item.predictor, weights=item.predictor.weights.float()),
                gram=replace(item.gram, values=item.gram.values.float()),
            )
            for item in as_torch(released).items
        )
        single = policy.probabilities(replace(released, items=items), torch.asarray(x).float())
        assert single.dtype == torch.float32
        np.testing.assert_allclose(single.sum(-1).numpy(), 1.0, rtol=0, atol=1e-6)
        actions = policy.sample(replace(released, items=items), torch.asarray(x).float(), u)
        assert actions.shape == (5,)
