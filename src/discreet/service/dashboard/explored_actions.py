"""Probabilities of the actions after any document, by name, and which of many a page shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.billboard.chain import Chain
from discreet.offer_reader import Known, read_offers
from discreet.plan import Plan
from discreet.releases.released import Released

LATEST = 16
"""How many releases the chart over time covers."""
SHOWN = 20
"""The most actions that a page shows; a search finds the others."""

Columns = dict[str, np.ndarray[Any, Any]]


def probabilities(plan: Plan, chain: Chain, number: int, features: Any) -> Columns:
    """How likely each action in use is after a document, by its name: (n,) each."""
    # Not through ``PolicyVersions``, which keeps its few versions for decisions.
    until = chain.until(number)
    released, known = _read(_Version(until.links[-1].digest, until))
    if plan.catalogue is None and not released.changes:
        rows = plan.played_policy.probabilities(released, features)
    elif not known.places:
        return {}
    else:
        offers = read_offers(plan, known, features, None, single=False)
        rows = np.stack(offers.chances(plan.played_policy, released, None))
    return dict(zip(map(label, known.places), np.asarray(rows).T, strict=True))


def named_actions(chain: Chain, number: int, labels: list[str]) -> list[Any]:
    """The actions behind these labels, as offers name them."""
    until = chain.until(number)
    _, known = _read(_Version(until.links[-1].digest, until))
    by_label = {label(name): name for name in known.places}
    return [by_label[each] for each in labels]


def label(name: Any) -> str:
    """What an action is called on the page."""
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
def _read(version: _Version) -> tuple[Released, Known]:
    """The releases of a chain and its actions, cached for all moves of a slider."""
    return version.chain.deciding.as_released, version.chain.known
