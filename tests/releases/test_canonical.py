"""Canonical bytes, arrays as integers with a power of two, files that appear whole."""

import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet import CorruptRelease, InvalidInput
from discreet.releases.canonical import (
    canonical,
    decode_array,
    encode_array,
    read_document,
    write_atomically,
)
from wording import refused

finite = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
arrays = hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=5), elements=finite)


@given(arrays)
def test_values_are_rounded_once_by_at_most_one_bit_of_the_largest_which_is_exact(array):
    once = encode_array(array)
    decoded = decode_array(once)
    assert np.abs(decoded - array).max() <= np.ldexp(np.abs(array).max(), -52)
    place = np.unravel_index(np.argmax(np.abs(array)), array.shape)
    assert decoded[place] == array[place]
    assert encode_array(decoded) == once


@given(st.lists(st.integers(-1022, 1000), min_size=1, max_size=6))
def test_powers_of_two_are_exact_within_53_binades(exponents):
    top = max(exponents)
    powers = np.ldexp(1.0, np.array([max(each, top - 52) for each in exponents]))
    np.testing.assert_array_equal(decode_array(encode_array(powers)), powers)


def test_zeros_without_their_sign_and_nothing():
    np.testing.assert_array_equal(decode_array(encode_array(np.zeros((2, 3)))), np.zeros((2, 3)))
    assert decode_array(encode_array(np.empty((0, 3)))).shape == (0, 3)
    assert encode_array(np.array([-0.0])) == encode_array(np.array([0.0]))


@pytest.mark.parametrize(
    ("integer", "exponent"),
    [
        *((each, 0) for each in (2**53, -(2**53), 1.0, "1", True, None)),
        *((1, each) for each in (972, -1127, 10**9, 1.0, "0", None)),
    ],
)
def test_only_whole_numbers_and_exponents_of_floats_are_decoded(integer, exponent):
    with pytest.raises(CorruptRelease):
        decode_array({"shape": [1], "exponent": exponent, "integers": [integer]})


def test_canonical_bytes_are_sorted_dense_and_ascii():
    assert canonical({"b": 1, "a": [True, None, "ε"]}) == b'{"a":[true,null,"\\u03b5"],"b":1}'
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_have_no_canonical_bytes(value):
    with pytest.raises(ValueError):
        canonical({"a": value})


def test_a_document_that_cannot_be_read_says_why(tmp_path):
    with refused(InvalidInput, "readable", "No such file"):
        read_document(tmp_path / "absent.json")
    cut = tmp_path / "cut.json"
    for content in (b"", b'{"a": 1', b"\xff\xfe\x00", b"not json"):
        cut.write_bytes(content)
        with refused(CorruptRelease, "JSON", "cut short or altered"):
            read_document(cut)
    cut.write_text("[1]")
    with refused(CorruptRelease, "JSON object"):
        read_document(cut)


def test_a_file_appears_whole_with_its_mode(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"first", mode=0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"first", 0o600)
    write_atomically(path, b"second", mode=0o644)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"second", 0o644)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"first", mode=0o600)

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"second", mode=0o600)
    assert path.read_bytes() == b"first"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
