"""Schema: declared fields, squares and products become features; its file is TOML."""

import math
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet import Category, Date, Flag, Hashed, InvalidInput, Number, Schema
from discreet.features.schema_file import rounded_powers, rounded_range, schema_of, suggestions
from tolerances import EXACT
from wording import refused

AGE = Number("age", 0, 100)
DEVICE = Category("device", ["phone", "desk"])
MEMBER, AT = Flag("member"), Date("at")
SCHEMA = Schema([AGE, DEVICE], squares=False)
GOOD = {"age": 75, "device": "desk"}


def unscaled(schema, context):
    """Features without 1/√2 and 1/√fields: bias, then the encoded fields."""
    features = schema.map(context) * math.sqrt(2)
    features[:, 1:] *= math.sqrt(len(schema.fields))
    return features


def test_layout_is_bias_then_fields_in_declared_order():
    np.testing.assert_allclose(unscaled(SCHEMA, GOOD), [[1.0, 0.5, 0.0, 1.0]], rtol=EXACT)
    turned = Schema([DEVICE, AGE], squares=False)
    np.testing.assert_allclose(unscaled(turned, GOOD), [[1.0, 0.0, 1.0, 0.5]], rtol=EXACT)
    assert SCHEMA.p == turned.p == 4
    np.testing.assert_array_equal(SCHEMA.map({"device": "desk", "age": 75}), SCHEMA.map(GOOD))


def test_one_dict_is_the_list_of_dicts():
    young = {"age": 3, "device": "phone"}
    many = SCHEMA.map([GOOD, young])
    np.testing.assert_array_equal(many, np.vstack([SCHEMA.map(GOOD), SCHEMA.map(young)]))
    np.testing.assert_array_equal(SCHEMA.map(row for row in (GOOD, young)), many)
    assert SCHEMA.map([]).shape == (0, 4)
    assert SCHEMA.is_single(GOOD)
    assert not SCHEMA.is_single([GOOD])


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"age": 3, "devise": "desk"}, ["of another name", "Missing here: 'device'"]),
        ([GOOD, {**GOOD, "age": 101}], ["row 1: feature 'age'"]),
        *((each, ["context", "a dict"]) for each in ([GOOD, 3], "age", None, 75, np.zeros((1, 3)))),
    ],
)
def test_bad_contexts_are_refused_with_a_reason(context, words):
    with refused(InvalidInput, *words):
        SCHEMA.map(context)


def test_the_square_of_a_number_follows_it_as_a_legendre_polynomial():
    schema = Schema([AGE, DEVICE], squares=True)
    features = schema.map(GOOD) * math.sqrt(2) * math.sqrt(3)
    np.testing.assert_allclose(features[:, 1:], [[0.5, -0.125, 0.0, 1.0]], rtol=EXACT)
    assert schema.p == 5
    assert Schema([MEMBER], squares=True).p == 2, "a flag has no square"


def test_squares_are_for_few_numbers_by_default():
    numbers = [Number(f"x{place}", -1, 1) for place in range(13)]
    assert Schema([*numbers[:12], DEVICE]).squares is True
    assert Schema([*numbers, DEVICE]).squares is False
    assert Schema(numbers, squares=True).p == 27
    with refused(InvalidInput, "squares"):
        Schema(numbers, squares=1)


GAPPED = Number("age", 0, 100, indicator=True)


def test_a_product_follows_the_fields_and_leaves_squares_out():
    schema = Schema([GAPPED, DEVICE], squares=True, products=[("age", "device")])
    assert schema.p == 1 + 3 + 2 + 4
    row = schema.map({"age": 75, "device": "desk"})[0, 1:] * math.sqrt(2 * 4)
    np.testing.assert_allclose(row, [0.5, 0, -0.125, 0, 1, 0, 0.5, 0, 0], atol=EXACT)
    row = schema.map({"device": "desk"})[0, 1:] * math.sqrt(2 * 4)
    np.testing.assert_allclose(row, [0, 1, 0, 0, 1, 0, 0, 0, 1], atol=EXACT)


def test_three_fields_multiply_in_their_order():
    fields = [GAPPED, DEVICE, MEMBER, AT]
    schema = Schema(fields, squares=False, products=[("device", "member", "at")])
    row = schema.map({"age": 0, "device": "desk", "member": False, "at": "2026-03-29T10:00"})[0]
    np.testing.assert_allclose(row[-8:-4], 0.0, atol=EXACT)
    np.testing.assert_allclose(row[-4:], -row[6:10], atol=EXACT)


@pytest.mark.parametrize(
    ("products", "words"),
    [
        ([("age", "devise")], ["'devise'", "Did you mean 'device'?"]),
        ([("age", "age")], ["distinct", "('age', 'age')"]),
        ("age", ["two or more", "'age'"]),
        ([("age", "device"), ("device", "age")], ["distinct", "('device', 'age')"]),
        (7, ["two or more", "7"]),
    ],
)
def test_products_name_fields_of_the_schema(products, words):
    with refused(InvalidInput, "products must", *words):
        Schema([AGE, DEVICE], products=products)


def test_a_schema_that_is_too_wide_is_refused():
    wide = [Hashed("town", 100), Hashed("shop", 50)]
    with refused(InvalidInput, "at most 4096 features", "got 5151", "fewer slots"):
        Schema(wide, products=[("town", "shop")])
    assert Schema([Hashed("town", 4095)]).p == 4096


EVERY = Schema(
    [
        Number("age", 0, 100, clip=True),
        Number("wage", 1.5, 1e6),
        Flag("member", stand_in=True),
        Category("device", ["phone", "desk"], other=True, indicator=True),
        Category("rooms", [1, 2, 3]),
        Hashed("town", 16),
        Date("seen", ["weekday"]),
    ],
    squares=False,
    products=[("age", "device")],
)


def test_every_kind_of_field_comes_back_from_its_file(tmp_path):
    text = EVERY.to_toml(tmp_path / "schema.toml")
    assert Schema.from_toml(tmp_path / "schema.toml") == EVERY
    assert text.startswith("# A schema")
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
    schema = Schema([Number(name, low, low + width), Category(name + "'", words)])
    schema.to_toml(path)
    assert Schema.from_toml(path) == schema


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("squares = 1\nfields = 3", "at least one field"),
        ("sqares = true", "Did you mean 'squares'"),
        ('[[fields]]\nkind = "Nmber"', "Did you mean 'Number'"),
        ('[[fields]]\nname = "a"', r"fields\[0\].kind must be one of"),
        ('[[fields]]\nkind = "Number"\nname = "a"\nlow = 0', r"fields\[0\].high must be given"),
        ('[[fields]]\nkind = "Flag"\nname = "a"\nlow = 0', "known keys; got 'low'"),
        ("[[fields", "must be TOML"),
    ],
)
def test_mistakes_of_a_file_are_named(text, said, tmp_path):
    (tmp_path / "schema.toml").write_text(text)
    with pytest.raises(dc.InvalidInput, match=said):
        Schema.from_toml(tmp_path / "schema.toml")


# --- a first schema from a public sample

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
    at = np.datetime64("2026-03-01T10:00:00", "ns") + np.arange(ROWS) * np.timedelta64(1, "h")
    columns |= {"age": RNG.uniform(18, 79, size=ROWS), "clicked": [0, 1] * 200, "at": at}
    frame = made(columns)
    path = tmp_path / "schema.toml"
    schema = dc.Schema.draft(frame, without=["clicked"], path=path)
    assert [each.name for each in schema.fields] == ["device", "age", "at"]
    assert [each.indicator for each in schema.fields] == [True, False, False]
    assert schema.fields[-1] == dc.Date("at")
    assert dc.Schema.from_toml(path) == schema
    assert "# user_id: It identifies people" in path.read_text()
    assert schema.map(frame).shape == (ROWS, schema.p)
    with pytest.raises(FileExistsError):
        dc.Schema.draft(frame, path=path)
    with pytest.raises(InvalidInput, match="'clicked'"):
        dc.Schema.draft(frame, without=["click"])
