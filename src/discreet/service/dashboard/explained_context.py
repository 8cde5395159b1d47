"""Why an action looks better for a context: for the page, from what was published alone."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from discreet.billboard.chain import Chain
from discreet.explained_decision import Explanation, explain_decision
from discreet.releases.released import Released
from discreet.service.dashboard.explored_actions import label
from discreet.service.dashboard.templating import figure
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.storage import document_table

LINES = 12
"""The most effects that a page shows."""
_HELD: OrderedDict[str, Released] = OrderedDict()
"""Whole releases by the digest of the newest document: two, for the one served and one chosen."""


@dataclass(frozen=True)
class Line:
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
        Line(
            each.feature,
            figure(outcome.difference_of(each.loss), outcome, "+"),
            "" if each.error is None else f"± {figure(outcome.error_of(each.error), outcome)}",
        )
        for each in found.effects[:LINES]
    ]
    mean = sum(found.predicted.values()) / len(found.predicted)
    return {
        "action": label(found.action),
        "predicted": figure(outcome.value_of(found.predicted[found.action]), outcome),
        "mean": figure(outcome.value_of(mean), outcome),
        "count": len(found.predicted),
        "lines": lines,
    }
