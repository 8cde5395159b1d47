"""Products: the outer product of named fields."""

import math

import numpy as np
import pytest

from discreet import Category, Date, Flag, Hashed, InvalidInput, Number, Schema
from tolerances import EXACT
from wording import refused

AGE = Number("age", 0, 100, indicator=True)
DEVICE = Category("device", ["phone", "desk"])
MEMBER = Flag("member")
AT = Date("at")
FIELDS = [AGE, DEVICE, MEMBER, AT]


def test_a_product_follows_the_fields_and_leaves_squares_out():
    schema = Schema([AGE, DEVICE], squares=True, products=[("age", "device")])
    assert schema.p == 1 + 3 + 2 + 4
    row = schema.map({"age": 75, "device": "desk"})[0, 1:] * math.sqrt(2 * 4)
    np.testing.assert_allclose(row, [0.5, 0, -0.125, 0, 1, 0, 0.5, 0, 0], atol=EXACT)
    row = schema.map({"device": "desk"})[0, 1:] * math.sqrt(2 * 4)
    np.testing.assert_allclose(row, [0, 1, 0, 0, 1, 0, 0, 0, 1], atol=EXACT)


def test_a_product_of_a_date_counts_once_per_part():
    schema = Schema([MEMBER, AT], products=[("at", "member")])
    row = schema.map({"member": True, "at": "2026-03-29T10:00"})[0]
    np.testing.assert_allclose(row[2:6], row[6:], atol=EXACT)
    assert np.linalg.norm(row) == pytest.approx(1.0, abs=EXACT), "1 + 2 parts + 2 in the product"


def test_three_fields_multiply_in_their_order():
    schema = Schema(FIELDS, squares=False, products=[("device", "member", "at")])
    row = schema.map({"age": 0, "device": "desk", "member": False, "at": "2026-03-29T10:00"})[0]
    np.testing.assert_allclose(row[-8:-4], 0.0, atol=EXACT)
    np.testing.assert_allclose(row[-4:], -row[6:10], atol=EXACT)


@pytest.mark.parametrize(
    ("products", "words"),
    [
        ([("age", "devise")], ["'devise'", "Did you mean 'device'?"]),
        ([("age",)], ["two or more", "('age',)"]),
        ([("age", "age")], ["distinct", "('age', 'age')"]),
        (["age"], ["two or more", "'age'"]),
        ("age", ["two or more", "'age'"]),
        ([("age", "device"), ("device", "age")], ["distinct", "twice"]),
        (7, ["two or more", "7"]),
    ],
)
def test_products_name_fields_of_the_schema(products, words):
    with refused(InvalidInput, "products must", *words):
        Schema(FIELDS, products=products)


def test_a_schema_that_is_too_wide_is_refused():
    wide = [Hashed("town", 100), Hashed("shop", 50)]
    with refused(InvalidInput, "at most 4096 features", "got 5151", "fewer slots"):
        Schema(wide, products=[("town", "shop")])
    assert Schema([Hashed("town", 4095)]).p == 4096
