"""Actions that join and leave: public documents, each with the digest of the one before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.errors import CorruptRelease
from discreet.releases.canonical import decode_array, digest_of, encode_array
from discreet.types import Floats, JsonMapping, JsonObject
from discreet.validate import intact

FORMAT = "discreet-actions/1"


@dataclass(frozen=True, eq=False)
class ActionChange:
    """Actions added and removed after so many ``releases``; number 1 is the first change.

    ``rows`` (I, da + 1) are the features of added items. Where actions have blocks there are none,
    and ``batch`` is the first one in which the new actions have theirs.
    """

    number: int
    releases: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    rows: Floats | None = None
    batch: int | None = None
    plan_digest: str = ""
    previous: str = ""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        return digest_of(self.to_json())

    def to_json(self) -> JsonObject:
        """The document whose canonical bytes are hashed and signed."""
        return {
            "format": FORMAT,
            "number": self.number,
            "releases": self.releases,
            "plan": self.plan_digest,
            "previous": self.previous,
            "added": list(self.added),
            "removed": list(self.removed),
            "rows": None if self.rows is None else encode_array(self.rows),
            "batch": self.batch,
        }

    @classmethod
    def from_json(cls, document: JsonMapping) -> ActionChange:
        """The change of a document; refuses anything that discreet would not write."""
        broken = (
            "change of actions must be a document that discreet wrote; this one is not. "
            "Fetch it again."
        )
        with intact(broken):
            rows, batch = document["rows"], document["batch"]
            change = cls(
                int(document["number"]),
                int(document["releases"]),
                tuple(map(str, document["added"])),
                tuple(map(str, document["removed"])),
                None if rows is None else decode_array(rows),
                None if batch is None else int(batch),
                document["plan"],
                document["previous"],
            )
            whole = change.rows is None or (
                change.rows.ndim == 2
                and len(change.rows) == len(change.added)
                and bool((np.einsum("ij,ij->i", change.rows, change.rows) <= 1.0 + 1e-9).all())
            )
            if document["format"] != FORMAT or not whole or digest_of(document) != change.digest:
                raise CorruptRelease(broken)
            return change


def changes_of(documents: Iterable[JsonMapping], plan: str) -> tuple[ActionChange, ...]:
    """Return the changes of documents, if each follows the one before."""
    changes: tuple[ActionChange, ...] = ()
    for document in documents:
        changes = (*changes, following_change(document, changes, plan))
    return changes


def following_change(
    document: JsonMapping, before: Sequence[ActionChange], plan: str
) -> ActionChange:
    """Return the change of a document, if it follows those before."""
    change, number = ActionChange.from_json(document), len(before) + 1
    previous, releases = (before[-1].digest, before[-1].releases) if before else (plan, 0)
    place = (change.number, change.plan_digest, change.previous)
    if place != (number, plan, previous) or change.releases < releases:
        raise CorruptRelease(
            f"change {number} of the actions must follow change {number - 1}; it does not. "
            "A document was altered or is missing: fetch them again."
        )
    return change
