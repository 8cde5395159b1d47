"""Plain numbers for one row are the array form: equal chances, the same action for the same u."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from catalogue import POLICIES, features, predicting, releases, with_signal
from discreet.design.schedule import Schedule
from discreet.features.joint import Joint
from discreet.features.offered import OfferedBlocks, OfferedPairs
from discreet.policies import one_row
from discreet.policies.floored import Floored
from discreet.releases.release import Gram, Predictor, Release
from discreet.releases.released import Released
from tolerances import EXACT

BY_ARRAYS = {"BonusPO", "FastCB", "RegCB", "LinUCB", "AdaCB"}
"""Built-in policies without a form in plain numbers."""
BONUS = dc.ReplayBonusPO(learning_rate=0.5, bonus=5.0)
MORE = {
    "ReplayBonusPO": (dc.ReplayBonusPO(), BONUS),
    "AdaptivePO": (dc.AdaptivePO(), dc.AdaptivePO(0.5, 5.0, 3.0)),
}

U = np.array([[0.9, 0.1]])


@st.composite
def asked(draw, policies):
    """A policy, what was released, and the features of one row or what it is offered."""
    policy = draw(st.sampled_from(policies))
    if draw(st.booleans()):
        policy = Floored(policy, draw(st.sampled_from([1e-6, 0.05, 0.2, 1.0])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["plain", "blocks", "pairs"]))
    actions, dimension = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    joint = Joint(dc.UnitBall(dimension), dc.UnitBall(2))
    width, blocks = (joint.p, 1) if kind == "pairs" else (dimension + 1, actions)
    released = Released(actions, Schedule(half_life=draw(st.sampled_from([None, 1, 3]))))
    link = draw(st.sampled_from(["identity", "logistic", "clip"]))
    spread = draw(st.sampled_from([0.1, 1.0, 4.0]))
    clear = draw(st.sampled_from([None, 0.0, 0.3, 0.9, 1.0])) if kind != "pairs" else None
    for number in range(1, draw(st.integers(0, 9)) + 1):
        weights = np.eye(width)[0] + spread * rng.normal(size=(blocks, width))
        rows = rng.normal(size=(blocks, 2**number, width)) / np.sqrt(width)
        gram = Gram(np.swapaxes(rows, 1, 2) @ rows, dense=False, step=1.0)
        made = None
        if clear is not None:
            made = with_signal(rng, np.array(clear), number, 2**number, actions)
        release = Release(number, 2**number, Predictor(weights, link), gram, statistics=made)
        released = released.add(release)
    x = joint.context.map(rng.normal(size=dimension))
    if kind == "plain":
        return policy, released, x
    offered = rng.permutation(actions)[: draw(st.integers(2, actions))][None]
    view = released.offering(offered.shape[1])
    if kind == "blocks":
        return policy, view, OfferedBlocks(x, offered)
    items = joint.action.map(rng.normal(size=(actions, 2)))
    return policy, view, OfferedPairs(joint, x, items, offered)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=24, derandomize=True)
@given(st.data())
def test_every_policy_decides_one_row_as_arrays_do(name, data):
    policy, released, x = data.draw(asked(POLICIES[name] + MORE.get(name, ())))
    u = np.random.default_rng(0).random((24, 2))
    check_same(policy, released, x, u)
    for along in (0, 1) if name not in BY_ARRAYS else ():
        check_same(policy, released, x, borders(policy, released, x, u[:3, :1], along))


def check_same(policy, released, x, u):
    plain = one_row.prepared(policy, released)
    chances = policy.probabilities(released, x)[0]
    np.testing.assert_allclose(plain.probabilities(x), chances, rtol=0, atol=EXACT)
    chosen = [plain.sample(x, *each) for each in u.tolist()]
    # Rounding may move the border between two actions, by no more than EXACT.
    moves = [(0.0, 0.0), (-EXACT, 0.0), (EXACT, 0.0), (0.0, -EXACT), (0.0, EXACT)]
    allowed = [sampled(policy, released, x, np.clip(u + move, 0.0, BELOW_ONE)) for move in moves]
    assert (np.array(allowed) == chosen).any(axis=0).all()


BELOW_ONE = np.nextafter(1.0, 0.0)


def borders(policy, released, x, kept, along):
    """Points where the array form passes from one action to the next, a little to both sides, along
    one coordinate of u while the other is ``kept``."""
    actions = np.tile(np.arange(released.n_actions - 1), len(kept))
    other = np.repeat(kept[:, 0], released.n_actions - 1)
    low, high = np.zeros(len(other)), np.full(len(other), BELOW_ONE)
    for _ in range(45):  # until they are 2^-45 apart, far less than EXACT
        middle = (low + high) / 2
        passed = sampled(policy, released, x, _pair(middle, other, along)) > actions
        low, high = np.where(passed, low, middle), np.where(passed, middle, high)
    ends = np.maximum(low - 3 * EXACT, 0.0), np.minimum(high + 3 * EXACT, BELOW_ONE)
    return np.concatenate([_pair(end, other, along) for end in ends])


def _pair(moving, other, along):
    return np.stack([moving, other] if along == 0 else [other, moving], axis=-1)


def sampled(policy, released, x, u):
    rows = [0] * len(u)
    return policy.sample(released, x[rows] if isinstance(x, np.ndarray) else x.part(rows), u)


def test_a_bonus_is_at_most_one():
    """It matters where losses are predicted above one, and others much below."""
    check_same(BONUS, predicting([[1.1, 1.3, 1.2]] * 2, first=3), np.ones((1, 1)), U)


def test_built_in_policies_are_written_in_plain_numbers():
    for policy in (*(each[0] for each in POLICIES.values()), Floored(dc.Greedy(), 0.1)):
        own = "for_one_row" in vars(type(policy))
        assert own == (type(policy).__name__ not in BY_ARRAYS)


@dataclass(frozen=True)
class _Another(dc.SquareCB):
    """A rule of its own, without a form for one row."""

    def probabilities(self, released, x):
        return dc.Greedy().probabilities(released, x)


@dataclass(frozen=True)
class _Renamed(dc.SquareCB):
    """The same rule."""


def test_a_subclass_with_another_rule_does_not_inherit_plain_numbers():
    released, x = releases(3), features(1)
    check_same(_Another(), released, x, U)
    check_same(_Renamed(), released, x, U)


def test_rules_are_prepared_once_for_a_policy_and_its_releases():
    released, policy = releases(3), dc.SquareCB()
    kept = one_row.prepared(policy, released)
    assert one_row.prepared(policy, released) is kept
    assert one_row.prepared(dc.Greedy(), released) is not kept
    assert one_row.prepared(policy, released.add(releases(4).latest)) is not kept
    assert one_row.prepared(policy, released.offering(2)) is not kept


def test_what_was_prepared_keeps_no_view():
    policy, released = dc.ReplayBonusPO(), releases(3)
    one_row.prepared(policy, released)
    gone = weakref.ref(released)
    del released
    assert gone() is None  # at once, without the collector of cycles


def test_many_rows_many_actions_and_stacks_go_by_arrays(monkeypatch):
    policy, released = dc.SquareCB(), releases(3)
    monkeypatch.setattr(type(policy), "for_one_row", None)  # calling it fails
    many = one_row.sample(policy, released, features(5), np.full((5, 2), 0.4))
    np.testing.assert_array_equal(many, policy.sample(released, features(5), np.full((5, 2), 0.4)))
    assert one_row.probabilities(policy, released, features(5)).shape == (5, 3)
    wide = Predictor(np.eye(one_row.FEW + 1), "identity")
    wide = Released(one_row.FEW + 1).add(Release(1, 1, wide))
    assert one_row.probabilities(policy, wide, np.ones((1, 65))).shape == (1, 65)
    runs = releases(3, lead=(2,))
    stacked = one_row.prepared(policy, runs)
    assert np.shape(stacked.probabilities(features(1))) == (1, 3)
