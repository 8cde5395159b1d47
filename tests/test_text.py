"""ε and durations, as commands, reports and pages show them."""

from pathlib import Path

import pytest

import discreet
from discreet.text import duration

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


@pytest.mark.parametrize(("text", "home"), [('"∞"', "text.py"), ("import tomllib", "text.py")])
def test_there_is_one_place_for_it(text, home):
    found = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if text in path.read_text(encoding="utf-8")
    ]
    assert found == [home]
