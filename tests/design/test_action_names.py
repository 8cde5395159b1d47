"""Names of actions: words for people, numbers inside, and one way between them."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.design.action_names import action_index, action_name, checked_names
from discreet.errors import InvalidInput
from wording import refused


@dataclass
class Greetings:
    n_actions: int = 3
    actions: tuple[str, ...] | None = ("none", "mail", "call")


NAMED, NUMBERED = Greetings(), Greetings(actions=None)


@given(st.lists(st.integers(0, 2)))
def test_names_and_numbers_say_the_same(numbers):
    names = action_name(NAMED, np.array(numbers, dtype=np.int64))
    assert names.tolist() == [NAMED.actions[number] for number in numbers]
    for values in (names, list(names), names.astype(str), np.array(numbers, dtype=np.int64)):
        assert action_index(NAMED, values).tolist() == numbers


def test_one_is_a_word_or_an_int():
    assert action_name(NAMED, np.int64(1)) == "mail"
    assert type(action_name(NAMED, np.int64(1))) is str
    assert action_index(NAMED, "call") == 2
    assert type(action_index(NAMED, np.str_("call"))) is int
    assert action_index(NAMED, 2) == 2


def test_without_names_numbers_stay():
    assert action_name(NUMBERED, 2) == 2
    assert action_index(NUMBERED, [2, 0]).tolist() == [2, 0]
    with refused(InvalidInput, "action must be a whole number from 0 to 2", "got text", "Plan("):
        action_index(NUMBERED, "mail")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("mial", ["labels must be one of 'none', 'mail', 'call'", "got 'mial'", "mean 'mail'?"]),
        (["mail", "Call"], ["got 'Call'", "mean 'call'?"]),
        ([0, 3], ["got 3"]),
        (-1, ["got -1"]),
        (True, ["got True"]),
        (1.0, ["got 1.0"]),
        (None, ["got None"]),
        (np.array(["mail", None], dtype=object), ["got None"]),
        (["mail", ""], ["got ''"]),
    ],
)
def test_what_names_no_action_is_refused_with_the_nearest_name(value, words):
    with refused(InvalidInput, *words):
        action_index(NAMED, value, "labels", public=True)
    with refused(InvalidInput, "labels must be one of", "that is none of them") as withheld:
        action_index(NAMED, value, "labels")  # private: neither the value nor what is near it
    assert words[0] not in str(withheld.value) or "got" not in words[0]
    assert "Did you mean" not in str(withheld.value)
    assert str(withheld.value).startswith("row 1: ") == (np.ndim(value) > 0)


@pytest.mark.parametrize(
    "names",
    ["mail", ["mail"], [], ["a", "a"], ["a", ""], ["a", " b"], [1, 2], 3, None, ["a", None]],
)
def test_names_are_two_or_more_distinct_words(names):
    with refused(InvalidInput, "actions must be two or more distinct words"):
        checked_names(names)


def test_names_may_come_from_any_list():
    assert checked_names(np.array(["no", "yes please"])) == ("no", "yes please")
    assert all(type(word) is str for word in checked_names(np.array(["no", "yes"])))
