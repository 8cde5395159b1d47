"""Which slots of a person count: at most k in each of at most M batches; the others are void.

People are whole numbers here and nothing else is known of them, so that a learner, a simulation and
a service can share the rule.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from discreet.privacy.participation import Participation

ENTERED, LAST, RECORDS = range(3)
"""Columns of the table: batches that count, the newest of them, and slots that count there."""


class PeopleCounts:
    """How often people were handed a slot. Batches come in the order of their numbers, from 1.

    Privacy: a batch counts when a slot of it is handed out, whether or not anybody answers, so
    silence is not free. [docs/privacy/users.md, "Counts must not be forgotten"]

    >>> counts = PeopleCounts(Participation(batches=2, records=1))
    >>> counts.hand_out(np.array([0, 1, 0]), batch=1).tolist()
    [True, True, False]
    >>> [counts.hand_out(np.array([0]), batch).item() for batch in (2, 3)]
    [True, False]
    """

    def __init__(self, participation: Participation, table: Any = None) -> None:
        self.participation = participation
        self.table = np.zeros((0, 3), dtype=np.int64) if table is None else table

    def __repr__(self) -> str:
        return "PeopleCounts(private)"

    def hand_out(self, people: np.ndarray[Any, Any], batch: int) -> np.ndarray[Any, Any]:
        """Give each of these people (n,) the next slot of a batch; which of the slots count."""
        if not len(people):
            return np.zeros(0, dtype=bool)
        self._make_room(int(people.max()) + 1)
        order = np.argsort(people, kind="stable")  # everyone's slots together, in their order
        grouped = people[order]
        starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
        sizes = np.diff(np.r_[starts, len(people)])
        who = grouped[starts]
        entered, last, records = self.table[who].T
        here = last == batch
        before = np.where(here, records, 0)
        may = here | (entered < self.participation.batches)
        room = np.where(may, self.participation.records - before, 0)
        counts = np.empty(len(people), dtype=bool)
        counts[order] = np.arange(len(people)) - np.repeat(starts, sizes) < np.repeat(room, sizes)
        after = np.minimum(before + sizes, self.participation.records)
        news = np.stack([entered + ~here, np.full(len(who), batch), after], axis=1)
        self.table[who[may]] = news[may]
        return counts

    def use_up(self, person: int) -> None:
        """Let no later slot of this person count, whatever came before.

        Privacy: a person who were forgotten instead could enter M batches more.
        [docs/privacy/users.md, "Counts must not be forgotten"]
        """
        self._make_room(person + 1)
        self.table[person] = self.participation.batches, 0, 0

    def _make_room(self, people: int) -> None:
        if people > len(self.table):
            more = np.zeros((max(people, 2 * len(self.table)) - len(self.table), 3), dtype=np.int64)
            self.table = np.concatenate([self.table, more])


def slots_that_count(
    people: np.ndarray[Any, Any], lengths: list[int], participation: Participation
) -> np.ndarray[Any, Any]:
    """For all slots of a run at once: owners (T,) in the order of slots -> which count (T,).

    >>> slots_that_count(np.array([7, 7, 7, 7]), [1, 2, 1], Participation(2, 1)).tolist()
    [True, True, False, False]
    """
    numbers = np.unique(people, return_inverse=True)[1]
    counts = PeopleCounts(participation)
    ends = pairwise([0, *np.cumsum(lengths).tolist()])
    parts = [counts.hand_out(numbers[i:j], batch) for batch, (i, j) in enumerate(ends, start=1)]
    return np.concatenate(parts)
