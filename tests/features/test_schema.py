"""Schema: declared names, ranges and categories become features in the unit ball."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Category, InvalidInput, Number, Schema
from tolerances import EXACT
from wording import refused

AGE = Number("age", 0, 100)
DEVICE = Category("device", ["phone", "desk"])
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


def test_the_order_of_keys_in_a_context_does_not_matter():
    np.testing.assert_array_equal(SCHEMA.map({"device": "desk", "age": 75}), SCHEMA.map(GOOD))


@pytest.mark.parametrize(("value", "encoded"), [(0, -1.0), (50, 0.0), (100, 1.0), (25.0, -0.5)])
def test_a_range_is_mapped_to_minus_one_to_one(value, encoded):
    assert unscaled(Schema([AGE], squares=False), {"age": value})[0, 1] == pytest.approx(
        encoded, abs=EXACT
    )


def test_numpy_numbers_are_numbers():
    for value in (np.int64(75), np.float32(75), np.float64(75)):
        np.testing.assert_array_equal(SCHEMA.map({**GOOD, "age": value}), SCHEMA.map(GOOD))


def test_one_dict_is_the_list_of_dicts():
    young = {"age": 3, "device": "phone"}
    many = SCHEMA.map([GOOD, young])
    np.testing.assert_array_equal(many, np.vstack([SCHEMA.map(GOOD), SCHEMA.map(young)]))
    np.testing.assert_array_equal(SCHEMA.map(row for row in (GOOD, young)), many)
    assert SCHEMA.map([]).shape == (0, 4)
    assert SCHEMA.is_single(GOOD)
    assert not SCHEMA.is_single([GOOD])


def test_other_has_a_slot_of_its_own():
    schema = Schema([Category("device", ["phone", "desk"], other=True)])
    assert schema.p == 4
    np.testing.assert_allclose(
        unscaled(schema, [{"device": word} for word in ("phone", "desk", "watch")])[:, 1:],
        np.eye(3),
        rtol=EXACT,
    )


def test_other_takes_words_only():
    with refused(InvalidInput, "device", "got a number"):
        Schema([Category("device", ["phone"], other=True)]).map({"device": 7})


def test_clip_clamps_to_the_declared_range():
    schema = Schema([Number("age", 0, 100, clip=True)])
    np.testing.assert_array_equal(schema.map({"age": 1e300}), schema.map({"age": 100}))
    np.testing.assert_array_equal(schema.map({"age": -5}), schema.map({"age": 0}))


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({**GOOD, "agee": 3}, ["features of the schema", "got 1 of another name", "Leave"]),
        ({"age": 3, "devise": "desk"}, ["of another name", "Missing here: 'device'"]),
        ({"age": 3}, ["'device'", "missing"]),
        ({}, ["'age'", "missing"]),
        ({**GOOD, "age": "75"}, ["'age'", "finite number", "got text", "not a string"]),
        ({**GOOD, "age": True}, ["'age'", "finite number", "got a truth value"]),
        ({**GOOD, "age": None}, ["'age'", "finite number", "a missing value"]),
        ({**GOOD, "age": math.nan}, ["'age'", "finite number", "a missing value"]),
        ({**GOOD, "age": math.inf}, ["'age'", "finite number", "not finite"]),
        ({**GOOD, "age": 10**400}, ["'age'", "finite number"]),
        ({**GOOD, "age": [75]}, ["'age'", "finite number", "got a list"]),
        ({**GOOD, "age": 101}, ["'age'", "[0, 100]", "a number outside", "clip=True"]),
        ({**GOOD, "age": -0.001}, ["'age'", "[0, 100]", "a number outside"]),
        ({**GOOD, "device": "desc"}, ["'device'", "'phone', 'desk'", "got text", "spelling"]),
        ({**GOOD, "device": "television"}, ["'device'", "got text"]),
        ({**GOOD, "device": 1}, ["'device'", "got a number"]),
        ({**GOOD, "device": None}, ["'device'", "a missing value"]),
        ([GOOD, 3], ["context", "a dict", "int"]),
        ("age", ["context", "a dict", "str"]),
        (None, ["context", "a dict", "NoneType"]),
        (75, ["context", "a dict", "int"]),
        (np.zeros((1, 3)), ["context", "a dict"]),
    ],
)
def test_bad_contexts_are_refused_with_a_reason(context, words):
    with refused(InvalidInput, *words):
        SCHEMA.map(context)


@pytest.mark.parametrize(
    ("low", "high"),
    [(1, 1), (2, 1), (0, math.inf), (math.nan, 1), ("0", 1), (0, None), (-1.7e308, 1.7e308)],
)
def test_a_range_is_two_finite_numbers_in_order(low, high):
    with refused(InvalidInput, "'age'", "low < high"):
        Number("age", low, high)


@pytest.mark.parametrize("values", [[], ["a", "a"], ["a", 1], "phone", [None]])
def test_categories_are_distinct_words(values):
    with refused(InvalidInput, "'device'", "distinct words"):
        Category("device", values)


@pytest.mark.parametrize("fields", [[], [AGE, AGE], [AGE, Category("age", ["old"])]])
def test_fields_have_distinct_names(fields):
    with refused(InvalidInput, "fields", "distinct names"):
        Schema(fields)


def test_a_schema_is_frozen_and_comparable():
    assert Schema([AGE, DEVICE], squares=False) == SCHEMA
    assert hash(Schema([AGE, DEVICE], squares=False)) == hash(SCHEMA)
    with pytest.raises(AttributeError):
        SCHEMA.fields = ()


finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def schema_and_context(draw):
    fields, context = [], {}
    for index in range(draw(st.integers(1, 5))):
        name = f"field {index}"
        if draw(st.booleans()):
            low, high = sorted(draw(st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))))
            high = high if low < high else math.nextafter(low, math.inf)
            clip = draw(st.booleans())
            fields.append(Number(name, low, high, clip=clip))
            context[name] = draw(finite if clip else st.floats(low, high))
        else:
            words = draw(st.lists(st.text(max_size=3), min_size=1, max_size=4, unique=True))
            other = draw(st.booleans())
            fields.append(Category(name, words, other=other))
            context[name] = draw(st.text() if other else st.sampled_from(words))
    return Schema(fields), context


@given(schema_and_context())
def test_every_legal_context_lies_in_the_unit_ball(both):
    schema, context = both
    features = schema.map(context)
    assert features.shape == (1, schema.p)
    assert np.isfinite(features).all()
    assert features[0, 0] == math.sqrt(0.5)
    assert np.linalg.norm(features) <= 1 + EXACT


def test_the_square_of_a_number_follows_it_as_a_legendre_polynomial():
    schema = Schema([AGE, DEVICE], squares=True)
    features = schema.map(GOOD) * math.sqrt(2) * math.sqrt(3)
    np.testing.assert_allclose(features[:, 1:], [[0.5, -0.125, 0.0, 1.0]], rtol=EXACT)
    assert schema.p == 5


def test_squares_are_for_few_numbers_by_default():
    numbers = [Number(f"x{place}", -1, 1) for place in range(13)]
    assert Schema([*numbers[:12], DEVICE]).squares is True
    assert Schema([*numbers, DEVICE]).squares is False
    assert Schema(numbers, squares=True).p == 27
    with refused(InvalidInput, "squares"):
        Schema(numbers, squares=1)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=12))
def test_with_squares_a_context_stays_in_the_ball_without_a_projection(values):
    schema = Schema([Number(f"x{place}", -1, 1) for place in range(len(values))])
    row = schema.map({f"x{place}": value for place, value in enumerate(values)})[0] * math.sqrt(2)
    expected = np.array([[value, 1.5 * value**2 - 0.5] for value in values]).reshape(-1)
    np.testing.assert_allclose(row[1:], expected / math.sqrt(2 * len(values)), atol=EXACT)
    assert np.linalg.norm(row[1:]) <= 1.0 + EXACT
