"""The documents of a billboard: canonical JSON, signed, each with the digest of the one before.

Document 0 is the ``genesis`` with the plan; each later one is a ``release``, a ``burn`` of
batches that will never be released, ``actions`` that joined or left, or a ``restore`` that begins a
new epoch. A document's number is used once, also across restores. [docs/billboard.md]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, NoReturn

from discreet.client.signing import checked_public_key, is_signed, public_key, signature
from discreet.errors import CorruptRelease, InvalidInput
from discreet.plan.plan import Plan
from discreet.releases.action_change import ActionChange
from discreet.releases.canonical import canonical, digest_of
from discreet.releases.release import Release

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
    "AdaCB",
    "AdaptivePO",
    "BonusPO",
    "FastCB",
    "Greedy",
    "LinUCB",
    "RegCB",
    "ReplayBonusPO",
    "SquareCB",
    "Uniform",
    "VanillaPO",
)
"""The policies that every client evaluates, those in other languages included."""

_SHARED = {"format", "kind", "experiment", "epoch", "number", "unit", "schema", "previous"}


def genesis(plan: Plan, experiment: str, key: str, epoch: int = 1) -> dict[str, Any]:
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


def release_document(previous: bytes, release: Release) -> dict[str, Any]:
    """The document of one release; ``previous`` are the signed bytes of the document before."""
    return _after(previous, "release", release=release.to_json())


def burn_document(previous: bytes, burned: Iterable[int]) -> dict[str, Any]:
    """The document that declares batches which will never be released."""
    return _after(previous, "burn", burned=sorted(burned))


def actions_document(previous: bytes, change: ActionChange) -> dict[str, Any]:
    """The document of a change: the actions that joined and left."""
    return _after(previous, "actions", change=change.to_json())


def restore_document(
    kept: bytes, *, epoch: int, number: int, previous: str, burned: Iterable[int]
) -> dict[str, Any]:
    """The document that begins an epoch after a restored backup.

    ``kept`` are the newest signed bytes that the backup holds.

    ``epoch`` and ``number`` are one more than the anchor's, ``previous`` is the anchor's digest:
    documents that were published and lost keep their numbers, and clients that saw them can go on.
    """
    last = _after(kept, "restore", burned=sorted(burned))
    remains = {"number": last["number"] - 1, "digest": last["previous"]}
    return {**last, "epoch": epoch, "number": number, "previous": previous, "kept": remains}


def _after(previous: bytes, kind: str, **fields: Any) -> dict[str, Any]:
    before = json.loads(previous)
    shared = {name: before[name] for name in _SHARED}
    shared |= {"kind": kind, "number": before["number"] + 1, "previous": digest(previous)}
    return {**shared, **fields}


def sign(document: dict[str, Any], private_key: bytes) -> bytes:
    """The bytes to publish: canonical JSON with the signature of the document without it."""
    signed = {**document, "signature": signature(canonical(document), private_key)}
    content = canonical(signed)
    verify(content, public_key(private_key))  # never publish what a client would refuse
    return content


def digest(content: bytes) -> str:
    """SHA-256 of published bytes: the link of the chain."""
    return hashlib.sha256(content).hexdigest()


def verify(content: bytes, key: str) -> dict[str, Any]:
    """The document in published bytes, without its signature; CorruptRelease if it is not valid."""
    key = checked_public_key(key)
    document = _parsed(content)
    signed = document.pop("signature", None)
    if not is_signed(canonical(document), signed, key):
        raise CorruptRelease(
            "document must be signed by the expected key; its signature is not. "
            "It was altered or comes from another service: fetch it again, check the public key."
        )
    kind = document.get("kind")
    if document.get("format") != FORMAT or not isinstance(kind, str) or kind not in FIELDS:
        raise CorruptRelease(
            f"document must be of format {FORMAT!r} and a known kind; this is another. "
            "Read it with the version of discreet that wrote it."
        )
    if document.keys() != _SHARED | FIELDS[kind] or document.get("key", key) != key:
        raise CorruptRelease(
            f"document must have the fields of a {kind} and the expected key; it differs. "
            "Read it with the version of discreet that wrote it."
        )
    return document


def _parsed(content: bytes) -> dict[str, Any]:
    """Parse canonical JSON only, so that every language reads the same content."""
    try:
        document = json.loads(
            content, parse_float=_refuse, parse_int=_whole, parse_constant=_refuse
        )
        same = isinstance(document, dict) and canonical(document) == content
    except (ValueError, RecursionError):
        same = False
    if not same:
        raise CorruptRelease(
            "document must be one canonical JSON object without decimals; these bytes are not. "
            "It was cut short or altered: fetch it again."
        )
    return document  # type: ignore[no-any-return]


def _whole(text: str) -> int:
    """A whole number that every language reads exactly."""
    return int(text) if abs(int(text)) < 2**53 else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)
