"""Which slots of a person count: at most k in each of at most M batches; the others are void.

People are keys here and nothing else is known of them, so that a learner, a simulation and a
service can share the rule.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from discreet.privacy.participation import Participation


class Count(NamedTuple):
    """Batches that count, the newest of them, and slots that count there."""

    entered: int = 0
    last: int = 0
    records: int = 0


NEVER = Count()


class PeopleCounts:
    """How often people were handed a slot. Batches come in the order of their numbers, from 1.

    Only the newest batch of a person is known. So a slot of an earlier batch, which several
    processes may still hand out, is void.

    Privacy: a batch counts when a slot of it is handed out, whether or not anybody answers, so
    silence is not free. [docs/privacy/users.md, "Counts must not be forgotten"]

    >>> counts = PeopleCounts(Participation(batches=2, records=1))
    >>> counts.hand_out(["anna", "bob", "anna"], batch=1).tolist()
    [True, True, False]
    >>> [counts.hand_out(["anna"], batch).item() for batch in (2, 3)]
    [True, False]
    """

    def __init__(
        self, participation: Participation, held: Iterable[tuple[Hashable, Count]] = ()
    ) -> None:
        self.participation = participation
        self.held = dict(held)

    def __repr__(self) -> str:
        return "PeopleCounts(private)"

    def hand_out(self, people: Iterable[Hashable], batch: int) -> np.ndarray[Any, Any]:
        """Give each of these people the next slot of a batch; which of the slots count (n,)."""
        held, most, slots = self.held, self.participation, []
        for person in people:
            entered, last, records = held.get(person, NEVER)
            if last != batch:  # their first slot of this batch
                entered, records = entered + 1, 0
            counts = last <= batch and entered <= most.batches and records < most.records
            if counts:
                held[person] = Count(entered, batch, records + 1)
            slots.append(counts)
        return np.array(slots, dtype=bool)

    def use_up(self, person: Hashable) -> None:
        """Let no later slot of this person count, whatever came before.

        Privacy: a person who were forgotten instead could enter M batches more.
        [docs/privacy/users.md, "Counts must not be forgotten"]
        """
        self.held[person] = Count(entered=self.participation.batches)


def slots_that_count(
    people: Sequence[Hashable], lengths: Sequence[int], participation: Participation
) -> np.ndarray[Any, Any]:
    """For all slots of a run: owners (T,) in the order of slots -> which count (T,).

    >>> slots_that_count([7, 7, 7, 7], [1, 2, 1], Participation(2, 1)).tolist()
    [True, True, False, False]
    """
    counts = PeopleCounts(participation)
    ends = pairwise([0, *np.cumsum(lengths).tolist()])
    parts = [counts.hand_out(people[i:j], batch) for batch, (i, j) in enumerate(ends, start=1)]
    return np.concatenate(parts)
