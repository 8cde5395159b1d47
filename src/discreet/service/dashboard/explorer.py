"""Page with inputs for a context: how likely each action is, under any release, and why."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from starlette.responses import Response

from discreet.actions.decisions import explain_decision
from discreet.client.chain import Chain
from discreet.errors import InvalidInput
from discreet.releases.released import Released
from discreet.service.dashboard.example_people import (
    COMPARED,
    contexts,
    controls,
    example_shares,
    label,
    policy_version,
)
from discreet.service.dashboard.experiment_summary import document_names
from discreet.service.dashboard.page_frame import ExperimentPage
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.storage import document_table
from discreet.types import JsonObject, NumpyArray

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
