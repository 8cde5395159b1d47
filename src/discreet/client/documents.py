"""The documents of a billboard: canonical JSON, signed, each with the digest of the one before.

Document 0 is the ``genesis`` with the plan; each later one is a ``release``, a ``burn`` of
batches that will never be released, ``actions`` that joined or left, or a ``restore`` that begins a
new epoch. A document's number is used once, also across restores. [docs/billboard.md]
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from discreet.errors import CorruptRelease, InvalidInput
from discreet.plan.plan import Plan
from discreet.releases.canonical import canonical, digest_of
from discreet.releases.catalogue import ActionChange
from discreet.releases.release import Release
from discreet.types import JsonMapping, JsonObject


def new_private_key() -> bytes:
    """A new private key from the operating system's entropy: keep it outside the database."""
    return bytes(_ed25519().Ed25519PrivateKey.generate().private_bytes_raw())


def public_key(private_key: bytes) -> str:
    """The public key in hexadecimal: what clients pin."""
    return str(_private(private_key).public_key().public_bytes_raw().hex())


def checked_public_key(key: object) -> str:
    """The public key if it is well-formed; otherwise an error."""
    if isinstance(key, str) and re.fullmatch(r"[0-9a-f]{64}", key):
        return key
    raise InvalidInput(
        f"public key must be 64 hexadecimal digits in lower case; got {key!r}. "
        "Ask the operator of the service for it: a key published with a release proves nothing."
    )


def signature(message: bytes, private_key: bytes) -> str:
    """The Ed25519 signature of a message, in hexadecimal. [RFC 8032]"""
    return str(_private(private_key).sign(message).hex())


def is_signed(message: bytes, signed: object, key: str) -> bool:
    """Return whether ``signed`` is the signature of this message by the owner of the public key."""
    if not isinstance(signed, str) or not re.fullmatch(r"[0-9a-f]{128}", signed):
        return False
    ed25519 = _ed25519()
    from cryptography.exceptions import InvalidSignature

    with suppress(InvalidSignature):
        owner = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        owner.verify(bytes.fromhex(signed), message)
        return True
    return False


def _private(key: object) -> Any:
    if not isinstance(key, bytes) or len(key) != 32:
        raise InvalidInput(
            "private key must be 32 bytes; this is not. Make one with new_private_key()."
        )
    return _ed25519().Ed25519PrivateKey.from_private_bytes(key)


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise InvalidInput(
            "cryptography must be installed for signatures; this Python lacks it. "
            "Run pip install 'discreet[client]'."
        ) from None
    return ed25519


FORMAT = "discreet-signed-release/1"
FIELDS = {
    "genesis": {"plan", "key", "max_batches"},
    "release": {"release"},
    "burn": {"burned"},
    "actions": {"change"},
    "restore": {"burned", "kept"},
}
"""The fields that each kind of document has in addition to the shared ones."""

EVALUATED = (
    *("AdaCB", "AdaptivePO", "BonusPO", "FastCB", "Greedy", "LinUCB", "RegCB"),
    *("ReplayBonusPO", "SquareCB", "Uniform", "VanillaPO"),
)
"""The policies that every client evaluates, those in other languages included."""

_SHARED = {"format", "kind", "experiment", "epoch", "number", "unit", "schema", "previous"}


def genesis(plan: Plan, experiment: str, key: str, epoch: int = 1) -> JsonObject:
    """Document 0: the plan, and the public key that signs all that follows."""
    refuse_unevaluated(plan)
    config = plan.to_config()
    return {
        "format": FORMAT,
        "kind": "genesis",
        "experiment": experiment,
        "epoch": epoch,
        "number": 0,
        "unit": plan.unit,
        "schema": digest_of(config["features"]),
        "previous": None,
        "plan": config,
        "key": checked_public_key(key),
        "max_batches": None,  # of this format; the plan says how often one user contributes
    }


def refuse_unevaluated(plan: Plan) -> None:
    """Refuse a policy that the clients of a billboard cannot evaluate."""
    name = type(plan.policy).__name__
    if name not in EVALUATED:
        raise InvalidInput(
            f"plan.policy must be one that the clients of a billboard evaluate "
            f"({', '.join(EVALUATED)}); got {name!r}. Choose one of these, or use a Learner."
        )


def release_document(previous: bytes, release: Release) -> JsonObject:
    """The document of one release; ``previous`` are the signed bytes of the document before."""
    return _after(previous, "release", release=release.to_json())


def burn_document(previous: bytes, burned: Iterable[int]) -> JsonObject:
    """The document that declares batches which will never be released."""
    return _after(previous, "burn", burned=sorted(burned))


def actions_document(previous: bytes, change: ActionChange) -> JsonObject:
    """The document of a change: the actions that joined and left."""
    return _after(previous, "actions", change=change.to_json())


def restore_document(
    kept: bytes, *, epoch: int, number: int, previous: str, burned: Iterable[int]
) -> JsonObject:
    """The document that begins an epoch after a restored backup, whose newest is ``kept``.

    ``epoch`` and ``number`` are one more than the anchor's, ``previous`` is the anchor's digest:
    documents that were published and lost keep their numbers, and clients that saw them can go on.
    """
    last = _after(kept, "restore", burned=sorted(burned))
    remains = {"number": last["number"] - 1, "digest": last["previous"]}
    return {**last, "epoch": epoch, "number": number, "previous": previous, "kept": remains}


def _after(previous: bytes, kind: str, **fields: object) -> JsonObject:
    before = json.loads(previous)
    shared = {name: before[name] for name in _SHARED}
    shared |= {"kind": kind, "number": before["number"] + 1, "previous": digest(previous)}
    return {**shared, **fields}


def with_signature(document: JsonMapping, private_key: bytes) -> bytes:
    """Canonical JSON of a document with the signature of the document without it."""
    signed = {**document, "signature": signature(canonical(document), private_key)}
    return canonical(signed)


def sign(document: JsonObject, private_key: bytes) -> bytes:
    """The bytes to publish; a document that a client would refuse is refused."""
    content = with_signature(document, private_key)
    verify(content, public_key(private_key))
    return content


def digest(content: bytes) -> str:
    """SHA-256 of published bytes: the link of the chain."""
    return hashlib.sha256(content).hexdigest()


def verify(content: bytes, key: str) -> JsonObject:
    """The document in published bytes, without its signature; CorruptRelease if it is not valid."""
    document = signed_by(key, content, "document")
    kind = str(document.get("kind"))
    fields = _SHARED | FIELDS.get(kind, set())
    known = document.get("format") == FORMAT and kind in FIELDS and document.keys() == fields
    if not known or document.get("key", key) != key:
        raise CorruptRelease(
            f"document must be of format {FORMAT!r}, with the fields of its kind and the expected "
            "key; this is another. Read it with the version of discreet that wrote it."
        )
    return document


def signed_by(key: str, content: bytes, what: str) -> JsonObject:
    """The content of signed bytes without its signature; CorruptRelease for another signature.

    Only canonical JSON is accepted, so that every language reads the same content.
    """
    key = checked_public_key(key)
    document: object = None
    with suppress(ValueError, RecursionError):
        document = json.loads(content, parse_float=_whole, parse_int=_whole, parse_constant=_whole)
    if not isinstance(document, dict) or canonical(document) != content:
        raise CorruptRelease(
            f"{what} must be one canonical JSON object without decimals; these bytes are not. "
            "It was cut short or altered: fetch it again."
        )
    signed = document.pop("signature", None)
    if not is_signed(canonical(document), signed, key):
        raise CorruptRelease(
            f"{what} must be signed by the expected key; its signature is not. It was altered or "
            "comes from another service: fetch it again, check the public key."
        )
    return document


def _whole(text: str) -> int:
    """A whole number that every language reads exactly; ValueError for any other number."""
    if abs(int(text)) >= 2**53:
        raise ValueError(text)
    return int(text)
