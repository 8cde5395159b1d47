"""Checks of arguments, the tree of exceptions, and texts that commands, reports and pages share."""

import inspect
import math
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import InvalidInput, errors
from discreet.design.outcome import UNIT_LOSS, unit_loss
from discreet.text import duration
from discreet.validate import in_range, matrix, one_of, positive, whole
from wording import refused

SOURCE = Path(discreet.__file__).parent


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
    for value in (-1e-300, math.nan):
        with refused(InvalidInput, "width must be a number in [0, 1]", repr(value)):
            in_range("width", value, 0.0, 1.0)


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
        unit_loss(value, "x", UNIT_LOSS)


def test_matrix_accepts_finite_terms_with_an_infinite_sum():
    rows = np.full((4, 2), 1.7e308)
    assert matrix("context", rows, 2, "Next.") is rows


TREE = {
    "InvalidInput": ValueError,
    "UnknownDecision": KeyError,
    "LossConflict": ValueError,
    "DecisionClosed": ValueError,
    "NotReady": RuntimeError,
    "BudgetExceeded": RuntimeError,
    "CorruptRelease": ValueError,
    "StateClaimed": RuntimeError,
    "ServiceError": RuntimeError,
    "PrivateData": TypeError,
}


def test_every_error_is_a_discreet_error_and_a_builtin():
    defined = dict(inspect.getmembers(errors, inspect.isclass))
    assert defined.keys() == {"DiscreetError", *TREE}
    for name, builtin in TREE.items():
        assert issubclass(defined[name], errors.DiscreetError)
        assert issubclass(defined[name], builtin)
        assert str(defined[name]("id must be known; it is not.")) == "id must be known; it is not."


def test_durations_are_rounded_before_units_are_chosen():
    seconds = (-0.1, 59, 59.97, 61, 3599.6)
    assert [duration(each) for each in seconds] == ["0 s", "59 s", "1 min", "1 min 1 s", "1 h"]


@pytest.mark.parametrize("text", ['"∞"', "import tomllib"])
def test_texts_of_one_kind_are_made_in_one_module(text):
    files = [path for path in SOURCE.rglob("*.py") if text in path.read_text(encoding="utf-8")]
    assert [path.relative_to(SOURCE).as_posix() for path in files] == ["text.py"]
