"""The page of an audit: the verdict, a picture, every question; no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from discreet.audit.audit_picture import bound_name, bounds_picture
from discreet.audit.finding import FAILS, HOLDS, WEAK, Finding
from discreet.formatting import epsilon_text
from discreet.lab.report.tables import Table
from discreet.pages import rendered

SHOWN = {"black box": "Single releases", "transcript": "Whole runs of a learner"}


def audit_page(document: Mapping[str, Any], findings: Sequence[Finding]) -> str:
    """One self-contained HTML file, light and dark, for screens, phones and paper."""
    shown = {"bounds": _bounds(findings), "answers": _answers(findings)}
    return rendered("discreet.audit", "audit.html", **document, **shown)


def _bounds(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Picture and table of what attackers proved: single releases, then whole runs."""
    exact = {(each.subject, each.level): each.exact for each in findings if each.exact is not None}
    shown = [
        replace(each, exact=exact.get((each.subject, each.level)))
        if each.part == "black box" and each.exact is None
        else each
        for each in findings
        if each.measured is not None
    ]
    return [
        {
            "title": title,
            "svg": bounds_picture(some).inline(f"bounds{number}"),
            "kind": "narrow" if len({each.claimed for each in some}) == 1 else "",
            "table": _bounds_table(some),
        }
        for number, (part, title) in enumerate(SHOWN.items())
        if (some := [each for each in shown if each.part == part])
    ]


def _bounds_table(shown: Sequence[Finding]) -> Table:
    rows = [
        (
            bound_name(each),
            _verdict(each.verdict),
            *map(
                _epsilon,
                (each.claimed, each.exact, each.measured, each.attainable, each.halved),
            ),
            f"{each.trials:,}",
        )
        for each in shown
    ]
    heads = {
        "claimed": "ε promised",
        "exact": "ε computed",
        "proven": "by the attacker",
        "attainable": "at best",
        "half noise": "would show",
        "releases": "of each batch",
    }
    two_lines = Markup("{}<br><small>{}</small>")
    head = ["", "verdict", *(two_lines.format(*each) for each in heads.items())]
    return Table("", head, rows, "small")


def _answers(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """A table for each part of the audit, and how many of its questions hold."""
    parts = []
    for part in dict.fromkeys(each.part for each in findings):
        asked = [each for each in findings if each.part == part]
        rows = [
            (
                each.subject,
                "" if each.level is None else epsilon_text(each.level),
                each.question,
                _verdict(each.verdict),
                each.said,
            )
            for each in asked
        ]
        head = ["mechanism", "ε", "question", "verdict", "found"]
        kept = sum(each.verdict == HOLDS for each in asked)
        table = Table("", head, rows, "small answers")
        parts.append({"part": part, "kept": kept, "asked": len(asked), "table": table})
    return parts


def _verdict(verdict: str) -> str:
    sign = {HOLDS: "✓", WEAK: "!", FAILS: "✗"}[verdict]
    return Markup('<span class="verdict {0}">{1} {0}</span>').format(verdict, sign)


def _epsilon(value: float | None) -> str:
    return "–" if value is None else epsilon_text(value, 3)
