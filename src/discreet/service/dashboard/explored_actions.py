"""Probabilities of the actions after a document, and the effects that explain a prediction."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.actions.available_actions import AvailableActions
from discreet.actions.decision_explanation import Explanation, explain_decision
from discreet.actions.requested_actions import request_offers
from discreet.client.chain import Chain
from discreet.plan.plan import Plan
from discreet.releases.policy_view import PolicyView
from discreet.releases.released import Released
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
