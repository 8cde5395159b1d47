"""Shares of actions over made-up people, from releases and the public schema alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.client.chain import Chain
from discreet.features.number import Number
from discreet.features.unit_ball import UnitBall
from discreet.plan.plan import Plan
from discreet.service.dashboard.context_form import (
    Columns,
    FormInput,
    PolicyVersion,
    contexts,
    controls,
    probabilities,
)

EXAMPLES = 400
"""Made-up people; fewer where there are many actions."""
MOST_PAIRS = 400_000
NAMED = 6
"""The most actions that have a column of their own."""
COMPARED = 200
"""Up to so many actions groups of people are shown, and an explanation compares all actions."""
COLUMNS = 6
"""The most columns of the schema that are shown."""
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

    def found(rows: list[dict[str, Any]]) -> Columns:
        columns = probabilities(
            plan, chain, number, plan.features.map(contexts(plan, inputs, rows))
        )
        return {name: values.mean() for name, values in columns.items()}

    overall = found(rows)
    if not overall:
        return None
    actions = sorted(overall, key=lambda name: -overall[name])[:NAMED]
    actions = [name for name in overall if name in actions]
    segments = [
        Segment(column, value, tuple(float(at[name]) for name in actions))
        for column, value, at in (
            (column, value, found(some))
            for column, value, some in (_segments(inputs, rows) if count <= COMPARED else ())
        )
    ]
    shares = tuple(float(overall[name]) for name in actions)
    return ExampleShares(people, tuple(actions), shares, count - len(actions), tuple(segments))


def _drawn(plan: Plan, inputs: list[FormInput], people: int) -> list[dict[str, Any]]:
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


def _values(control: FormInput, at: Any, low: float = 0.0, high: float = 1.0) -> list[Any]:
    """Values of a column at shares of its range between ``low`` and ``high``."""
    at = low + (high - low) * at
    if control.feature is None:  # a value that a context may lack is given
        return [control.first] * len(at)
    if control.kind == "range":
        ends = np.array([control.low, control.high])
        if isinstance(control.feature, Number) and control.feature.log:
            return np.exp(np.log(ends[0]) + at * np.diff(np.log(ends))).clip(*ends).tolist()  # type: ignore[no-any-return]
        return (ends[0] + at * np.diff(ends)).tolist()  # type: ignore[no-any-return]
    if control.values:
        return [control.read(control.values[int(each * len(control.values))][0]) for each in at]
    if control.kind == "datetime-local":
        first = datetime.fromisoformat(control.start)
        return [(first + timedelta(days=365 * each)).isoformat() for each in at.tolist()]
    return [control.start] * len(at)


def _segments(
    inputs: list[FormInput], rows: list[dict[str, Any]]
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """The same people with each value of one column, or in each third of its range."""
    split = [each for each in inputs if each.feature and (each.values or each.kind == "range")]
    at = np.random.default_rng(1).random(len(rows))
    for control in split[:COLUMNS]:
        parts = len(control.values) or len(THIRDS)
        names = [word for _, word in control.values]
        if not names:
            ends = _values(control, np.linspace(0.0, 1.0, parts + 1))
            names = [
                f"{word} ({low:.3g} to {high:.3g})"
                for word, (low, high) in zip(THIRDS, pairwise(ends), strict=True)
            ]
        for k, name in enumerate(names):
            values = _values(control, at, k / parts, (k + 1) / parts)
            changed = [row | {control.name: value} for row, value in zip(rows, values, strict=True)]
            yield control.label, name, changed
