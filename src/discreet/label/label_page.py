"""The label as a page: one sheet of paper, no network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.formatting import epsilon_text, guarantee_text
from discreet.pages import rendered
from discreet.privacy.attacker import hundredths

UNITS = {
    "decision": "one decision",
    "user": "one person",
}
GUESSED = 50
"""Of one hundred choices between two, a guess is right this often."""


def label_page(document: Mapping[str, Any]) -> str:
    """One self-contained HTML file, light and dark, for screens and for one sheet of paper."""
    best = document["attacker"]
    right = hundredths(float(best["success"]), best["exact"])
    budget = {name: float(value) for name, value in document["budget"].items()}
    shown = {
        "protects": UNITS.get(document["unit"], f"one {document['unit']}"),
        "guarantee": guarantee_text(float(document["epsilon"]), float(document["delta"])),
        "promised": guarantee_text(budget["epsilon"], budget["delta"]),
        "shift": _number(document["mu"]),
        "rho": _number(document["zcdp"]),
        "right": right,
        "dots": _dots(right),
        "bounds": [] if document["audit"] is None else _bounds(document["audit"]),
    }
    return rendered("discreet.label", "label.html", **document, **shown)


def _dots(right: int) -> list[tuple[int, int, str]]:
    """A hundred choices in ten rows: right by a guess, right beyond that, wrong."""
    kinds = ["guess"] * GUESSED + ["beyond"] * (right - GUESSED) + ["wrong"] * (100 - right)
    return [(place % 10, place // 10, kind) for place, kind in enumerate(kinds)]


def _number(text: str | None) -> str:
    if text is None:
        return "not known"
    return epsilon_text(float(text), 3)


def _bounds(audit: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """For each attack the mechanism with the least room between what was proven and claimed."""
    by_attack: dict[str, Mapping[str, str]] = {}
    for each in audit["lower_bounds"]:
        kept = by_attack.get(each["attack"])
        if kept is None or _room(each) < _room(kept):
            by_attack[each["attack"]] = each
    return [
        (
            f"{attack}, {each['mechanism']}",
            epsilon_text(float(each["claimed"]), 3),
            epsilon_text(float(each["proven"]), 3),
        )
        for attack, each in by_attack.items()
    ]


def _room(bound: Mapping[str, str]) -> float:
    return float(bound["claimed"]) - float(bound["proven"])
