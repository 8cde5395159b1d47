"""Flag: true or false, and no words for them."""

import numpy as np
import pytest

from discreet import Flag, InvalidInput, Schema
from discreet.errors import kind_of
from wording import refused


@pytest.mark.parametrize(
    ("value", "sign"),
    [(True, 1), (False, -1), (1, 1), (0, -1), (1.0, 1), (np.bool_(True), 1), (np.int8(0), -1)],
)
def test_true_is_plus_one_and_false_minus_one(value, sign):
    out = np.zeros(1)
    Flag("member").write(value, out, 0)
    assert out[0] == sign


@pytest.mark.parametrize("value", ["true", "yes", 2, -1, 0.5, [], b"1"])
def test_nothing_else_is_a_flag(value):
    with refused(InvalidInput, "'member'", "true or false", f"got {kind_of(value)}"):
        Schema([Flag("member")]).map({"member": value})


def test_a_flag_has_no_square():
    assert Schema([Flag("member")], squares=True).p == 2
