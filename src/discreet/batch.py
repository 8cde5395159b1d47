"""Batch: the one type that holds private rows. The import contract lists its importers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from discreet.errors import PrivateData
from discreet.privacy.sensitivities import LARGEST_BATCH
from discreet.types import Array, NumpyArray

Sums = tuple[NumpyArray, ...]
"""PRIVATE: arrays of integers, each a sum over the rows of a batch."""
SUMMED_TOGETHER = 2**16
"""Rows whose sums are formed at once: they bound memory, and no result depends on them."""


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

    def sums(self, of: Callable[[Batch], Sums]) -> Sums:
        """Return the integer sums over all rows, where ``of`` returns those over some rows."""
        if self.records <= SUMMED_TOGETHER:
            return of(self)
        starts = range(0, self.records, SUMMED_TOGETHER)
        return added((of(self._part(start)) for start in starts), self.records)

    def _part(self, start: int) -> Batch:
        rows = slice(start, start + SUMMED_TOGETHER)
        arrays = self.features, self.losses, self.observed, self.control, self.guardrails
        return Batch(*(None if each is None else each[rows] for each in arrays))


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedBatch(Batch):
    """Private rows that lie in partitions: only their integer sums come here.

    The arrays have no rows. ``summed`` returns the sums of each partition, once.
    """

    size: int = 0
    summed: Callable[[Callable[[Batch], Sums]], Iterable[Sums]] = lambda _: ()

    @property
    def records(self) -> int:
        """The public number of slots, filled or not."""
        return self.size

    def sums(self, of: Callable[[Batch], Sums]) -> Sums:
        """Return the sums over all partitions."""
        return added(self.summed(of), self.size)


def added(parts: Iterable[Sums], records: int) -> Sums:
    """Return the exact total of the integer sums of parts with so many records together.

    Privacy: int64 holds the sums of 2²² records, Python's integers those of any number.
    [docs/privacy/arithmetic.md, "Larger batches"]
    """
    kind = np.int64 if records <= LARGEST_BATCH else object
    total: list[NumpyArray] = []
    for part in parts:
        exact = [each.astype(kind) for each in part]
        total = [a + b for a, b in zip(total, exact, strict=True)] if total else exact
    return tuple(total)
