"""The words in which arguments are refused, and the values that pass."""

import math

import numpy as np
import pytest

from discreet import InvalidInput
from discreet.design.outcome import UNIT_LOSS
from discreet.design.outcome import unit_loss as loss
from discreet.validate import in_range, matrix, one_of, positive, whole
from wording import refused


@pytest.mark.parametrize(
    "value", [0, -1.0, math.nan, math.inf, True, "1", None, [1.0, 0.0], ["a"], {}, b"1"]
)
def test_positive_refuses(value):
    with refused(InvalidInput, "scale must be a positive finite number", repr(value)):
        positive("scale", value)


def test_in_range_knows_its_ends():
    assert in_range("delta", 0.0, 0.0, 1.0, open_high=True) == 0.0
    assert in_range("width", 1.0, 0.0, 1.0) == 1.0
    with refused(InvalidInput, "delta must be a number in [0, 1)", "1.0"):
        in_range("delta", 1.0, 0.0, 1.0, open_high=True)
    with refused(InvalidInput, "width must be a number in [0, 1]", "-1e-300"):
        in_range("width", -1e-300, 0.0, 1.0)
    with refused(InvalidInput, "nan"):
        in_range("width", math.nan, 0.0, 1.0)


@pytest.mark.parametrize("value", [2.0, "3", True, np.True_, None, math.nan])
def test_whole_takes_whole_numbers_only(value):
    with refused(InvalidInput, "n_actions must be a whole number", repr(value)):
        whole("n_actions", value, 2)


def test_whole_has_a_minimum_and_returns_a_plain_int():
    assert type(whole("n_actions", np.int64(2), 2)) is int
    with refused(InvalidInput, "n_actions must be at least 2; got 1"):
        whole("n_actions", 1, 2)


def test_one_of_names_the_nearest_word():
    assert one_of("feedback", "full", ("bandit", "full")) == "full"
    with refused(InvalidInput, "'bandit', 'full'", "'bandits'", "Did you mean 'bandit'?"):
        one_of("feedback", "bandits", ("bandit", "full"))
    with refused(InvalidInput, "got 3", "Choose one of them."):
        one_of("feedback", 3, ("bandit", "full"))


BAD_LOSSES = [-1e-300, math.nextafter(1.0, 2.0), math.nan, -math.inf, 10**400, "0.5", None]


@pytest.mark.parametrize("value", [*BAD_LOSSES, [0.5], 0.5j], ids=lambda value: str(value)[:12])
def test_a_bad_loss_is_refused(value):
    with refused(InvalidInput, "x must be a number in [0, 1]", "1 for the worst"):
        loss(value, "x", UNIT_LOSS)


def test_matrix_accepts_finite_terms_with_an_infinite_sum():
    rows = np.full((4, 2), 1.7e308)
    assert matrix("context", rows, 2, "Next.") is rows
