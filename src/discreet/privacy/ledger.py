"""Ledger: an immutable list of charges against a budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.design.control import PARTS
from discreet.errors import BudgetExceeded
from discreet.features.frames import new_frame
from discreet.privacy import events
from discreet.privacy.accounting import NOTHING, costliest, epsilon, scaled_event
from discreet.privacy.budget import ONCE, Budget, Participation
from discreet.text import epsilon_text, guarantee_text, html_table
from discreet.types import Frame

RELATION = "replace one record"
RELATION_AS_ANSWERED = f"{RELATION}; which slots are answered, and when, stays the same"
"""Privacy: where the last answer of a batch triggers its release, a silence decides which release
serves other people, and no noise covers it. [docs/privacy/transcript.md, "Silence"]"""
DISJOINT = (
    "Batches are disjoint sets of numbered slots, fixed when a decision is made; "
    "one record enters one batch, and each batch is fitted once."
)

DISJOINT_PARTS = (
    f"{DISJOINT} The control of a batch is a public share of its slots, or of people by a keyed "
    "hash of their ids: a record is in one of the two groups, and a person always in the same one."
)

AS_ANSWERED = (
    "A batch is released when its last answer comes: which slots are answered, and when, is public."
)

UNBOUNDED = events.NonPrivate(
    "no bound is known for several records of one person under a Gaussian objective"
)


@dataclass(frozen=True)
class Entry:
    """One charge: the records that paid, the event, and the reason why partitions are disjoint."""

    partition: str
    event: events.Event
    unit: str = "decision"
    assumption: str = DISJOINT


@dataclass(frozen=True)
class Spent:
    """Guarantee of everything published so far."""

    epsilon: float
    delta: float
    unit: str
    relation: str
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class Ledger:
    """Charges on one partition compose; disjoint partitions take the maximum.

    With a ``participation`` the unit is a person, who may enter so many partitions, with so many
    records each: then the costliest of them compose; the number of partitions is not limited.

    Privacy: one record lies in one partition, so neighbouring streams differ in one
    partition's releases; everything else is post-processing. [paper, Lemma "Privacy when each batch
    is used in one fit"; docs/privacy/transcript.md, "Proof"; docs/privacy/users.md, "Claim"]

    Args:
        budget: Limit for one unit.
        entries: Charges so far.
        unit: "decision" or "user".
        assumption: Why partitions are disjoint.
        participation: How often a person may take part.

    >>> from discreet.privacy.events import Gaussian
    >>> release = Gaussian(multiplier=5.0, sensitivity=1.0)
    >>> ledger = Ledger(Budget(1.0, 1e-5)).charge("batch 1", release).charge("batch 2", release)
    >>> round(ledger.spent().epsilon, 3)
    0.726
    >>> ledger.charge("batch 2", release)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    discreet.errors.BudgetExceeded: charge on 'batch 2' must keep within the budget, ε = 1...
    """

    budget: Budget
    entries: tuple[Entry, ...] = ()
    unit: str = "decision"
    assumption: str = DISJOINT
    """Reason why partitions are disjoint, for later entries."""
    participation: Participation | None = None
    """Bound on the contributions of a person; None where the unit is in one partition."""

    def charge(self, partition: str, event: events.Event, unit: str | None = None) -> Ledger:
        """Return this ledger with one more entry.

        Args:
            partition: The name of a disjoint part of the data, as "batch 3".
            event: What is charged.
            unit: Unit of the entry; by default that of the ledger.

        Raises:
            BudgetExceeded: The sum would exceed the budget; nothing is charged.
        """
        entry = Entry(partition, event, unit or self.unit, self.assumption)
        charged = replace(self, entries=(*self.entries, entry))
        cost = epsilon(charged.cost_event(partition), self.budget.delta)
        if cost > self.budget.epsilon:
            raise BudgetExceeded(
                f"charge on {partition!r} must keep within the budget, {self.budget.text}; "
                f"the total would reach ε = {epsilon_text(cost, 6)}. "
                "Nothing was spent: raise the budget in a new plan, or use other records."
            )
        return charged

    def charge_batch(self, part: str, event: events.Event, control: bool) -> Ledger:
        """Return this ledger after the charge for the release of one batch.

        With a control share the batch has two parts, and each of them pays.
        """
        charged = self
        for each in partitions(part, control):
            charged = charged.charge(each, event)
        return charged

    def spent(self) -> Spent:
        """Return ε and δ of everything published so far, for one unit."""
        worst = epsilon(self.cost_event(), self.budget.delta)
        pure = all(epsilon(entry.event, 0.0) < float("inf") for entry in self.entries)
        assumed = [each for entry in self.entries for each in events.assumptions(entry.event)]
        because = [entry.assumption for entry in self.entries]
        if self.participation is not None:
            because.append(self.participation.assumption)
        return Spent(
            epsilon=worst,
            delta=0.0 if pure else self.budget.delta,
            unit=self.unit,
            relation=self.relation,
            assumptions=tuple(dict.fromkeys(because + assumed)),
        )

    @property
    def relation(self) -> str:
        """Describe the difference between neighbouring streams."""
        assumed = {self.assumption, *(entry.assumption for entry in self.entries)}
        return relation(self.participation, any(AS_ANSWERED in each for each in assumed))

    def cost_event(self, partition: str | None = None) -> events.Event:
        """Return the cost of everything published so far for one unit, as one event.

        For a record that is the costliest partition, or the named one; for a person the costliest
        of those that one may enter.
        """
        charged: dict[str, list[events.Event]] = defaultdict(list)
        for entry in self.entries:
            charged[entry.partition].append(entry.event)
        if self.participation is not None:
            batches = _batch_charges(charged)
            records = self.participation.records
            each = [scaled_event(events.compose(*some), records) or UNBOUNDED for some in batches]
            return costliest(each, self.participation.batches) if each else NOTHING
        names = charged if partition is None else [partition]
        costs = [events.compose(*charged[name]) for name in names]
        return max(costs, key=lambda event: epsilon(event, self.budget.delta), default=NOTHING)

    def bounding_event(self) -> events.Event:
        """Return an event that costs at least what ``cost_event`` does, at every δ.

        The costliest partition at one δ need not be the costliest at another.
        """
        return replace(self, participation=self.participation or ONCE).cost_event()

    def __repr__(self) -> str:
        return f"Ledger({'; '.join(f'{name} {value}' for name, value in self._facts)})"

    def _repr_html_(self) -> str:
        names, kinds, units, costs = self._columns
        rows = zip(names, kinds, map(epsilon_text, costs), units, strict=True)
        caption = ", ".join(f"{name} {value}" for name, value in self._facts)
        return html_table(caption, rows, ("partition", "event", "ε", "unit"))

    @property
    def _facts(self) -> list[tuple[str, str]]:
        spent = self.spent()
        cost = guarantee_text(spent.epsilon, spent.delta) if self.entries else "nothing"
        return [
            ("budget", self.budget.text),
            ("spent", f"{cost} for one {self.unit}"),
            ("charges", f"{len(self.entries)}"),
        ]

    def to_frame(self) -> Frame:
        """Return a row per charge, with its ε at the budget's δ, in the first library installed."""
        *words, costs = self._columns
        names, kinds, units = (np.asarray(each, dtype=object) for each in words)
        frame = {"partition": names, "event": kinds, "unit": units}
        return new_frame({**frame, "epsilon": np.asarray(costs, dtype=np.float64)})

    @property
    def _columns(self) -> tuple[list[str], list[str], list[str], list[float]]:
        """Partition, kind of event, unit and ε alone of each entry."""
        return (
            [each.partition for each in self.entries],
            [type(each.event).__name__ for each in self.entries],
            [each.unit for each in self.entries],
            [epsilon(each.event, self.budget.delta) for each in self.entries],
        )

    def to_json(self) -> dict[str, Any]:
        """Return entries in order; an assumption that several entries share is written once."""
        grouped: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for entry in self.entries:
            event = events.event_json(entry.event)
            charge = {"partition": entry.partition, "event": event, "unit": entry.unit}
            grouped[entry.assumption].append(charge)
        often = self.participation
        return {
            "budget": {"epsilon": repr(self.budget.epsilon), "delta": repr(self.budget.delta)},
            "unit": self.unit,
            "relation": self.relation,
            **({} if often is None else {"participation": often.to_json()}),
            "entries": [
                {"assumption": assumption, "charges": charges}
                for assumption, charges in grouped.items()
            ],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Ledger:
        """Read the ledger that ``to_json`` wrote."""
        budget = document["budget"]
        return cls(
            budget=Budget(float(budget["epsilon"]), float(budget["delta"])),
            unit=document["unit"],
            participation=Participation.from_json(document.get("participation")),
            entries=tuple(entry for group in document["entries"] for entry in entries_of(group)),
        )


def relation(often: Participation | None, on_last_answer: bool) -> str:
    """Describe the difference between neighbouring streams.

    A plan for users never releases on the last answer.
    """
    if often is not None:
        return often.relation
    return RELATION_AS_ANSWERED if on_last_answer else RELATION


def disjoint(*, control: bool, on_last_answer: bool) -> str:
    """Describe why the batches of a plan are disjoint, and what that assumes public."""
    because = DISJOINT_PARTS if control else DISJOINT
    return f"{because} {AS_ANSWERED}" if on_last_answer else because


def entries_of(group: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Read the entries that share an assumption, as ``Ledger.to_json`` wrote them."""
    read = events.event_from_json
    return tuple(
        Entry(each["partition"], read(each["event"]), each["unit"], group["assumption"])
        for each in group["charges"]
    )


def partitions(part: str, control: bool) -> list[str]:
    """Return the partitions that pay for the release of a batch: one, or its two parts."""
    return [f"{part}, {name}" for name in PARTS] if control else [part]


def batch_of_partition(partition: str) -> str:
    """Return the batch that a partition is, or is a part of."""
    whole, _, name = partition.rpartition(", ")
    return whole if name in PARTS else partition


def _batch_charges(charged: Mapping[str, list[events.Event]]) -> list[list[events.Event]]:
    """Return the charges of each batch for a person in one of its parts; if parts differ, both.

    Privacy: a person is never in both parts of a batch. [docs/privacy/lift.md, "People"]
    """
    batches: dict[str, list[list[events.Event]]] = defaultdict(list)
    for partition, some in charged.items():
        parts = batches[batch_of_partition(partition)]
        if some not in parts:
            parts.append(some)
    return [[event for some in parts for event in some] for parts in batches.values()]
