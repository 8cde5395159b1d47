"""The label as a document: everything that the page shows, in canonical JSON, signed on request."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from discreet import __version__
from discreet.billboard.signing import checked_public_key, is_signed, public_key, signature
from discreet.errors import CorruptRelease
from discreet.label.facts import Facts
from discreet.privacy.attacker import attacker
from discreet.privacy.ledger import Ledger
from discreet.releases.canonical import canonical

FORMAT = "discreet-label/1"
ABOUT = ("kind", "experiment", "releases", "head", "key")
"""What a source may tell of itself; what it does not tell is null."""

TRUST = (
    ("The operator", "sees contexts, actions and losses until their batch is released"),
    ("The operator's computer", "draws secret noise, and runs this software unaltered"),
    ("Readers of the releases", "nothing: they may collude and know all other records"),
    ("Other people in the experiment", "nothing: what they receive follows from the releases"),
)
NOT_COVERED = (
    "That somebody took part, how often and when: only what they said is protected.",
    "What the releases teach about people in general, and so about you if you are like them.",
    "The operator, and anybody who gets into the operator's computer before a release.",
    "How long computations take, and other traces of the computer at work.",
    "Facts about you that are known from elsewhere.",
)
PER_RECORD = "Several records of one person: each has the promise, all together have a weaker one."
NAMES = "A person who appears under two names: each name has the promise."


def label_document(
    ledger: Ledger,
    about: Mapping[str, Any],
    *,
    made: str,
    audit: Mapping[str, Any] | None = None,
    facts: Facts | None = None,
) -> dict[str, Any]:
    """Everything that the label says; decimals are text, so that its bytes are canonical."""
    spent, event = ledger.spent(), ledger.bounding_event()
    best, person = attacker(event), ledger.unit == "user"
    stated = (facts or Facts()).to_json()
    return {
        "format": FORMAT,
        "version": __version__,
        "made": made,
        "about": {name: about.get(name) for name in ABOUT},
        "unit": ledger.unit,
        "neighbours": ledger.relation,
        "private": math.isfinite(spent.epsilon),
        "epsilon": repr(spent.epsilon),
        "delta": repr(spent.delta),
        "budget": {"epsilon": repr(ledger.budget.epsilon), "delta": repr(ledger.budget.delta)},
        "charges": len(ledger.entries),
        "mu": None if best.mu is None else repr(best.mu),
        "zcdp": repr(best.zcdp),
        "attacker": {
            "success": repr(best.success),
            "exact": best.exact,
            "sentence": best.sentence(ledger.unit),
        },
        "assumptions": list(spent.assumptions),
        "trust": [{"who": who, "with": what} for who, what in TRUST],
        "not_covered": [NAMES if person else PER_RECORD, *NOT_COVERED],
        "audit": None if audit is None else dict(audit) | {"on": stated["audited_on"]},
        "operator": {name: stated[name] for name in ("operator", "contact", "purpose")},
        "data": stated["data"],
    }


def signed(document: Mapping[str, Any], private_key: bytes) -> bytes:
    """Canonical bytes with the public key and the signature of the document without it."""
    with_key = {**document, "key": public_key(private_key)}
    content = canonical({**with_key, "signature": signature(canonical(with_key), private_key)})
    verified(content, with_key["key"])  # never publish what a reader would refuse
    return content


def verified(content: bytes, key: str) -> dict[str, Any]:
    """The label in signed bytes, without its signature; CorruptRelease if it is not valid."""
    key = checked_public_key(key)
    try:
        document = json.loads(content)
        written = document.pop("signature")
        whole = canonical(document)
        valid = document["format"] == FORMAT and document["key"] == key
    except (ValueError, KeyError, AttributeError, TypeError):
        valid, whole, written = False, b"", None
    if not (valid and is_signed(whole, written, key)):
        raise CorruptRelease(
            "label must be signed by the expected key; this one is not. It was altered or is of "
            "another experiment: fetch it again, and check the public key."
        )
    return document  # type: ignore[no-any-return]
