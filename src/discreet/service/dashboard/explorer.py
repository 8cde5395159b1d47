"""A page with sliders for a context: how likely each action is, under any release."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from starlette.responses import Response

from discreet.actions.available_actions import AvailableActions
from discreet.actions.decision_explanation import Explanation, explain_decision
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
from discreet.releases.released import Released
from discreet.service.dashboard import page_data
from discreet.service.dashboard.page_frame import PageRequest
from discreet.service.runtime.service import Service
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.storage import document_table

LATEST = 16
"""How many releases the chart over time covers."""
SHOWN = 20
"""The most actions that a page shows; a search finds the others."""

Columns = dict[str, np.ndarray[Any, Any]]


def probabilities(plan: Plan, chain: Chain, number: int, features: Any) -> Columns:
    """Return the probabilities of the available actions after a document, by name: (n,) each."""
    # Not through ``PolicyVersions``, which keeps its few versions for decisions.
    until = chain.until(number)
    released, available = _read(_Version(until.links[-1].digest, until))
    if not available.places:
        return {}
    offers = request_offers(plan, available, features, None, single=False)
    rows = np.asarray(offers.chances(plan.played_policy, released, None))
    return dict(zip(map(label, available.places), rows.T, strict=True))


def named_actions(chain: Chain, number: int, labels: list[str]) -> list[Any]:
    """The actions behind these labels, as offers name them."""
    until = chain.until(number)
    _, available = _read(_Version(until.links[-1].digest, until))
    by_label = {label(name): name for name in available.places}
    return [by_label[each] for each in labels]


def label(name: Any) -> str:
    """Return the name of an action on the page."""
    return name if isinstance(name, str) else f"action {name}"


def shown(columns: Columns, wanted: str) -> list[str]:
    """The most likely of the actions whose name contains ``wanted``; all in their order if few."""
    found = [name for name in columns if wanted.casefold() in name.casefold()]
    if len(found) <= SHOWN:
        return found
    return sorted(found, key=lambda name: -float(columns[name][0]))[:SHOWN]


def lines(columns: list[Columns], names: list[str]) -> list[dict[str, Any]]:
    """A line of a chart for each name; an action that was not there has probability zero."""
    missing = [np.zeros(len(next(iter(each.values()), np.zeros(1)))) for each in columns]
    return [
        {
            "label": name,
            "values": np.concatenate(
                [each.get(name, none) for each, none in zip(columns, missing, strict=True)]
            ).tolist(),
        }
        for name in names
    ]


@dataclass(frozen=True)
class _Version:
    """A chain up to a document; the digest of the document identifies it."""

    digest: str
    chain: Chain = field(compare=False)


@lru_cache(LATEST + 2)
def _read(version: _Version) -> tuple[PolicyView, AvailableActions]:
    """The releases of a chain and its actions, cached for all moves of a slider."""
    return version.chain.deciding, version.chain.available_actions


LINES = 12
"""The most effects that a page shows."""
_HELD: OrderedDict[str, Released] = OrderedDict()
"""Whole releases by the digest of the newest document: two, for the one served and one chosen."""


@dataclass(frozen=True)
class EffectLine:
    """One effect in words."""

    feature: str
    effect: str
    error: str


async def whole_releases(state: WorkerState, chain: Chain, number: int) -> Released:
    """Releases up to a document with their statistics, which decisions do not keep in memory."""
    digest = chain.until(number).links[-1].digest
    if digest not in _HELD:
        contents = await state.read(lambda c: document_table.after(c, -1))
        # In a thread: to verify a long chain takes a while, and decisions do not wait for a page.
        _HELD[digest] = await asyncio.to_thread(_whole, chain.key, contents, number)
        while len(_HELD) > 2:
            _HELD.popitem(last=False)
    return _HELD[digest]


def _whole(key: str, contents: list[bytes], number: int) -> Released:
    return Chain(key).extended(contents).until(number).released


def explained(released: Released, context: Any, names: list[Any]) -> dict[str, Any] | None:
    """Words and lines for the page; None before the first release, or with nothing to compare."""
    if released.latest is None or len(names) < 2:
        return None
    found: Explanation = explain_decision(released, context, actions=names)
    outcome = released.outcome
    lines = [
        EffectLine(
            each.feature,
            outcome.figure(outcome.difference_of(each.loss), "+"),
            "" if each.error is None else f"± {outcome.figure(outcome.error_of(each.error))}",
        )
        for each in found.effects[:LINES]
    ]
    mean = sum(found.predicted.values()) / len(found.predicted)
    return {
        "action": label(found.action),
        "predicted": outcome.figure(outcome.value_of(found.predicted[found.action])),
        "mean": outcome.figure(outcome.value_of(mean)),
        "count": len(found.predicted),
        "lines": lines,
    }


COMPARED = 200
"""Up to so many actions an explanation compares with all of them, else with those shown."""
POINTS = 41
"""Points of the curve along the varied feature."""
KINDS = ("genesis", "release", "actions")
"""Documents after which probabilities differ."""
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
        """The value before anybody moved the slider."""
        if self.kind == "range":
            return f"{(self.low + self.high) / 2:g}"
        return self.values[0][0] if self.values else self.start

    @property
    def step(self) -> float:
        return (self.high - self.low) / 200

    def read(self, text: str) -> Any:
        """The value of the feature in the form."""
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
    """The inputs that the public schema asks for."""
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
    """A value of the same kind that is not in the list."""
    if feature.of_words:  # longer than every word of the list, so it equals none of them
        return "any but " + " ".join(map(str, feature.values))
    return str(1 + max(map(int, feature.values)))


def _gap(control: FormInput) -> str:
    """The name of the input that says whether a value is missing."""
    return f"{control.name}-given"


async def explorer(page: PageRequest, service: Service) -> Response:
    """The page; or only its result, if the browser asks for a part."""
    state, plan = service.state, service.settings.plan
    inputs, chain = controls(plan), state.serving.chain
    numbers = [link.number for link in chain.links if link.kind in KINDS]
    texts = {each.name: page.given(each.name) or each.first for each in inputs}
    served = state.deciding()  # the last document, which may be a burn
    release = page.given("release") or str(max(each for each in numbers if each <= served))
    if not release.isdecimal() or int(release) not in numbers:
        raise InvalidInput("release must be one of those listed; none has this number. Choose one.")
    sliders = [each for each in inputs if each.kind == "range"]
    varied = next((each for each in sliders if each.name == page.given("vary")), None)
    varied = varied or next(iter(sliders), None)
    find = (page.given("find") or "").strip()
    released = await whole_releases(state, chain, int(release))
    answer = await asyncio.to_thread(
        _evaluated, plan, chain, numbers, int(release), inputs, texts, varied, find, released
    )
    return page.render(
        "part_explorer.html" if page.partial else "explorer.html",
        inputs=inputs,
        texts=texts,
        numbers=numbers[::-1],
        names=page_data.document_names(chain.links),
        release=int(release),
        sliders=sliders,
        varied=varied,
        served=max(each for each in numbers if each <= served),
        find=find,
        **answer,
    )


def _evaluated(
    plan: Plan,
    chain: Chain,
    numbers: list[int],
    release: int,
    inputs: list[FormInput],
    texts: dict[str, str],
    varied: FormInput | None,
    find: str,
    released: Released,
) -> dict[str, Any]:
    """Probabilities of the context, along one feature, and over the releases; and why."""
    values = {each.name: each.read(texts[each.name]) for each in inputs}
    row = _features(plan, inputs, [values])
    here = probabilities(plan, chain, release, row)
    names = shown(here, find)
    beside = list(here) if len(here) <= COMPARED else names
    along = None
    if varied is not None:
        at = np.linspace(varied.low, varied.high, POINTS)
        rows = [values | {varied.name: float(value)} for value in at]
        curves = probabilities(plan, chain, release, _features(plan, inputs, rows))
        along = _chart(varied.label, at.tolist(), lines([curves], names))
    counted = page_data.release_counts(chain.links)
    # Of the documents between two releases the last one stands for all.
    followed = {counted[number]: number for number in numbers if number <= release}
    latest = list(followed)[-LATEST:]
    history = lines([probabilities(plan, chain, followed[each], row) for each in latest], names)
    return {
        "shares": [(name, float(here[name][0])) for name in names],
        "many": len(here) > SHOWN,
        "count": len(here),
        "why": explained(
            released, _contexts(plan, inputs, [values])[0], named_actions(chain, release, beside)
        ),
        "along": along,
        "history": _chart("release", latest, history) | {"whole": True}
        if len(latest) > 1
        else None,
    }


def _features(plan: Plan, inputs: list[FormInput], rows: list[dict[str, Any]]) -> Any:
    """Contexts to features, by the map of the plan, which also refuses invalid contexts."""
    return plan.features.map(_contexts(plan, inputs, rows))


def _contexts(plan: Plan, inputs: list[FormInput], rows: list[dict[str, Any]]) -> list[Any]:
    """Return the contexts of the form, as the plan reads them."""
    if isinstance(plan.contexts, UnitBall):
        return [[row[each.name] for each in inputs] for row in rows]
    named = [each for each in inputs if each.feature is not None]
    return [
        {each.label: row[each.name] for each in named if row.get(_gap(each)) != "missing"}
        for row in rows
    ]


def _chart(label: str, x: list[Any], of_actions: list[dict[str, Any]]) -> dict[str, Any]:
    return {"x": x, "label": label, "lines": of_actions, "from": 0, "to": 1}
