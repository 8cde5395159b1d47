"""Which slots of a person count: at most k in each of at most M batches; the others are void.

People are keys here and nothing else is known of them, so that a learner, a simulation and a
service can share the rule.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
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


def numbered(people: Iterable[Hashable]) -> np.ndarray[Any, Any]:
    """A whole number for each person, the same wherever they occur.

    >>> numbered(["bob", "anna", "bob"])
    array([0, 1, 0])
    """
    known: dict[Hashable, int] = {}
    return np.asarray([known.setdefault(each, len(known)) for each in people], dtype=np.int64)


def slots_that_count(
    people: np.ndarray[Any, Any], lengths: Sequence[int], participation: Participation
) -> np.ndarray[Any, Any]:
    """For all slots of a run: owners (T,), ``numbered``, in the order of slots -> which count (T,).

    What ``PeopleCounts`` tells slot by slot, by sorting instead of a loop.

    >>> slots_that_count(np.array([7, 7, 7, 7]), [1, 2, 1], Participation(2, 1)).tolist()
    [True, True, False, False]
    """
    order = np.argsort(people, kind="stable")  # a person's slots side by side, as they came
    owner, batch = people[order], np.repeat(np.arange(len(lengths)), lengths)[order]
    new_owner = np.ones(len(owner), dtype=bool)
    new_owner[1:] = owner[1:] != owner[:-1]
    new_batch = new_owner.copy()
    new_batch[1:] |= batch[1:] != batch[:-1]
    entered = _since(new_owner, np.cumsum(new_batch)) + 1
    records = _since(new_batch, np.arange(len(owner))) + 1
    counts = np.empty(len(owner), dtype=bool)
    counts[order] = (entered <= participation.batches) & (records <= participation.records)
    return counts


def _since(begins: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How far numbers have risen since the last place that begins something; the first does."""
    return np.asarray(numbers - numbers[begins][np.cumsum(begins) - 1])
