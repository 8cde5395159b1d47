"""Probabilities of actions for a described person, and for made-up people, by the public schema.

Made-up people are drawn evenly from declared ranges and values; no data of people are used.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
from starlette.responses import Response

from discreet.actions.decisions import explain_decision
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
from discreet.releases.released import Released
from discreet.service.dashboard.experiment_summary import document_names
from discreet.service.dashboard.page_frame import ExperimentPage
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.storage import document_table
from discreet.types import JsonObject, NumpyArray

EXAMPLES = 400
"""Made-up people; fewer where there are many actions."""
MOST_PAIRS = 400_000
NAMED, COLUMNS = 6, 6
"""The most actions, and the most columns of the schema, that the shares of groups have."""
COMPARED = 200
"""Up to so many actions groups of people are shown, and an explanation compares all actions."""
THIRDS = ("low", "middle", "high")
Row = dict[str, Any]


@dataclass(frozen=True)
class PolicyVersion:
    """A plan and its releases up to a document, whose digest identifies both."""

    digest: str
    chain: Chain = field(compare=False)
    plan: Plan = field(compare=False)

    def probabilities(self, rows: list[Row]) -> dict[str, NumpyArray]:
        """Return the probabilities of the available actions for rows of the form, by name."""
        # Not through ``PolicyVersions``, which keeps its few versions for decisions.
        features = self.plan.features.map(contexts(self.plan, rows))
        available = self.chain.available_actions
        if not available.places:
            return {}
        offers = request_offers(self.plan, available, features, None, single=False)
        found = np.asarray(offers.chances(self.plan.played_policy, self.chain.deciding, None))
        return dict(zip(self.actions, found.T, strict=True))

    @property
    def actions(self) -> dict[str, object]:
        """Available actions by their name on the page."""
        return {label(name): name for name in self.chain.available_actions.places}


def policy_version(plan: Plan, chain: Chain, number: int) -> PolicyVersion:
    until = chain.until(number)
    return _first(PolicyVersion(until.links[-1].digest, until, plan))


@lru_cache(4)
def _first(version: PolicyVersion) -> PolicyVersion:
    """Return the first of equal versions, whose chain is read for all moves of a slider."""
    return version


def label(name: object) -> str:
    return name if isinstance(name, str) else f"action {name}"


@dataclass(frozen=True)
class FormInput:
    """One input of the form: a slider with a range, a list of words, a date or a word. One without
    a ``feature`` belongs to the field before it, or to a number of the unit ball."""

    name: str
    label: str
    feature: Field | None = None
    low: float = 0.0
    high: float = 0.0
    values: tuple[tuple[str, str], ...] = ()
    kind: str = "range"
    start: str = ""

    @property
    def first(self) -> str:
        if self.kind == "range":
            return f"{(self.low + self.high) / 2:g}"
        return self.values[0][0] if self.values else self.start

    @property
    def step(self) -> float:
        return (self.high - self.low) / 200

    def read(self, text: str) -> Any:
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

    def numbers(self, at: NumpyArray) -> list[float]:
        """Return the numbers at these shares of the range, or of its logarithms."""
        ends, log = np.array([self.low, self.high]), getattr(self.feature, "log", False)
        found = np.interp(at, (0.0, 1.0), np.log(ends) if log else ends)
        return list((np.exp(found).clip(*ends) if log else found).tolist())

    def spread(self, at: NumpyArray) -> Sequence[object]:
        """Return values that are spread evenly by numbers in [0, 1)."""
        if self.kind == "range":
            return self.numbers(at)
        if self.feature is not None and self.values:
            return [self.read(self.values[int(each * len(self.values))][0]) for each in at]
        if self.kind == "datetime-local":
            first = datetime.fromisoformat(self.start)
            return [(first + timedelta(days=365 * each)).isoformat() for each in at.tolist()]
        return [self.first] * len(at)  # a value that a context may lack is given


def controls(plan: Plan) -> list[FormInput]:
    """Return the inputs for the fields of the public schema."""
    if isinstance(plan.contexts, UnitBall):
        each = range(plan.contexts.dimension)
        return [FormInput(f"x{i}", f"number {i}", low=-1.0, high=1.0) for i in each]
    found = []
    for number, feature in enumerate(plan.contexts.fields):
        more: Row = {"kind": "text", "start": "any word"}
        if isinstance(feature, Number):
            more = {"low": feature.low, "high": feature.high}
        elif isinstance(feature, Flag):
            more = {"kind": "list", "values": (("true", "true"), ("false", "false"))}
        elif isinstance(feature, Category):
            values = [(str(value), str(value)) for value in feature.values]
            values += [(_other(feature), "any other")] * feature.other
            more = {"kind": "list", "values": tuple(values)}
        elif isinstance(feature, Date):
            more = {"kind": "datetime-local", "start": "2026-01-01T12:00"}
        found.append(FormInput(f"x{number}", feature.name, feature, **more))
        if feature.indicator or feature.stand_in is not None:
            given = (("given", "given"), ("missing", "missing"))
            name = f"x{number}-given"
            found.append(FormInput(name, f"{feature.name} is", values=given, kind="list"))
    return found


def _other(feature: Category) -> str:
    """Return a value of the same kind that is not in the list."""
    if feature.of_words:  # longer than every word of the list, so it equals none of them
        return "any but " + " ".join(map(str, feature.values))
    return str(1 + max(map(int, feature.values)))


def contexts(plan: Plan, rows: list[Row]) -> list[object]:
    if isinstance(plan.contexts, UnitBall):
        return [[*row.values()] for row in rows]
    names = {f"x{number}": each.name for number, each in enumerate(plan.contexts.fields)}
    return [
        {title: row[name] for name, title in names.items() if row.get(f"{name}-given") != "missing"}
        for row in rows
    ]


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
    return _shares(policy_version(plan, chain, number))


@lru_cache(64)
def _shares(version: PolicyVersion) -> ExampleShares | None:
    inputs, count = controls(version.plan), len(version.actions)
    people = max(20, min(EXAMPLES, MOST_PAIRS // max(1, count)))
    rows = _drawn(version.plan, inputs, people)

    def found(rows: list[Row]) -> dict[str, float]:
        columns = version.probabilities(rows)
        return {name: float(values.mean()) for name, values in columns.items()}

    overall = found(rows)
    if not overall:
        return None
    most = sorted(overall, key=lambda name: -overall[name])[:NAMED]
    actions = tuple(name for name in overall if name in most)

    def shares(found: dict[str, float]) -> tuple[float, ...]:
        return tuple(found[name] for name in actions)

    groups = _segments(inputs, rows) if count <= COMPARED else ()
    segments = (Segment(column, value, shares(found(some))) for column, value, some in groups)
    others = count - len(actions)
    return ExampleShares(people, actions, shares(overall), others, tuple(segments))


def _drawn(plan: Plan, inputs: list[FormInput], people: int) -> list[Row]:
    """Contexts that are spread evenly over declared ranges and values, always the same ones."""
    rng, names = np.random.default_rng(0), [each.name for each in inputs]
    if isinstance(plan.contexts, UnitBall):
        points = rng.standard_normal((people, len(inputs)))
        radii = rng.random(people) ** (1 / len(inputs)) / np.linalg.norm(points, axis=1)
        rows: Any = (points * radii[:, None]).tolist()
    else:
        rows = zip(*(each.spread(rng.random(people)) for each in inputs), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _segments(inputs: list[FormInput], rows: list[Row]) -> Iterator[tuple[str, str, list[Row]]]:
    """The same people with each value of one column, or in each third of its range."""
    split = [each for each in inputs if each.feature and (each.values or each.kind == "range")]
    at = np.random.default_rng(1).random(len(rows)) / len(THIRDS)
    for control in split[:COLUMNS]:
        groups: list[tuple[str, Sequence[object]]] = [
            (word, [control.read(text)] * len(rows)) for text, word in control.values
        ]
        if not groups:
            ends = control.numbers(np.linspace(0.0, 1.0, len(THIRDS) + 1))
            for k, word in enumerate(THIRDS):
                title = f"{word} ({ends[k]:.3g} to {ends[k + 1]:.3g})"
                groups.append((title, control.numbers(at + k / len(THIRDS))))
        for name, values in groups:
            changed = [row | {control.name: value} for row, value in zip(rows, values, strict=True)]
            yield control.label, name, changed


SHOWN = 20
"""The most actions that a page shows; a search finds the others."""
LINES = 12
"""The most effects that a page shows."""
KINDS = ("genesis", "release", "actions")
"""Documents after which probabilities differ."""
Columns = dict[str, NumpyArray]
_HELD: OrderedDict[str, Released] = OrderedDict()
"""Whole releases by the digest of the newest document: two, for the one served and one chosen."""


def shown(columns: Columns, wanted: str) -> list[str]:
    """Return the most likely actions whose name contains ``wanted``; all in their order if few."""
    found = [name for name in columns if wanted.casefold() in name.casefold()]
    if len(found) <= SHOWN:
        return found
    return sorted(found, key=lambda name: -float(columns[name][0]))[:SHOWN]


async def whole_releases(state: WorkerState, chain: Chain, number: int) -> Released:
    """Releases up to a document with their statistics, which decisions do not keep in memory."""
    digest = chain.until(number).links[-1].digest
    if digest not in _HELD:
        contents = await state.read(lambda c: document_table.after(c, -1))
        # In a thread: to verify a long chain takes a while, and decisions do not wait for a page.
        _HELD[digest] = await asyncio.to_thread(
            lambda: Chain(chain.key).extended(contents).until(number).released
        )
        while len(_HELD) > 2:
            _HELD.popitem(last=False)
    return _HELD[digest]


def explained(released: Released, context: object, names: list[object]) -> JsonObject | None:
    """Values for the page; None before the first release, or with nothing to compare."""
    if released.latest is None or len(names) < 2:
        return None
    found, outcome = explain_decision(released, context, actions=names), released.outcome
    lines = []
    for each in found.effects[:LINES]:
        unknown = each.error is not None and each.error >= abs(each.loss)
        effect = outcome.figure(outcome.difference_of(each.loss), "+")
        error = "" if each.error is None else outcome.figure(outcome.error_of(each.error))
        text = "not known yet" if unknown else effect
        lines.append({"feature": each.feature, "effect": text, "error": error})
    mean = sum(found.predicted.values()) / len(found.predicted)
    return {
        "action": label(found.action),
        "predicted": outcome.figure(outcome.value_of(found.predicted[found.action])),
        "mean": outcome.figure(outcome.value_of(mean)),
        "count": len(found.predicted),
        "lines": lines,
    }


async def explorer(page: ExperimentPage) -> Response:
    state, plan = page.site.state, page.site.settings.plan
    inputs, chain = controls(plan), state.serving.chain
    numbers = [link.number for link in chain.links if link.kind in KINDS]
    texts = {each.name: page.given(each.name) or each.first for each in inputs}
    served = max(each for each in numbers if each <= state.deciding())  # which may be a burn
    release = page.given("release") or str(served)
    if not release.isdecimal() or int(release) not in numbers:
        raise InvalidInput("release must be one of those listed; none has this number. Choose one.")
    number, find = int(release), page.given("find").strip()
    released = await whole_releases(state, chain, number)
    values = {each.name: each.read(texts[each.name]) for each in inputs}

    def evaluated() -> JsonObject:
        """Return the probabilities of actions for the described person, and the reasons."""
        version = policy_version(plan, chain, number)
        probabilities = version.probabilities([values])
        names = shown(probabilities, find)
        compared = probabilities if len(probabilities) <= COMPARED else names
        context = contexts(plan, [values])[0]
        return {
            "shares": [(name, float(probabilities[name][0])) for name in names],
            "many": len(probabilities) > SHOWN,
            "count": len(probabilities),
            "why": explained(released, context, [version.actions[each] for each in compared]),
        }

    answer = await asyncio.to_thread(evaluated)
    if not page.partial:
        answer["overall"] = await asyncio.to_thread(example_shares, plan, chain, number)
    return page.render(
        "part_explorer.html" if page.partial else "explorer.html",
        inputs=inputs,
        texts=texts,
        numbers=numbers[::-1],
        names=document_names(chain.links),
        release=number,
        served=served,
        find=find,
        **answer,
    )
