"""A schema as TOML: an exact round trip, and mistakes refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc

EVERY = dc.Schema(
    [
        dc.Number("age", 0, 100, clip=True),
        dc.Number("wage", 1.5, 1e6),
        dc.Flag("member", stand_in=True),
        dc.Category("device", ["phone", "desk"], other=True, indicator=True),
        dc.Category("rooms", [1, 2, 3]),
        dc.Hashed("town", 16),
        dc.Date("seen", ["weekday"]),
    ],
    squares=False,
    products=[("age", "device")],
)


def test_every_kind_of_field_comes_back(tmp_path):
    text = EVERY.to_toml(tmp_path / "schema.toml")
    assert dc.Schema.from_toml(tmp_path / "schema.toml") == EVERY
    assert text.startswith("# A schema")
    assert "public" in text
    assert (tmp_path / "schema.toml").read_text() == text


@given(
    st.text(st.characters(codec="utf-8"), min_size=1),
    st.floats(-1e300, 1e300),
    st.floats(1e-3, 1e300),
    st.lists(st.text(st.characters(codec="utf-8")), min_size=1, unique=True),
)
def test_names_numbers_and_words_are_exact(tmp_path_factory, name, low, width, words):
    if not low < low + width:
        return
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    schema = dc.Schema([dc.Number(name, low, low + width), dc.Category(name + "'", words)])
    schema.to_toml(path)
    assert dc.Schema.from_toml(path) == schema


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one field"),
        ("squares = 1\nfields = 3", "at least one field"),
        ("sqares = true", "Did you mean 'squares'"),
        ('[[fields]]\nkind = "Nmber"', "Did you mean 'Number'"),
        ('[[fields]]\nname = "a"', r"fields\[0\].kind must be one of"),
        ('[[fields]]\nkind = "Number"\nname = "a"\nlow = 0', r"fields\[0\].high must be given"),
        ('[[fields]]\nkind = "Flag"\nname = "a"\nlow = 0', "known keys; got 'low'"),
        ("[[fields", "must be TOML"),
    ],
)
def test_mistakes_are_named(text, said, tmp_path):
    (tmp_path / "schema.toml").write_text(text)
    with pytest.raises(dc.InvalidInput, match=said):
        dc.Schema.from_toml(tmp_path / "schema.toml")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(dc.InvalidInput, match="cannot read"):
        dc.Schema.from_toml(tmp_path / "none.toml")
