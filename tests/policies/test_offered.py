"""Every policy over what is offered: K in place of A; and draws from probabilities."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from catalogue import (
    ACTIONS,
    POLICIES,
    WIDTH,
    changed,
    every_policy,
    features,
    releases,
    signals_for,
)
from discreet.features.joint import Joint
from discreet.features.offered import OfferedBlocks, OfferedPairs
from discreet.policies.allocation import draw, even_split, is_first_minimum, sampled_order
from discreet.policies.floored import Floored
from discreet.releases.release import Gram, Predictor, Release
from discreet.releases.released import Released
from reference.policy_optimisation import maillard
from tolerances import EXACT

LINK = {"FastCB": "clip"}


def histories(policy):
    """One history for each signal that the policy may read."""
    return [history(policy, clear=clear) for clear in signals_for(policy)]


def history(policy, **rest):
    return releases(4, link=LINK.get(type(policy).__name__, "identity"), **rest)


def of_two(released, kept):
    """The same history, as if only these two actions existed."""
    signal = [0, *(1 + action for action in kept)]
    made = changed(released, lambda w: w[kept], lambda g: g.values[kept], lambda s: s[signal])
    return replace(made, n_actions=len(kept))


@pytest.mark.parametrize("policy", every_policy)
def test_all_blocks_in_their_order_are_plain_features(policy):
    x, u = features(20), np.random.default_rng(0).random((20, 2))
    offered = OfferedBlocks(x, np.tile(np.arange(ACTIONS), (20, 1)))
    for released in histories(policy):
        found, expected = (policy.probabilities(released, each) for each in (offered, x))
        np.testing.assert_allclose(found, expected, atol=EXACT)
        found, expected = (policy.sample(released, each, u) for each in (offered, x))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("policy", every_policy)
def test_a_subset_is_a_plan_of_these_actions_alone(policy):
    x = features(20)
    offered = OfferedBlocks(x, np.tile([2, 0], (20, 1)))
    for released in histories(policy):
        alone = policy.probabilities(of_two(released, [2, 0]), x)
        found = policy.probabilities(released.offering(2), offered)
        np.testing.assert_allclose(found, alone, atol=EXACT)


def test_a_block_from_after_a_release_has_the_largest_of_its_errors():
    errors = np.array([[0.1, 0.4, 0.2], [0.3, 0.1, 0.05]])
    offered = OfferedBlocks(features(4), np.tile([4, 1, 3], (4, 1)))
    found = offered.errors(errors)
    expected = [[[0.4, 0.4, 0.4]] * 4, [[0.3, 0.1, 0.3]] * 4]
    np.testing.assert_array_equal(np.broadcast_to(found, (2, 4, 3)), expected)
    released, policy = history(dc.AdaptivePO(), clear=(0.0,)), dc.AdaptivePO()
    chances = policy.probabilities(released.offering(3), offered)
    losses, own = released.latest.predictor.losses(offered), released.signal[1:]
    for row, each in zip(chances, losses.tolist(), strict=True):
        wide = [own.max(), own[1], own.max()]
        np.testing.assert_allclose(row, maillard(each, wide, policy.scale), rtol=0, atol=EXACT)


def joint_history(policy, joint, count=4):
    rng, released = np.random.default_rng(5), Released(7)
    for number in range(1, count + 1):
        weights = 0.3 * rng.normal(size=(1, joint.p)) + np.eye(joint.p)[0]
        rows = rng.normal(size=(2**number, joint.p)) / np.sqrt(joint.p)
        gram = Gram((rows.T @ rows)[None], dense=False, step=1.0)
        predictor = Predictor(weights, LINK.get(type(policy).__name__, "identity"))
        released = released.add(Release(number, 2 ** (number - 1), predictor, gram))
    return released


# Radii are quadratic in the context: test_joint.py has their forms.
@pytest.mark.parametrize("policy", [case for case in every_policy if not case.values[0].uses_radii])
def test_joint_features_are_blocks_whose_weights_are_the_items(policy):
    """φ(c, a)·θ is linear in (1, c): so items are blocks with weights of their own."""
    joint = Joint(dc.UnitBall(WIDTH - 1), dc.UnitBall(2))
    released, x = joint_history(policy, joint), features(15)
    items = joint.action.map(np.random.default_rng(6).normal(size=(4, 2)))
    rows = joint.rows(np.eye(WIDTH)[:, None], items[None])  # not of contexts: of coordinates
    offset = joint.rows(np.zeros((1, WIDTH)), items)

    def block(weights):
        """Weights (K, p) of contexts for each item."""
        slopes = (rows - offset[None]) @ weights[0]
        constant = offset @ weights[0]
        slopes[0] = 0.0
        made = slopes.T.copy()
        made[:, 0] += np.sqrt(2.0) * constant
        return made

    items_of = tuple(
        replace(item, predictor=replace(item.predictor, weights=block(item.predictor.weights)))
        for item in released.items
    )
    blocks = replace(released, n_actions=4, items=items_of)
    found = policy.probabilities(released.offering(4), OfferedPairs(joint, x, items))
    np.testing.assert_allclose(found, policy.probabilities(blocks, x), atol=1e-10)


@pytest.mark.parametrize("policy", every_policy)
def test_the_order_of_an_offer_does_not_matter(policy):
    joint = Joint(dc.UnitBall(WIDTH - 1), dc.UnitBall(2))
    released, x = joint_history(policy, joint).offering(5), features(12)
    items = joint.action.map(np.random.default_rng(6).normal(size=(7, 2)))
    places = np.tile([0, 2, 3, 5, 6], (12, 1))
    turned = [3, 1, 4, 0, 2]
    plain = policy.probabilities(released, OfferedPairs(joint, x, items, places))
    other = policy.probabilities(released, OfferedPairs(joint, x, items, places[:, turned]))
    np.testing.assert_allclose(other, plain[:, turned], atol=EXACT)
    np.testing.assert_allclose(plain.sum(axis=-1), 1.0, atol=EXACT)


def test_a_block_from_after_a_release_is_predicted_the_mean():
    released, x = history(dc.Greedy()), features(9)
    offered = OfferedBlocks(x, np.tile([0, 1, 2, 3, 4], (9, 1)))
    losses = released.latest.predictor.losses(offered)
    known = released.latest.predictor.losses(x)
    np.testing.assert_allclose(losses[:, :3], known, atol=EXACT)
    np.testing.assert_allclose(losses[:, 3:], np.tile(known.mean(1, keepdims=True), 2), atol=EXACT)
    assert (dc.Greedy().probabilities(released.offering(5), offered)[:, 3:] == 0.0).all()


@pytest.mark.parametrize("name", POLICIES)
def test_a_floor_holds_and_propensities_are_exact(name):
    policy = POLICIES[name][0]
    released, x = history(policy), features(8)
    floored = Floored(policy, 0.05)
    chances = floored.probabilities(released, x)
    assert chances.min() >= 0.05 - EXACT
    np.testing.assert_allclose(chances.sum(axis=-1), 1.0, atol=EXACT)
    rng, draws = np.random.default_rng(0), 4000
    rows = np.repeat(x[:2], draws, axis=0)
    drawn = floored.sample(released, rows, rng.random((len(rows), 2))).reshape(2, draws)
    shares = (drawn[..., None] == np.arange(ACTIONS)).mean(axis=1)
    assert np.abs(shares - chances[:2]).max() < 5.0 * np.sqrt(0.25 / draws)  # the seed is fixed


def test_many_actions_are_drawn_as_few_are():
    """Above 64 another way of the same sums is taken."""
    rng = np.random.default_rng(0)
    weights = rng.random((50, 100))
    weights /= weights.sum(axis=-1, keepdims=True)
    u = rng.random(50)
    wide = draw(weights, u)
    literal = [np.searchsorted(np.cumsum(row), each) for row, each in zip(weights, u, strict=True)]
    np.testing.assert_array_equal(wide, literal)
    losses = rng.integers(3, size=(50, 100)).astype(float)
    first = is_first_minimum(losses)
    np.testing.assert_array_equal(first.argmax(axis=-1), losses.argmin(axis=-1))
    assert (first.sum(axis=-1) == 1).all()


def test_a_ranking_is_drawn_without_replacement():
    p = np.array([0.5, 0.3, 0.2])
    rng, count = np.random.default_rng(0), 6000
    orders = np.array([sampled_order(p, 0, rng.random(3)) for _ in range(count)])
    assert (orders[:, 0] == 0).all()
    share = (orders[:, 1] == 1).mean()
    assert abs(share - 0.3 / 0.5) < 5 * np.sqrt(0.25 / count)


LAST = 1.0 - 2.0**-53


def literal_draw(probabilities, u):
    """The first action whose cumulative probability exceeds u."""
    total = 0.0
    for action, probability in enumerate(probabilities):
        total += probability
        if u < total:
            return action
    raise AssertionError("u must be below the total")


def test_draw_is_the_inverse_distribution_function():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 5, size=(500, 6)).astype(float)
    table[:, 2] += 1.0
    table /= table.sum(axis=1, keepdims=True)
    u = rng.random(500)
    pairs = zip(table, u, strict=True)
    expected = [literal_draw(row, value * row.cumsum()[-1]) for row, value in pairs]
    np.testing.assert_array_equal(draw(table, u), expected)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    weights=st.lists(st.sampled_from([0.0, 0.0, 1e-300, 1e-17, 1 / 3, 0.1, 1.0]), min_size=2),
    u=st.sampled_from([0.0, 2.0**-60, 1 / 3, 0.5, LAST]),
)
def test_an_impossible_action_is_never_drawn(weights, u):
    table = np.array([[*weights, 1.0]])
    table /= table.sum()
    for row in (table, table[:, ::-1]):
        action = draw(row, np.array([u]))[0]
        assert row[0, action] > 0.0


def test_minimisers():
    losses = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(is_first_minimum(losses), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(even_split(losses), [[0, 0.5, 0.5], [1 / 3] * 3])
    # Equality is relative: 1e6 and 1e6 + 1e-7 tie, 1 and 1 + 1e-7 do not.
    close = np.array([[1e6, 1e6 + 1e-7], [1.0, 1.0 + 1e-7]])
    np.testing.assert_array_equal(even_split(close), [[0.5, 0.5], [1.0, 0.0]])
