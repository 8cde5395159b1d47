"""Inputs for a context by the public schema, and probabilities of actions for contexts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.actions.available_actions import AvailableActions
from discreet.actions.requested_actions import request_offers
from discreet.client.chain import Chain
from discreet.errors import InvalidInput
from discreet.features.category import Category
from discreet.features.date import Date
from discreet.features.flag import Flag
from discreet.features.number import Number
from discreet.features.schema import Field
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
