"""Batch: the one type that holds private rows. The import contract lists its importers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from discreet.errors import PrivateData
from discreet.types import Array, NumpyArray


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Private rows: contexts and losses of people.

    ``features`` (..., n, p); ``losses`` (..., n, A); ``observed`` (..., n, A) bool: one True per
    row for bandit feedback, A for full information, none for a void slot. Losses that were
    not observed are never read. ``control`` (..., n) bool says which records are of the plan's
    control share; None where it has none. ``guardrails`` (n, k) are secondary outcomes as losses,
    NaN where one was not observed; None where none were reported.
    """

    features: Array
    losses: Array
    observed: Array
    control: Array | None = None
    guardrails: NumpyArray | None = None

    def __repr__(self) -> str:
        return "Batch(private)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivateData(
            "Batch must be kept in memory; got a request to serialise it. "
            "Save the learner instead: Learner.save writes a private file."
        )

    def __getstate__(self) -> NoReturn:
        self.__reduce_ex__(None)

    @property
    def records(self) -> int:
        """The public number of slots, filled or not."""
        return int(self.features.shape[-2])

    @property
    def n_actions(self) -> int:
        return int(self.observed.shape[-1])
