"""ε and durations, as commands, reports and pages show them."""

import math
from pathlib import Path

import pytest

import discreet
from discreet.text import duration, epsilon_text

SOURCE = Path(discreet.__file__).parent


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-0.1, "0 s"),
        (0.25, "0.25 s"),
        (59, "59 s"),
        (59.97, "1 min"),
        (61, "1 min 1 s"),
        (3599.6, "1 h"),
        (7_500, "2 h 5 min"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_levels():
    assert [epsilon_text(each) for each in (0.1, 1.0, 1.23456, math.inf)] == [
        *("0.1", "1", "1.235", "∞")
    ]
    assert epsilon_text(1.23456, 3) == "1.23"


@pytest.mark.parametrize(("text", "home"), [('"∞"', "text.py"), ("import tomllib", "text.py")])
def test_there_is_one_place_for_it(text, home):
    found = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if text in path.read_text(encoding="utf-8")
    ]
    assert found == [home]
