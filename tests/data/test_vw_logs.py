"""Vowpal Wabbit's logs: what is read, what is refused, and back again."""

import numpy as np
import pytest

from discreet.data.vw_logs import VwLog, read_vw, vw_lines
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
        ("1:0.5 |x a\n", "line 1: a label must be action:cost:probability"),
        ("1:1:1 |x a\n0:1:0.5 |x a\n", "line 2: an action must be counted from 1"),
        ("1:1:1 |x a:red\n", "line 1: the value of a feature"),
        ("1:1:0.5 2:0:0.5 |x a\n", "one label"),
        ("1:1:0.5 a\n", "a bar"),
        ("shared |x a\n0:1:0.5 |a\n0:1:0.5 |a\n", "line 1: a block must have one label"),
        ("|x a\n", "holds none"),
        ("", "holds none"),
    ],
)
def test_mistakes_name_the_line_and_show_nothing_of_it(tmp_path, text, said):
    with pytest.raises(InvalidInput, match=said) as caught:
        read_vw(log(tmp_path, text))
    assert "red" not in str(caught.value)


def test_names_that_cannot_be_written_are_refused():
    rows = VwLog(("a b",), np.ones((1, 1)), np.zeros(1, int), np.ones(1), np.ones(1), 2)
    with pytest.raises(InvalidInput, match="without blanks"):
        list(vw_lines(rows))
