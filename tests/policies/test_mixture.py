"""VanillaPO's mixture: quadrature against the direct sum, and the sampler that draws K."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from catalogue import predicting
from discreet.policies.vanilla_po import mixture_nodes
from reference.policy_optimisation import vanilla_component, vanilla_rate
from reference.policy_optimisation import vanilla_po as literal
from tolerances import EXACT

MIXTURE = 1e-10
"""What the mixture's docstring promises for up to 1,000 actions and any length."""

LENGTHS = (1, 2, 3, 15, 16, 17, 33, 100, 1000, 6000)
ACTIONS = (2, 3, 10, 50, 1000)
SIZES = np.geomspace(1e-6, 1e6, 9)
"""η·B·gap, from nothing to everything."""


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def direct(gaps, length):
    """(1/B) Σ_{k<B} softmax(−k·gaps), in slices that fit in memory."""
    total = np.zeros(len(gaps))
    for start in range(0, length, 4096):
        k = np.arange(start, min(length, start + 4096))[:, None]
        total += softmax(-k * gaps).sum(axis=0)
    return total / length


def by_nodes(gaps, length):
    nodes, weights = mixture_nodes(length)
    return weights @ softmax(-nodes[:, None] * gaps)


def gaps_of(kind, n_actions, rng):
    """Gaps of at most one, the best action's being 0."""
    gaps = rng.random(n_actions) if kind == "uniform" else np.geomspace(1e-6, 1.0, n_actions)
    gaps[0] = 0.0
    return gaps


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", ["uniform", "ladder"])
def test_nodes_reproduce_the_direct_sum(kind, length):
    rng = np.random.default_rng(length)
    for n_actions in ACTIONS:
        terms = n_actions * length  # the longest sums are slow: fewer sizes stand for all
        sizes = SIZES if terms < 2**19 else (1e-2, 12.7, 1e4) if terms < 2**23 else (30.0,)
        for size in sizes:
            gaps = size * gaps_of(kind, n_actions, rng) / length
            error = np.abs(by_nodes(gaps, length) - direct(gaps, length)).max()
            assert error < MIXTURE, (n_actions, size)


@pytest.mark.parametrize("length", [*LENGTHS, 4096, 2**16, 2**17, 10**5])
def test_the_worst_losses_we_know(length):
    """One best action and A − 1 equal ones: the summand's poles come closest to the axis.

    1/(1 + (A−1)e^{−kx}) has poles at k = (log(A−1) ± iπ)/x; for A = 1,000 and the centre of the
    last panel there, a 12-point rule would err by 1.1e-11, and ours errs by 2.6e-13.
    """
    k = np.arange(length)
    nodes, weights = mixture_nodes(length)

    def best(k, size, n_actions):
        return 1.0 / (1.0 + (n_actions - 1) * np.exp(-k * (size / length)))

    for n_actions in ACTIONS:
        for size in (*SIZES, *np.geomspace(3.0, 60.0, 40), 12.692):
            exact = best(k, size, n_actions).mean()
            error = abs(weights @ best(nodes, size, n_actions) - exact)
            assert error < 1e-12, (n_actions, size)


LOSSES = [0.42, 0.11, 0.95, 0.13, 0.5]


@pytest.mark.parametrize(("first", "count"), [(1, 5), (3, 3), (7, 1)])
def test_the_sampler_draws_k_and_then_its_softmax(first, count):
    """All K in turn, a fine grid of the second uniform: the law given K, and their mean."""
    released = predicting([LOSSES] * count, first)
    policy = dc.VanillaPO(scale=40.0)
    length, grid = first << count, 2000
    rate = vanilla_rate(40.0, len(LOSSES), length)
    ticks = (np.arange(grid) + 0.5) / grid
    average = np.zeros(len(LOSSES))
    for k in range(length):
        u = np.column_stack([np.full(grid, (k + 0.5) / length), ticks])
        actions = policy.sample(released, np.ones((grid, 1)), u)
        shares = np.bincount(actions, minlength=len(LOSSES)) / grid
        component = vanilla_component(LOSSES, rate, k)
        # Midpoints in an interval of length p number p·grid up to one.
        np.testing.assert_allclose(shares, component, rtol=0, atol=1 / grid)
        average += shares / length
    expected = literal(LOSSES, rate, length)
    np.testing.assert_allclose(average, expected, rtol=0, atol=1 / grid)
    table = policy.probabilities(released, np.ones((1, 1)))
    np.testing.assert_allclose(table[0], expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("first", [1, 3, 7, 1000, 2**20 + 1])
def test_k_stays_inside_the_batch(first):
    """The first and the last uniform give K = 0 and K = B − 1, never B."""
    released = predicting([[1.0, 0.0]], first)
    length = 2 * first
    policy = dc.VanillaPO(scale=2.0**-20 * length**0.5)
    rate = vanilla_rate(policy.scale, 2, length)
    for u, k in ((0.0, 0), (1 - 2**-53, length - 1)):
        chance = vanilla_component([1.0, 0.0], rate, k)[0]
        below, above = chance * (1 - 1e-9), chance * (1 + 1e-9)
        pairs = np.array([[u, below], [u, above]])
        actions = policy.sample(released, np.ones((2, 1)), pairs)
        np.testing.assert_array_equal(actions, [0, 1])
