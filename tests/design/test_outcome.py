"""Losses and rewards at the border: mapped once, the right way round, refused or clipped."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet import InvalidInput, Loss, Reward
from discreet.batches.saved_state import private_rows
from discreet.design.outcome import declared
from discreet.errors import CorruptRelease, LossConflict
from small_plans import small_plan
from tolerances import EXACT
from wording import refused

FINITE = st.floats(-1e6, 1e6)
KINDS = st.sampled_from([Loss, Reward])


@st.composite
def outcomes(draw, clip=False):
    low, width = draw(FINITE), draw(st.floats(1e-3, 1e6))
    return draw(KINDS)(low, low + width, clip)


@given(outcomes(), st.floats(0, 1))
def test_a_value_in_the_range_is_a_loss_and_comes_back(outcome, share):
    value = min(max(outcome.low + share * (outcome.high - outcome.low), outcome.low), outcome.high)
    loss = outcome.loss_of(value)
    assert 0.0 <= loss <= 1.0
    assert outcome.value_of(loss) == pytest.approx(value, abs=1e-12 * (abs(value) + 1e6))
    assert outcome.losses_of([value, value], (2,)).tolist() == [loss, loss]


@given(outcomes(), st.floats(0, 1), st.floats(0, 1))
def test_differences_and_errors_have_units_and_differences_a_sign(outcome, one, other):
    moved = outcome.value_of(one) - outcome.value_of(other)
    span = outcome.high - outcome.low
    assert outcome.difference_of(one - other) == pytest.approx(moved, abs=1e-9 * (span + 1e6))
    assert outcome.error_of(abs(one - other)) == pytest.approx(abs(moved), abs=1e-9 * (span + 1e6))


def test_a_high_reward_is_a_low_loss():
    assert [Reward(0, 50).loss_of(value) for value in (0, 12.5, 50)] == [1.0, 0.75, 0.0]
    assert [Loss(0, 50).loss_of(value) for value in (0, 12.5, 50)] == [0.0, 0.25, 1.0]
    assert math.copysign(1.0, Reward(-1, 1).loss_of(1)) == 1.0  # not −0.0: bytes are compared
    assert Reward(0, 50).difference_of(0.1) == pytest.approx(-5.0, abs=EXACT)
    assert Reward(0, 50).error_of(0.1) == pytest.approx(5.0, abs=EXACT)


@given(st.floats(0, 1))
def test_the_default_changes_no_bit(value):
    assert Loss().loss_of(value) == value
    assert type(Loss().loss_of(value)) is float
    assert Loss().losses_of([value], (1,))[0] == value


BAD = [math.nan, math.inf, -math.inf, "12.5", None, [1.0], 1j, 10**400]


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("value", BAD)
def test_what_is_no_number_is_refused_even_where_values_are_clipped(value, clip):
    with refused(InvalidInput, "reward must be a", "number"):
        Reward(0, 50, clip).loss_of(value)


@pytest.mark.parametrize("value", [-0.001, 50.001, 1e9, -3])
def test_a_value_outside_is_refused_or_clipped_as_declared(value):
    with refused(InvalidInput, "reward must be a number in [0, 50]", "outside", "public range"):
        Reward(0, 50).loss_of(value)
    with refused(InvalidInput, "row 1: reward must be a number in [0, 50]; got a number outside"):
        Reward(0, 50).losses_of([1.0, value], (2,))
    expected = 1.0 if value < 0 else 0.0
    assert Reward(0, 50, clip=True).loss_of(value) == expected
    assert Reward(0, 50, clip=True).losses_of([value, 50], (2,)).tolist() == [expected, 0.0]


@pytest.mark.parametrize(
    "values", [[0.5, math.nan], [0.5], [[0.5, 0.5]], ["a", "b"], None, [0.5, None]]
)
@pytest.mark.parametrize("clip", [False, True])
def test_arrays_are_taken_whole_or_not_at_all(values, clip):
    with pytest.raises(
        InvalidInput, match=r"losses must be .* of shape \(2,\)|row [01]: loss must be"
    ):
        Loss(0, 1, clip).losses_of(values, (2,))


def test_flags_and_numpy_numbers_are_numbers():
    for value in (True, np.True_, 1, np.int8(1), np.float32(1)):
        assert Reward(0, 2).loss_of(value) == 0.5
    assert Reward(0, 2).losses_of(np.array([True, False]), (2,)).tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    "bounds", [(1, 1), (2, 1), (math.nan, 1), (0, math.inf), (-1e308, 1e308), ("0", 1), (None, 1)]
)
def test_a_range_is_two_finite_numbers(bounds):
    with refused(InvalidInput, "range of the reward must be two finite numbers low < high"):
        Reward(*bounds)


def test_clip_is_true_or_false():
    with refused(InvalidInput, "clip must be True or False", "'yes'"):
        Reward(0, 1, "yes")


def plan(**changes):
    named = {"actions": ["none", "mail", "call"], "outcome": Reward(0, 50)}
    return small_plan(**{**named, "budget": dc.Budget.none(), "first_batch": 2, **changes})


@pytest.mark.parametrize("outcome", [Loss(), Loss(0, 60), Reward(-1, 50, clip=True)])
def test_a_plan_says_its_outcome_and_comes_back(outcome):
    planned = plan(outcome=outcome)
    assert dc.Plan.from_config(planned.to_config()) == planned
    assert declared(planned.to_config()) == outcome
    assert eval(repr(outcome), {"Loss": Loss, "Reward": Reward}) == outcome


def test_a_document_without_an_outcome_has_losses():
    assert declared(None) == declared({}) == Loss()
    for broken in ({"kind": "Gain"}, {"kind": "Reward", "low": "1", "high": "0", "clip": False}, 3):
        with refused(CorruptRelease, "outcome of a plan"):
            declared({"outcome": broken})


def losses(learner):
    return private_rows(learner._store)["losses"]


def test_a_learner_hears_rewards_as_losses():
    learner, twin = dc.Learner(plan()), dc.Learner(plan())
    one = learner.decide(np.zeros(2))
    learner.observe(one.id, reward=12.5)
    assert losses(learner)[0, one.action_index] == 0.75
    learner.observe(one.id, reward=12.5)  # the same again
    with refused(LossConflict):
        learner.observe(one.id, reward=12.25)
    assert losses(learner)[0, one.action_index] == 0.75
    many = twin.decide(np.zeros((2, 2)))
    twin.observe(many.id, reward=[0, 50])
    assert losses(twin)[[0, 1], many.action_index].tolist() == [1.0, 0.0]


def test_a_missing_loss_in_the_units_of_the_outcome_is_translated():
    for outcome, step in ((Reward(0, 50), "missing_loss=0.9"), (Loss(0, 50), "missing_loss=0.1")):
        with refused(InvalidInput, "missing_loss must be", "[0, 1]", step):
            small_plan(outcome=outcome, missing_loss=5)
