"""Vowpal Wabbit's logs: what is read, what is refused, and back again."""

import numpy as np
import pytest

from discreet.adapters.vowpal_log import vw_lines
from discreet.data.decision_logs import VwLog, log_columns, read_vw
from discreet.errors import InvalidInput


def log(tmp_path, text):
    path = tmp_path / "log.vw"
    path.write_text(text, encoding="utf-8")
    return path


def test_cb_lines(tmp_path):
    read = read_vw(log(tmp_path, "2:0.5:0.25 |x age:0.5 red\n1:1:0.75 tag|user:2 age:3 |x blue\n"))
    assert read.columns == ("age", "red", "user^age", "blue")
    np.testing.assert_array_equal(read.contexts, [[0.5, 1, 0, 0], [0, 0, 6, 1]])
    np.testing.assert_array_equal(read.actions, [1, 0])
    np.testing.assert_array_equal(read.costs, [0.5, 1.0])
    np.testing.assert_array_equal(read.propensities, [0.25, 0.75])
    assert read.n_actions == 2


def test_adf_blocks_with_and_without_blank_lines(tmp_path):
    text = "shared |x a:2\n|a one\n0:0.25:0.5 |a two\n|a three\n"
    other = "shared |x b\n0:1:0.1 |a one\n|a two\n"
    unlabelled = "shared |x c\n|a one\n|a two\n"
    for between in ("\n", ""):
        read = read_vw(log(tmp_path, between.join((text, other, unlabelled))))
        assert (read.columns, read.n_actions) == (("a", "b"), 3)
        np.testing.assert_array_equal(read.actions, [1, 0])
        np.testing.assert_array_equal(read.contexts, [[2, 0], [0, 1]])
        assert read.offers == (("one", "two", "three"), ("one", "two"))
        assert read.played == ["two", "one"]


def test_items_have_features_and_tags_if_they_are_asked_for(tmp_path):
    text = "shared |x a:2\n'film|a year:0.5 drama\n0:0.25:0.5 'play|a year:-1 |b old\n\n"
    path = log(
        tmp_path, text + "shared |x a:1\n0:1:0.5 'play|a year:-1 |b old\n'film|a year:0.5 drama\n"
    )
    read = read_vw(path)
    assert read.offers[0] == ("year:0.5 drama", "year:-1.0 b^old")
    assert not read.same_offers
    tagged = read_vw(path, tags=True)
    assert tagged.offers == (("film", "play"), ("play", "film"))
    assert tagged.played == ["play", "play"]
    assert tagged.items == {
        "film": {"year": 0.5, "drama": 1.0},
        "play": {"year": -1.0, "b^old": 1.0},
    }
    assert tagged.item_vectors() == {"film": [0.5, 1.0, 0.0], "play": [-1.0, 0.0, 1.0]}
    assert log_columns(path)["action"].tolist() == ["year:-1.0 b^old"] * 2


def test_blocks_without_a_shared_line(tmp_path):
    read = read_vw(log(tmp_path, "|a one\n0:1:0.5 |a two\n\n0:0:0.5 |a one\n|a two\n"))
    assert (read.n_actions, read.actions.tolist(), read.contexts.shape) == (2, [1, 0], (2, 0))


TAGGED = "shared |x a\n0:1:0.5 'film|a b\n'play|a c\n\nshared |x a\n0:1:0.5 'film|a "


@pytest.mark.parametrize("adf", [False, True])
def test_what_is_written_is_read_again(tmp_path, adf):
    rng = np.random.default_rng(0)
    rows = VwLog(
        ("a", "b", "c"),
        rng.normal(size=(20, 3)).round(3),
        rng.integers(3, size=20),
        rng.random(20),
        rng.uniform(0.1, 1.0, size=20),
        3,
    )
    read = read_vw(log(tmp_path, "".join(vw_lines(rows, adf=adf))))
    assert read.columns == rows.columns
    for name in ("contexts", "actions", "costs", "propensities"):
        np.testing.assert_array_equal(getattr(read, name), getattr(rows, name))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{TAGGED}c\n'play|a c\n", "line 6: an action must have the same features"),
        ("1:0.5 |x a\n", "line 1: a label must be action:cost:probability"),
        ("1:1:1 |x a\n0:1:0.5 |x a\n", "line 2: an action must be counted from 1"),
        ("1:1:1 |x a:red\n", "line 1: the value of a feature"),
        ("1:1:0.5 2:0:0.5 |x a\n", "one label"),
        ("1:1:0.5 a\n", "a bar"),
        ("shared |x a\n0:1:0.5 |a\n0:1:0.5 |a\n", "line 1: a block must have one label"),
        ("shared |x a\n0:1:0.5 |a b\n|a b\n", "line 1: a block must have different actions"),
        ("shared |x a\n0:1:0.5 |a b\n|\n", "line 3: a line of an action must have features"),
        ("|x a\n", "holds none"),
        ("", "holds none"),
    ],
)
def test_mistakes_name_the_line_and_show_nothing_of_it(tmp_path, text, said):
    with pytest.raises(InvalidInput, match=said) as caught:
        read_vw(log(tmp_path, text), tags=text.startswith(TAGGED))
    assert "red" not in str(caught.value).replace(str(tmp_path), "")


def test_names_that_cannot_be_written_are_refused():
    rows = VwLog(("a b",), np.ones((1, 1)), np.zeros(1, int), np.ones(1), np.ones(1), 2)
    with pytest.raises(InvalidInput, match="without blanks"):
        list(vw_lines(rows))
