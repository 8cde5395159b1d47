"""A first schema from a public sample."""

from __future__ import annotations

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import InvalidInput
from discreet.features.schema_file import (
    rounded_powers,
    rounded_range,
    schema_of,
    suggestions,
)

RNG = np.random.default_rng(0)
ROWS = 400


def field(values, name="column"):
    (found,) = suggestions({name: np.asarray(values)})
    return found.field


def words(*values):
    return np.asarray(RNG.choice(values, size=ROWS), dtype=object)


def test_numbers_get_round_ranges_and_are_clipped():
    found = field(RNG.uniform(18, 79, size=ROWS))
    assert found == dc.Number("column", 0, 80, clip=True)
    assert field(RNG.uniform(0.111, 0.287, size=ROWS)) == dc.Number("column", 0.1, 0.3, clip=True)


def test_skewed_amounts_are_logarithmic():
    found = field(np.exp(RNG.normal(3, 2, size=ROWS)))
    assert found.log
    assert found.low < 1 < 1000 <= found.high


def test_flags_words_dates_and_hashes():
    assert field(RNG.integers(2, size=ROWS).astype(float)) == dc.Flag("column")
    assert field(RNG.integers(2, size=ROWS).astype(bool)) == dc.Flag("column")
    assert field(words("phone", "desk")) == dc.Category("column", ("desk", "phone"), other=True)
    assert field(words(*(f"town {k}" for k in range(60)))) == dc.Hashed("column", 32)
    assert field(words("2026-03-01", "2026-03-02")) == dc.Date("column", ("weekday",))
    assert field(words("2026-03-01T10:00", "2026-03-02T11:00")) == dc.Date("column")


def test_identifiers_texts_and_constants_are_left_out():
    for values in (np.arange(1000, 1000 + ROWS), [f"a text {k}" for k in range(ROWS)], [3.0] * 9):
        (found,) = suggestions({"column": np.asarray(values)})
        assert found.field is None
        assert found.reason
    with pytest.raises(InvalidInput, match="sample must have a column"):
        schema_of(suggestions({"id": np.arange(ROWS)}))


@given(
    st.floats(-1e9, 1e9),
    st.floats(1e-6, 1e9),
)
def test_rounded_ranges_hold_the_values(low, width):
    high = low + width
    if not low < high:
        return
    below, above = rounded_range(low, high)
    slack = 1e-11 * max(abs(low), abs(high))
    assert below <= low + slack
    assert high <= above + slack
    assert above - below <= 3 * (high - low) + 4 * slack
    if low > 0:
        small, large = rounded_powers(low, high)
        assert small <= low * (1 + 1e-11)
        assert high <= large * (1 + 1e-11)


def test_columns_that_identify_returning_people_are_left_out():
    people = RNG.integers(0, 90, size=ROWS)
    columns = {
        "customer_id": 1000.0 + people,
        "accountNumber": people.astype(str).astype(object),
        "contact": np.array([f"p{each}@example.org" for each in people], dtype=object),
        "ID": people,
        "token": np.array([str(uuid.UUID(int=int(each))) for each in people], dtype=object),
    }
    for found in suggestions(columns):
        assert found.field is None, found
        assert "identifies people" in found.reason
    kept = {"store_id": words("a", "b", "c"), "email": people % 2, "width": people / 7}
    assert all(found.field is not None for found in suggestions(kept))


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_becomes_a_schema_with_comments(library, tmp_path):
    made = library.DataFrame
    columns = {"user_id": RNG.integers(0, 90, size=ROWS), "device": words("phone", "desk", None)}
    frame = made({**columns, "age": RNG.uniform(18, 79, size=ROWS), "clicked": [0, 1] * 200})
    path = tmp_path / "schema.toml"
    schema = dc.Schema.draft(frame, without=["clicked"], path=path)
    assert [each.name for each in schema.fields] == ["device", "age"]
    assert [each.indicator for each in schema.fields] == [True, False]
    assert dc.Schema.from_toml(path) == schema
    assert "# user_id: It identifies people" in path.read_text()
    assert schema.map(frame).shape == (ROWS, schema.p)
    with pytest.raises(FileExistsError):
        dc.Schema.draft(frame, path=path)
    with pytest.raises(InvalidInput, match="'clicked'"):
        dc.Schema.draft(frame, without=["click"])
