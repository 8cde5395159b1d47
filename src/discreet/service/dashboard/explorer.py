"""A page with sliders for a context: how likely each action is, under any release."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.responses import Response

from discreet.client.chain import Chain
from discreet.errors import InvalidInput
from discreet.features.category import Category
from discreet.features.date import Date
from discreet.features.flag import Flag
from discreet.features.number import Number
from discreet.features.schema import Field
from discreet.features.unit_ball import UnitBall
from discreet.plan.plan import Plan
from discreet.releases.released import Released
from discreet.service.dashboard import document_words
from discreet.service.dashboard.explored_actions import (
    LATEST,
    SHOWN,
    explained,
    lines,
    named_actions,
    probabilities,
    shown,
    whole_releases,
)
from discreet.service.dashboard.page_frame import PageRequest
from discreet.service.runtime.service import Service

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
        names=document_words.names(chain.links),
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
    counted = document_words.counts(chain.links)
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
