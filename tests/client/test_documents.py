"""Signed documents: what is written, and that nothing else is accepted."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from client.chains import KEY, OTHER_KEY, PRIVATE_KEY, chain, plan, released, resigned, sign
from discreet.client import documents
from discreet.releases.canonical import canonical
from wording import refused

PLAN = plan(dc.SquareCB())
CHAIN = chain(PLAN, released(PLAN, 2))


def test_a_release_names_unit_schema_and_the_bytes_before():
    document = documents.verify(CHAIN[2], KEY)
    assert document["release"] == released(PLAN, 2).items[1].to_json()
    assert document["previous"] == documents.digest(CHAIN[1])
    assert (document["number"], document["epoch"], document["unit"]) == (2, 1, "decision")
    assert document["schema"] == documents.verify(CHAIN[0], KEY)["schema"]
    assert canonical(json.loads(CHAIN[1])) == CHAIN[1]
    assert chain(PLAN, released(PLAN, 2)) == CHAIN


def test_the_bytes_of_a_genesis_are_pinned():
    """A change here is a new format: clients in the field verify these bytes."""
    assert documents.verify(CHAIN[0], KEY)["plan"] == PLAN.to_config()
    small = dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=dc.Budget(1.0, 1e-5))
    made = documents.sign(
        {**documents.genesis(small, "shop", KEY), "plan": {"n_actions": 2}}, PRIVATE_KEY
    )
    assert documents.digest(made) == (
        "2e081afffa418b8e315fba33e10ddff8ef004c45420f8d02ec26898cf9b2d98a"
    )


@pytest.mark.parametrize("number", range(3))
def test_a_flipped_bit_anywhere_is_refused(number):
    content = CHAIN[number]
    for place in range(len(content)):
        altered = bytearray(content)
        altered[place] ^= 1 << (place % 8)
        with pytest.raises(dc.CorruptRelease):
            documents.verify(bytes(altered), KEY)
    documents.verify(content, KEY)


@pytest.mark.parametrize(
    "changes",
    [{"format": "discreet-signed-release/2"}, {"kind": "more"}, {"kind": []}, {"extra": 1}],
    ids=str,
)
def test_what_is_signed_but_unknown_is_refused(changes):
    document = documents.verify(CHAIN[1], KEY)
    with refused(dc.CorruptRelease, "version of discreet"):
        documents.verify(resigned({**document, **changes}), KEY)


def test_another_key_is_refused():
    other = documents.public_key(OTHER_KEY)
    with refused(dc.CorruptRelease, "signed by the expected key"):
        documents.verify(CHAIN[0], other)
    with refused(dc.CorruptRelease, "the expected"):
        documents.verify(resigned({**documents.verify(CHAIN[0], KEY), "key": other}), KEY)


@pytest.mark.parametrize("value", [0.5, 2**53, -(2**53), float("inf")])
def test_numbers_that_not_every_language_reads_alike_are_never_signed(value):
    document = documents.verify(CHAIN[1], KEY)
    with pytest.raises(ValueError):
        sign({**document, "epoch": value})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values, st.binary())
def test_anything_else_is_refused_in_words(value, raw):
    for content in (canonical(value), canonical({"signature": value}), raw):
        with refused(dc.CorruptRelease):
            documents.verify(content, KEY)


@pytest.mark.parametrize("key", ["", "00", KEY.upper(), KEY[:-1], None, bytes(32)], ids=repr)
def test_a_public_key_must_be_written_as_one(key):
    with refused(dc.InvalidInput, "64 hexadecimal digits"):
        documents.verify(CHAIN[0], key)


@pytest.mark.parametrize("key", [b"", bytes(31), "0" * 64, None], ids=repr)
def test_a_private_key_is_not_shown_in_errors(key):
    with refused(dc.InvalidInput, "32 bytes") as caught:
        documents.public_key(key)
    assert repr(key) not in str(caught.value)


def test_the_signature_is_that_of_rfc_8032():
    """Test 2 of section 7.1."""
    private = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
    signed = (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert documents.signature(bytes([0x72]), bytes.fromhex(private)) == signed


def test_without_cryptography_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from discreet.client import documents\n"
        "documents.new_private_key()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'discreet[client]'" in done.stderr
