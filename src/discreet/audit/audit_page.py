"""The page of an audit: the verdict, a picture, every question; no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from discreet.audit.finding import FAILS, HOLDS, WEAK, Finding
from discreet.client.pages import rendered
from discreet.lab.report.figures import Drawing, plain
from discreet.lab.report.tables import Table
from discreet.text import epsilon_text
from discreet.types import JsonMapping

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROVEN, REFUTED, HALVED = "#1A80C4", "#B3261E", "#D55E00"
_WIDEST = 2.5
"""Shares of the claim beyond this are drawn at the edge."""


def bounds_picture(findings: Sequence[Finding]) -> Drawing:
    """A row per mechanism, a column per ε; everything as a share of the claim."""
    shown = [each for each in findings if each.measured is not None]
    names = list(dict.fromkeys(bound_name(each) for each in shown))
    levels = sorted({each.claimed for each in shown if each.claimed is not None})
    size = (4.2 + 2.4 * len(levels), 1.4 + 0.27 * len(names))
    return Drawing(size, partial(_draw, shown, names, levels))


def bound_name(finding: Finding) -> str:
    """The subject of a row: the mechanism, or the event in a run."""
    return finding.question if finding.part == "transcript" else finding.subject


def _draw(
    shown: Sequence[Finding], names: list[str], levels: list[float], figure: Figure, ink: str
) -> None:
    axes = figure.subplots(1, len(levels), squeeze=False, sharey=True)[0]
    for axis, level in zip(axes, levels, strict=True):
        axis.axvspan(0.0, 1.0, color=ink, alpha=0.07, linewidth=0)
        axis.axvline(1.0, color=ink, linewidth=1.4, label="claimed")
        for finding in shown:
            if finding.claimed == level:
                _bar(axis, finding, names.index(bound_name(finding)), ink)
        axis.set_title(f"claimed ε = {epsilon_text(level)}", fontsize=10)
        axis.set_xlim(0.0, _WIDEST)
        axis.set_xticks([0.0, 0.5, 1.0, 1.5, 2.0], ["0", "½", "1", "1½", "2"])
        axis.set_xlabel("share of the claim", fontsize=9)
        axis.set_yticks(range(len(names)), names, fontsize=9)
        axis.tick_params(axis="y", length=0)
        plain(axis, ink)
    axes[0].set_ylim(len(names) - 0.4, -0.6)
    drawn: dict[str, Artist] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        drawn |= dict(zip(labels, handles, strict=True))
    figure.legend(
        drawn.values(),
        drawn,
        loc="outside lower center",
        ncols=3 if len(levels) > 1 else 2,
        frameon=False,
        fontsize=9,
    )


def _bar(axis: Axes, finding: Finding, row: int, ink: str) -> None:
    claim = finding.claimed
    failed = finding.verdict == FAILS
    colour = REFUTED if failed else PROVEN
    label = "proven, above the claim" if failed else "proven by the attacker"
    axis.barh(row, _share(finding.measured, claim), 0.5, color=colour, label=label)
    marks = (
        (finding.attainable, "|", ink, "what a correct release shows"),
        (finding.exact, "D", ink, "exact"),
        (finding.halved, "x", HALVED, "half the noise would have shown"),
    )
    for value, marker, shade, text in marks:
        if value is not None and value > 0.0:
            axis.plot(
                _share(value, claim),
                row,
                marker,
                color=shade,
                markersize=5 if marker != "|" else 9,
                markeredgewidth=1.4,
                label=text,
                linestyle="",
                clip_on=False,
                markerfacecolor="none" if marker == "D" else shade,
            )


def _share(value: float | None, claim: float | None) -> float:
    if value is None or not claim or math.isnan(value):
        return 0.0
    return min(value / claim, _WIDEST)


SHOWN = {"black box": "Single releases", "transcript": "Whole runs of a learner"}


def audit_page(document: JsonMapping, findings: Sequence[Finding]) -> str:
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
            *map(_epsilon, (each.claimed, each.exact, each.measured, each.attainable, each.halved)),
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
        shown = [each for each in findings if each.part == part]
        rows = [
            (
                each.subject,
                "" if each.level is None else epsilon_text(each.level),
                each.question,
                _verdict(each.verdict),
                each.said,
            )
            for each in shown
        ]
        head = ["mechanism", "ε", "question", "verdict", "found"]
        kept = sum(each.verdict == HOLDS for each in shown)
        table = Table("", head, rows, "small answers")
        parts.append({"part": part, "kept": kept, "asked": len(shown), "table": table})
    return parts


def _verdict(verdict: str) -> str:
    sign = {HOLDS: "✓", WEAK: "!", FAILS: "✗"}[verdict]
    return Markup('<span class="verdict {0}">{1} {0}</span>').format(verdict, sign)


def _epsilon(value: float | None) -> str:
    return "–" if value is None else epsilon_text(value, 3)
