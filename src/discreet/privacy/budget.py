"""Budget of one record or person, and the bound on how often a person contributes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.errors import CorruptRelease, InvalidInput
from discreet.text import guarantee_text
from discreet.validate import in_range, whole


@dataclass(frozen=True)
class Budget:
    """(ε, δ)-differential privacy of one unit: a record, or all that one user contributes.

    Args:
        epsilon: Above 0; ``Budget.none()`` is ε = ∞.
        delta: In [0, 1); keep it well below one over the number of records. 0 is pure.

    >>> Budget(epsilon=1.0, delta=1e-5)
    Budget(epsilon=1.0, delta=1e-05)
    >>> Budget.none().private
    False
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        epsilon: object = self.epsilon
        number = isinstance(epsilon, (int, float, np.integer, np.floating))
        if isinstance(epsilon, bool) or not number or not self.epsilon > 0:
            quoted = " Write a number, without quotes." * isinstance(epsilon, str)
            raise InvalidInput(
                f"epsilon must be above 0; got {epsilon!r}.{quoted} "
                "Without privacy it is Budget.none(), or --epsilon inf."
            )
        in_range("delta", self.delta, 0.0, 1.0, "Choose it well below 1 / records.", open_high=True)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))

    @classmethod
    def none(cls) -> Budget:
        """Return the non-private setting."""
        return cls(epsilon=math.inf, delta=0.0)

    @property
    def text(self) -> str:
        """``ε = 1, δ = 1e-05``."""
        return guarantee_text(self.epsilon, self.delta)

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)


@dataclass(frozen=True)
class Participation:
    """At most ``records`` records of one person in each of at most ``batches`` batches.

    Privacy: neighbours have the same slots and the same owners, and differ in everything that one
    owner reports or leaves out in these slots. Silence is covered because releases wait for
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
        """Describe the bound in words."""
        records, batches = f"{self.records:,} record", f"{self.batches:,} batch"
        return (
            f"at most {records}{'s' * (self.records > 1)} in each of "
            f"at most {batches}{'es' * (self.batches > 1)}"
        )

    @property
    def relation(self) -> str:
        """Describe the difference between neighbouring streams."""
        return (
            f"replace all that one user says or leaves unsaid: {self.text}; same slots and owners"
        )

    @property
    def assumption(self) -> str:
        """Describe what must be enforced for the bound to hold."""
        return f"Every user has one name, and contributes {self.text}; further slots are void."

    def to_json(self) -> dict[str, int]:
        return {"batches": self.batches, "records": self.records}

    @classmethod
    def from_json(cls, document: Mapping[str, object] | None) -> Participation | None:
        """Read what ``to_json`` wrote; None for a ledger whose unit is a record."""
        if document is None:
            return None
        try:
            return cls(document["batches"], document["records"])  # type: ignore[arg-type]
        except (InvalidInput, LookupError, TypeError):
            raise CorruptRelease(
                "participation must be two whole numbers, batches and records, above 0; this one "
                "is not. Fetch the ledger again."
            ) from None


USUAL = Participation(batches=4, records=1)
"""Default of a plan for users: the least measured loss, or near it.

It depends on no data. [docs/results/users.md, "The default"]"""
ONCE = Participation()
"""One record in one batch: the unit "decision"."""


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
