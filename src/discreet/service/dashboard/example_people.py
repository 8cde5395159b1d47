"""Contexts of made-up people by the public schema: inputs of a form, and probabilities of actions
for one person, for all and for groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.actions.available_actions import AvailableActions
from discreet.actions.offers import request_offers
from discreet.client.chain import Chain
from discreet.errors import InvalidInput
from discreet.features.category import Category
from discreet.features.column_values import Field
from discreet.features.date import Date
from discreet.features.flag import Flag
from discreet.features.number import Number
from discreet.features.unit_ball import UnitBall
from discreet.plan.plan import Plan
from discreet.releases.policy_view import PolicyView
from discreet.types import Array, NumpyArray

LATEST = 16
"""How many releases the chart over time covers."""
Columns = dict[str, NumpyArray]


def probabilities(plan: Plan, chain: Chain, number: int, features: Array) -> Columns:
    """Return the probabilities of the available actions after a document, by name: (n,) each."""
    # Not through ``PolicyVersions``, which keeps its few versions for decisions.
    until = chain.until(number)
    released, available = _read(PolicyVersion(until.links[-1].digest, until))
    if not available.places:
        return {}
    offers = request_offers(plan, available, features, None, single=False)
    rows = np.asarray(offers.chances(plan.played_policy, released, None))
    return dict(zip(map(label, available.places), rows.T, strict=True))


def named_actions(chain: Chain, number: int, labels: list[str]) -> list[object]:
    """Return the actions behind these labels, as offers name them."""
    until = chain.until(number)
    _, available = _read(PolicyVersion(until.links[-1].digest, until))
    by_label = {label(name): name for name in available.places}
    return [by_label[each] for each in labels]


def label(name: object) -> str:
    """Return the name of an action on the page."""
    return name if isinstance(name, str) else f"action {name}"


@dataclass(frozen=True)
class PolicyVersion:
    """A chain up to a document, and its plan; the digest of the document identifies both."""

    digest: str
    chain: Chain = field(compare=False)
    plan: Plan | None = field(default=None, compare=False)


@lru_cache(LATEST + 2)
def _read(version: PolicyVersion) -> tuple[PolicyView, AvailableActions]:
    """Return the releases of a chain and its actions, cached for all moves of a slider."""
    return version.chain.deciding, version.chain.available_actions


GIVEN = (("given", "given"), ("missing", "missing"))
"""The choices for a value that a context may lack."""


@dataclass(frozen=True)
class FormInput:
    """One input of the form: a slider with a range, a list of words, a date or a word."""

    name: str
    label: str
    low: float = 0.0
    high: float = 0.0
    values: tuple[tuple[str, str], ...] = ()
    kind: str = "range"
    start: str = ""
    feature: Field | None = None

    @property
    def first(self) -> str:
        """Initial value."""
        if self.kind == "range":
            return f"{(self.low + self.high) / 2:g}"
        return self.values[0][0] if self.values else self.start

    @property
    def step(self) -> float:
        return (self.high - self.low) / 200

    def read(self, text: str) -> Any:
        """Return the value of the feature in the form."""
        if isinstance(self.feature, Flag):
            return text == "true"
        whole = isinstance(self.feature, Category) and not self.feature.of_words
        if self.kind != "range" and not whole:
            return text
        try:
            return int(text) if whole else float(text)
        except ValueError:
            raise InvalidInput(
                f"feature {self.label!r} must be a number; got {text!r}. Choose another value."
            ) from None


def controls(plan: Plan) -> list[FormInput]:
    """Return the inputs for the fields of the public schema."""
    if isinstance(plan.contexts, UnitBall):
        each = range(plan.contexts.dimension)
        return [FormInput(f"x{place}", f"number {place}", -1.0, 1.0) for place in each]
    found = []
    for place, feature in enumerate(plan.contexts.fields):
        found.append(_control(f"x{place}", feature))
        if feature.indicator or feature.stand_in is not None:
            found.append(
                FormInput(_gap(found[-1]), f"{feature.name} is", values=GIVEN, kind="list")
            )
    return found


def _control(name: str, feature: Field) -> FormInput:
    if isinstance(feature, Number):
        return FormInput(name, feature.name, feature.low, feature.high, feature=feature)
    if isinstance(feature, Flag):
        values = [("true", "true"), ("false", "false")]
    elif isinstance(feature, Category):
        values = [(str(value), str(value)) for value in feature.values]
        if feature.other:
            values.append((_other(feature), "any other"))
    else:
        kind, start = "text", "any word"
        if isinstance(feature, Date):
            kind, start = "datetime-local", "2026-01-01T12:00"
        return FormInput(name, feature.name, kind=kind, start=start, feature=feature)
    return FormInput(name, feature.name, values=tuple(values), kind="list", feature=feature)


def _other(feature: Category) -> str:
    """Return a value of the same kind that is not in the list."""
    if feature.of_words:  # longer than every word of the list, so it equals none of them
        return "any but " + " ".join(map(str, feature.values))
    return str(1 + max(map(int, feature.values)))


def _gap(control: FormInput) -> str:
    """Return the name of the input that marks a value is missing."""
    return f"{control.name}-given"


def contexts(plan: Plan, inputs: list[FormInput], rows: list[dict[str, object]]) -> list[object]:
    """Return the contexts of the form, as the plan reads them."""
    if isinstance(plan.contexts, UnitBall):
        return [[row[each.name] for each in inputs] for row in rows]
    named = [each for each in inputs if each.feature is not None]
    return [
        {each.label: row[each.name] for each in named if row.get(_gap(each)) != "missing"}
        for row in rows
    ]


EXAMPLES = 400
"""Made-up people; fewer where there are many actions."""
MOST_PAIRS = 400_000
NAMED = 6
"""The most actions that have a column of their own."""
COMPARED = 200
"""Up to so many actions groups of people are shown, and an explanation compares all actions."""
COLUMNS = 6
"""The most columns of the schema that are shown."""
Row = dict[str, object]
THIRDS = ("low", "middle", "high")


@dataclass(frozen=True)
class Segment:
    """People with one value of a column, or with numbers in one third of its range."""

    column: str
    value: str
    shares: tuple[float, ...]


@dataclass(frozen=True)
class ExampleShares:
    """The mean probability of each action over made-up people, of all and of each segment."""

    people: int
    actions: tuple[str, ...]
    shares: tuple[float, ...]
    others: int
    segments: tuple[Segment, ...]


def example_shares(plan: Plan, chain: Chain, number: int) -> ExampleShares | None:
    """Return the shares after a document; None if there is no action."""
    until = chain.until(number)
    return _shares(PolicyVersion(until.links[-1].digest, until, plan))


@lru_cache(64)
def _shares(version: PolicyVersion) -> ExampleShares | None:
    plan, chain = version.plan, version.chain
    assert plan is not None
    inputs, number = controls(plan), chain.links[-1].number
    count = len(chain.available_actions.places)
    people = max(20, min(EXAMPLES, MOST_PAIRS // max(1, count)))
    rows = _drawn(plan, inputs, people)

    def found(rows: list[Row]) -> dict[str, float]:
        columns = probabilities(
            plan, chain, number, plan.features.map(contexts(plan, inputs, rows))
        )
        return {name: float(values.mean()) for name, values in columns.items()}

    overall = found(rows)
    if not overall:
        return None
    actions = sorted(overall, key=lambda name: -overall[name])[:NAMED]
    actions = [name for name in overall if name in actions]
    segments = []
    for column, value, some in _segments(inputs, rows) if count <= COMPARED else ():
        of_some = found(some)
        segments.append(Segment(column, value, tuple(of_some[name] for name in actions)))
    shares = tuple(overall[name] for name in actions)
    return ExampleShares(people, tuple(actions), shares, count - len(actions), tuple(segments))


def _drawn(plan: Plan, inputs: list[FormInput], people: int) -> list[Row]:
    """Contexts that are spread evenly over declared ranges and values, always the same ones."""
    rng = np.random.default_rng(0)
    if isinstance(plan.contexts, UnitBall):
        points = rng.standard_normal((people, len(inputs)))
        radii = rng.random(people) ** (1 / len(inputs)) / np.linalg.norm(points, axis=1)
        return [
            dict(zip([each.name for each in inputs], row, strict=True))
            for row in (points * radii[:, None]).tolist()
        ]
    columns = {each.name: _values(each, rng.random(people)) for each in inputs}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _numbers(control: FormInput, at: NumpyArray) -> list[float]:
    """Numbers at these shares of a range, or of its logarithms."""
    ends = np.array([control.low, control.high])
    if isinstance(control.feature, Number) and control.feature.log:
        return list(np.exp(np.interp(at, (0.0, 1.0), np.log(ends))).clip(*ends).tolist())
    return list(np.interp(at, (0.0, 1.0), ends).tolist())


def _values(control: FormInput, at: NumpyArray) -> Sequence[object]:
    """Values of a column, spread evenly by numbers in [0, 1)."""
    if control.feature is None:  # a value that a context may lack is given
        return [control.first] * len(at)
    if control.kind == "range":
        return _numbers(control, at)
    if control.values:
        return [control.read(control.values[int(each * len(control.values))][0]) for each in at]
    if control.kind == "datetime-local":
        first = datetime.fromisoformat(control.start)
        return [(first + timedelta(days=365 * each)).isoformat() for each in at.tolist()]
    return [control.start] * len(at)


def _segments(inputs: list[FormInput], rows: list[Row]) -> Iterator[tuple[str, str, list[Row]]]:
    """The same people with each value of one column, or in each third of its range."""
    split = [each for each in inputs if each.feature and (each.values or each.kind == "range")]
    at = np.random.default_rng(1).random(len(rows)) / len(THIRDS)
    for control in split[:COLUMNS]:
        groups = [(word, [control.read(text)] * len(rows)) for text, word in control.values]
        if not groups:
            ends = _numbers(control, np.linspace(0.0, 1.0, len(THIRDS) + 1))
            groups = [
                (
                    f"{word} ({ends[k]:.3g} to {ends[k + 1]:.3g})",
                    _numbers(control, at + k / len(THIRDS)),
                )
                for k, word in enumerate(THIRDS)
            ]
        for name, values in groups:
            changed = [row | {control.name: value} for row, value in zip(rows, values, strict=True)]
            yield control.label, name, changed
