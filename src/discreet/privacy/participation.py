"""How often one person may contribute: the vocabulary of the unit "user"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.errors import CorruptRelease, InvalidInput
from discreet.validate import whole


@dataclass(frozen=True)
class Participation:
    """At most ``records`` records of one person in each of at most ``batches`` batches.

    Privacy: neighbours have the same slots and the same owners, and differ in everything that one
    owner says or leaves unsaid in these slots. Silence is covered because releases wait for
    public counts and clocks, never for the last answer. [docs/privacy/users.md, "Neighbours"]

    >>> Participation(batches=10, records=2).text
    'at most 2 records in each of at most 10 batches'
    """

    batches: int = 1
    records: int = 1

    def __post_init__(self) -> None:
        whole("batches_per_user", self.batches, 1)
        whole("records_per_batch", self.records, 1)

    @property
    def text(self) -> str:
        """The bound in words."""
        records, batches = f"{self.records:,} record", f"{self.batches:,} batch"
        return (
            f"at most {records}{'s' * (self.records > 1)} in each of "
            f"at most {batches}{'es' * (self.batches > 1)}"
        )

    @property
    def relation(self) -> str:
        """What two neighbouring streams differ in."""
        return (
            f"replace all that one user says or leaves unsaid: {self.text}; same slots and owners"
        )

    @property
    def assumption(self) -> str:
        """What must be enforced for the bound to hold."""
        return f"Every user has one name, and contributes {self.text}; further slots are void."

    def to_json(self) -> dict[str, int]:
        return {"batches": self.batches, "records": self.records}

    @classmethod
    def from_json(cls, document: Mapping[str, Any] | None) -> Participation | None:
        """What ``to_json`` wrote; None for a ledger whose unit is a record."""
        if document is None:
            return None
        try:
            counts = (document["batches"], document["records"])
        except (KeyError, TypeError):
            counts = (None, None)
        if any(type(count) is not int or count < 1 for count in counts):
            raise CorruptRelease(
                "participation must be two whole numbers, batches and records, above 0; this one "
                "is not. Fetch the ledger again."
            )
        return cls(*counts)


USUAL = Participation(batches=4, records=1)
"""What a plan for users takes unless it is told: the least loss, or near it, where this was
measured. It depends on no data. [docs/results/users.md, "The default"]"""
ONCE = Participation()
"""One record in one batch: what the unit "decision" promises."""


def user_participation(
    user: str | None, batches: int | None, records: int | None
) -> Participation | None:
    """Return the requested bound, or the usual one; None without a column of user ids."""
    if user is not None:
        return Participation(
            USUAL.batches if batches is None else batches,
            USUAL.records if records is None else records,
        )
    if batches is not None or records is not None:
        raise InvalidInput(
            "user must name the column of ids where batches_per_user or records_per_batch is "
            "given; got none. Add --user COLUMN, or leave both out."
        )
    return None
