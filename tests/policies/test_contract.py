"""What every policy promises, checked over the catalogue; and broken policies are caught."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import discreet as dc
from catalogue import (
    ACTIONS,
    POLICIES,
    changed,
    every_policy,
    every_policy_stack,
    features,
    releases,
    signals_for,
    with_signal,
)
from discreet.plan import plan as plans
from discreet.releases.canonical import canonical
from discreet.releases.release import Gram, Predictor, Release
from discreet.releases.released import Released
from tolerances import EXACT

LINKS = ("identity", "logistic", "clip")
GRAMS = ("block", "shared", "dense")


def check_simplex(policy, released, x):
    probabilities = policy.probabilities(released, x)
    assert probabilities.shape[-2:] == (x.shape[-2], released.n_actions)
    assert np.isfinite(probabilities).all()
    assert probabilities.min() >= 0.0
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, rtol=0, atol=EXACT)


def check_rows_alone(policy, released, x):
    together = policy.probabilities(released, x)
    for i in range(len(x)):
        alone = policy.probabilities(released, x[i : i + 1])
        np.testing.assert_allclose(alone[0], together[i], rtol=0, atol=EXACT)


def check_relabelling(policy, released, x):
    order = np.array([2, 0, 1])
    relabelled = policy.probabilities(relabel(released, order), x)
    plain = policy.probabilities(released, x)
    np.testing.assert_allclose(relabelled, plain[:, order], rtol=0, atol=EXACT)


def check_inputs_untouched(policy, released, x):
    u = np.random.default_rng(0).random((len(x), 2))
    kept = x.copy(), u.copy(), [canonical(item.to_json()) for item in released.items]
    policy.probabilities(released, x)
    policy.sample(released, x, u)
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_array_equal(u, kept[1])
    assert [canonical(item.to_json()) for item in released.items] == kept[2]


def check_uniform_at_first(policy, released, x):
    np.testing.assert_array_equal(policy.probabilities(replace(released, items=()), x), 1 / ACTIONS)


def relabel(released, order):
    """The same history with action ``order[a]`` under the name a."""
    width = released.items[0].predictor.weights.shape[-1]
    coordinates = np.concatenate([np.arange(width) + width * a for a in order])

    def gram(item):
        if item.dense:
            return item.values[np.ix_(coordinates, coordinates)]
        return item.values[order] if len(item.values) > 1 else item.values

    signal = np.concatenate([[0], 1 + order])
    return changed(released, lambda w: w[order], gram, lambda s: s[signal])


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("policy", every_policy)
def test_the_contract(policy, link):
    x = features(5)
    for grams in GRAMS if policy.uses_radii else ("block",):
        for count, clear in product((1, 2, 5), signals_for(policy)):
            released = releases(count, link, grams, seed=count, clear=clear)
            check_simplex(policy, released, x)
            check_rows_alone(policy, released, x)
            check_relabelling(policy, released, x)
            check_inputs_untouched(policy, released, x)
            check_uniform_at_first(policy, released, x)


def test_the_catalogue_is_complete():
    assert {type(policies[0]).__name__ for policies in POLICIES.values()} == set(
        plans.POLICIES.built_in
    )
    vanilla = POLICIES["VanillaPO-current"] + POLICIES["VanillaPO-previous"]
    assert {policy.rollout for policy in vanilla} == {"current", "previous"}


@pytest.mark.parametrize("grams", GRAMS)
@pytest.mark.parametrize("policies", every_policy_stack)
def test_seeds_meet_stacks(policies, grams):
    """Features (S, 1, n, p), policies (R,) and releases (S, R, ...) give (S, R, n, A)."""
    seeds, runs = 2, len(policies)
    x = np.stack([features(5, seed) for seed in range(seeds)])
    u = np.random.default_rng(2).random((seeds, 5, 2))
    stacked = dc.stack(policies)
    for clear in signals_for(policies[0]):
        released = releases(3, grams=grams, lead=(seeds, runs), clear=clear)
        together = stacked.probabilities(released, x[:, None])
        actions = stacked.sample(released, x[:, None], u[:, None])
        for seed, (run, policy) in product(range(seeds), enumerate(policies)):
            one = slice_of(released, seed, run)
            expected = policy.probabilities(one, x[seed])
            cell = np.broadcast_to(together, (seeds, runs, 5, ACTIONS))[seed, run]
            np.testing.assert_allclose(cell, expected, rtol=0, atol=EXACT)
            chosen = np.broadcast_to(actions, (seeds, runs, 5))[seed, run]
            np.testing.assert_array_equal(chosen, policy.sample(one, x[seed], u[seed]))


def slice_of(released, seed, run):
    def one(array):
        return array[seed, run]

    return changed(released, one, lambda gram: one(gram.values), one)


@pytest.mark.parametrize("policy", every_policy)
def test_samples_follow_the_probabilities(policy):
    """Over a fine grid of uniforms an action's share is its probability, up to 1/grid."""
    grid = 400
    x = features(1, seed=3)
    ticks = (np.arange(grid) + 0.5) / grid
    u = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    for clear in signals_for(policy):
        released = releases(3, "clip", clear=clear)
        actions = policy.sample(released, np.repeat(x, len(u), axis=0), u)
        shares = np.bincount(actions, minlength=ACTIONS) / len(u)
        expected = policy.probabilities(released, x)[0]
        np.testing.assert_allclose(shares, expected, rtol=0, atol=2 / grid)
        assert (shares[expected == 0.0] == 0.0).all()


@pytest.mark.parametrize("policy", every_policy)
def test_all_policies_begin_with_the_same_actions(policy):
    """Runs are paired: the same uniforms give the same first batch to every algorithm."""
    x, u = features(50), np.random.default_rng(5).random((50, 2))
    nothing = releases(0)
    np.testing.assert_array_equal(policy.sample(nothing, x, u), dc.Uniform().sample(nothing, x, u))


EXTREMES = np.array(
    [
        [0.0, 0.0, 0.0],
        [0.3, 0.3, 0.3],
        [-2.0, -2.0, 7.0],
        [0.0, 1.0, 1e6],
        [-1e6, 0.0, 1e6],
        [1e9, 1e9 + 1, 1e12],
        [1e-300, 1e-9, 1.0],
        [5e-324, 5e-324, 1.0],
        [1.0, 1.0 + 1e-15, 1.0 - 1e-15],
        [-1e-320, 0.0, 0.5],
    ]
)


def released_with(losses, count, clear=(None,)):
    """Releases whose predictions at the rows of the identity matrix are exactly ``losses``."""
    released, rng = Released(losses.shape[1]), np.random.default_rng(3)
    for number in range(1, count + 1):
        gram = Gram(np.zeros((1, len(losses), len(losses))), dense=False, step=1.0)
        predictor = Predictor(losses.T.copy(), "identity")
        records = 2 ** (number - 1)
        made = None
        if clear[0] is not None:
            made = with_signal(rng, np.array(clear[0]), number, records)
            made.signal[1:] = made.signal[1]  # the order below is that of equal errors
        released = released.add(Release(number, records, predictor, gram, statistics=made))
    return released, np.eye(len(losses))


@pytest.mark.parametrize("policy", every_policy)
def test_extreme_predictions(policy):
    """η·B·f of 1e6 and far beyond, equal predictions, predictions outside [0, 1]."""
    counts = (1, 9) if isinstance(policy, dc.BonusPO) else (1, 9, 20)
    for count, clear in product(counts, signals_for(policy)):
        released, x = released_with(EXTREMES, count, clear)
        check_simplex(policy, released, x)
        probabilities = policy.probabilities(released, x)
        if not isinstance(policy, dc.SquareCB | dc.FastCB | dc.AdaCB):  # these favour the first
            np.testing.assert_allclose(probabilities[:2], 1 / 3, rtol=0, atol=EXACT)
        # Radii and errors are equal here, so a smaller prediction never has a smaller probability.
        order = np.argsort(EXTREMES, axis=-1, kind="stable")
        steps = np.diff(np.take_along_axis(probabilities, order, axis=-1), axis=-1)
        assert steps.max() <= EXACT
        for u in (0.0, 1 - 2**-53):
            actions = policy.sample(released, x, np.full((len(x), 2), u))
            assert (probabilities[np.arange(len(x)), actions] > 0.0).all()
