"""A page with sliders for a context: how likely each action is, under any release."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from starlette.responses import Response

from discreet.actions.decisions import Explanation, explain_decision
from discreet.client.chain import Chain
from discreet.errors import InvalidInput
from discreet.plan.plan import Plan
from discreet.releases.released import Released
from discreet.service.dashboard import page_data
from discreet.service.dashboard.charts import Chart, Line
from discreet.service.dashboard.example_people import (
    COMPARED,
    LATEST,
    Columns,
    FormInput,
    contexts,
    controls,
    example_shares,
    label,
    named_actions,
    probabilities,
)
from discreet.service.dashboard.page_frame import PageRequest
from discreet.service.runtime.service import Service
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.storage import document_table
from discreet.types import JsonObject, NumpyArray

SHOWN = 20
"""The most actions that a page shows; a search finds the others."""


def shown(columns: Columns, wanted: str) -> list[str]:
    """Return the most likely actions whose name contains ``wanted``; all in their order if few."""
    found = [name for name in columns if wanted.casefold() in name.casefold()]
    if len(found) <= SHOWN:
        return found
    return sorted(found, key=lambda name: -float(columns[name][0]))[:SHOWN]


def lines(columns: list[Columns], names: list[str]) -> tuple[Line, ...]:
    """Return a line of a chart for each name; an action that was not there has probability zero."""
    missing = [np.zeros(len(next(iter(each.values()), np.zeros(1)))) for each in columns]
    return tuple(
        Line(
            name,
            np.concatenate(
                [each.get(name, none) for each, none in zip(columns, missing, strict=True)]
            ).tolist(),
        )
        for name in names
    )


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


def explained(released: Released, context: object, names: list[object]) -> dict[str, object] | None:
    """Words and lines for the page; None before the first release, or with nothing to compare."""
    if released.latest is None or len(names) < 2:
        return None
    found: Explanation = explain_decision(released, context, actions=names)
    outcome = released.outcome
    lines = [
        EffectLine(
            each.feature,
            "not known yet"
            if each.error is not None and each.error >= abs(each.loss)
            else outcome.figure(outcome.difference_of(each.loss), "+"),
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


POINTS = 41
"""Points of the curve along the varied feature."""
KINDS = ("genesis", "release", "actions")
"""Documents after which probabilities differ."""


async def explorer(page: PageRequest, service: Service) -> Response:
    """Render the page, or only its result if the browser requests a part."""
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
    if not page.partial:
        answer["overall"] = await asyncio.to_thread(example_shares, plan, chain, int(release))
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
) -> JsonObject:
    """Return the probabilities for the context, along one feature and over the releases, with the
    effects that explain them."""
    values = {each.name: each.read(texts[each.name]) for each in inputs}
    row = _features(plan, inputs, [values])
    here = probabilities(plan, chain, release, row)
    names = shown(here, find)
    compared = list(here) if len(here) <= COMPARED else names
    along = None
    if varied is not None:
        at = np.linspace(varied.low, varied.high, POINTS)
        rows = [values | {varied.name: float(value)} for value in at]
        curves = probabilities(plan, chain, release, _features(plan, inputs, rows))
        along = _chart(
            f"Probability of each action along {varied.label}",
            *(varied.label, at.tolist(), lines([curves], names)),
        )
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
            released, contexts(plan, inputs, [values])[0], named_actions(chain, release, compared)
        ),
        "along": along,
        "history": _chart(
            "Probability of each action after each release", "release", latest, history
        )
        if len(latest) > 1
        else None,
    }


def _features(plan: Plan, inputs: list[FormInput], rows: list[dict[str, object]]) -> NumpyArray:
    """Contexts to features, by the map of the plan, which also refuses invalid contexts."""
    return plan.features.map(contexts(plan, inputs, rows))


def _chart(words: str, label: str, x: Sequence[float], of_actions: tuple[Line, ...]) -> Chart:
    return Chart(words, label, x, of_actions, ends=(0.0, 1.0))
