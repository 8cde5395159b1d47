"""The page of an audit: the verdict, a picture, every question. No request leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from discreet.audit.audit_picture import bound_name, bounds_picture
from discreet.audit.finding import FAILS, HOLDS, WEAK, Finding
from discreet.formatting import epsilon_text
from discreet.report.demo_page import template
from discreet.report.tables import html_table

EXPLAINED = """\
<p>A release is ε-private if nobody who reads it can tell well whether one record was one thing or
another. The smaller ε, the less can be told. Each mechanism is asked four kinds of questions.</p>
<dl>
<dt>Exact</dt><dd>What follows from the code by computation: how far one record can move a release,
in units of its noise; the largest likelihood ratio; the cost of the recorded event, a second
time.</dd>
<dt>Noise</dt><dd>Whether the noise that is really added has the declared size and shape, and
whether each draw is new.</dd>
<dt>Black box</dt><dd>An attacker who knows everything but one record sees thousands of releases of
two batches that differ in that record, and guesses which is which. How often the guess is right
proves a lower bound on ε.</dd>
<dt>Transcript</dt><dd>The same with whole runs of a learner: every release, a person who stays
silent, a crash and a reload.</dd>
</dl>"""
READING = """\
<p>The grey area is what was promised. The blue bar is what the attacker could prove; it must end
inside. The short line is what the same number of releases can show at best, so a bar that reaches
it means that the attack works. The cross is what half the noise would have shown: beyond the
claim, this attack alone would have caught it; inside, as for perturbed objectives, the exact ratio
and the questions about noise must. The diamond is the largest ε that a computation found.</p>"""
SHOWN = {"black box": "Single releases", "transcript": "Whole runs of a learner"}


def audit_page(document: Mapping[str, Any], findings: Sequence[Finding]) -> str:
    """One self-contained HTML file, light and dark, for screens, phones and paper."""
    sections = {
        "What was asked": EXPLAINED,
        "How much an attacker can prove": _bounds(findings),
        "Every question": _answers(findings),
        "How sure this is": f"<p>{escape(document['error'])}</p>",
        "Make it again": f"<pre><code>{escape(document['command'])}</code></pre>",
    }
    made = {title: body for title, body in sections.items() if body}
    page = files(__package__).joinpath("audit.html").read_text(encoding="utf-8")
    return Template(page).substitute(
        title="An audit of every private mechanism",
        subtitle=escape(document["subtitle"]),
        style=template("style.css"),
        verdict=document["verdict"],
        summary=escape(document["summary"]),
        contents=" ".join(f'<a href="#{_anchor(title)}">{title}</a>' for title in made),
        sections="\n".join(
            f'<section id="{_anchor(title)}">\n<h2>{title}</h2>\n{body}\n</section>'
            for title, body in made.items()
        ),
        command=escape(document["command"]),
        version=escape(document["version"]),
        duration=escape(document["duration"]),
    )


def _bounds(findings: Sequence[Finding]) -> str:
    """Picture and table of what attackers proved: single releases, then whole runs."""
    exact = {(each.subject, each.level): each.exact for each in findings if each.exact is not None}
    shown = [
        replace(each, exact=exact.get((each.subject, each.level)))
        if each.part == "black box" and each.exact is None
        else each
        for each in findings
        if each.measured is not None
    ]
    made = [
        f"<h3>{title}</h3>{_figure(some, number)}{_bounds_table(some)}"
        for number, (part, title) in enumerate(SHOWN.items())
        if (some := [each for each in shown if each.part == part])
    ]
    return READING + "\n".join(made) if made else ""


def _figure(shown: Sequence[Finding], number: int) -> str:
    label = "Proven lower bounds as shares of the claimed epsilon; the numbers are in the table."
    svg = bounds_picture(shown).inline(f"bounds{number}")
    kind = "figure narrow" if len({each.claimed for each in shown}) == 1 else "figure"
    return f'<div class="{kind}" role="img" aria-label="{label}">{svg}</div>'


def _bounds_table(shown: Sequence[Finding]) -> str:
    rows = [
        (
            escape(bound_name(each)),
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
        "": "",
        "verdict": "",
        "claimed": "ε promised",
        "exact": "ε computed",
        "proven": "by the attacker",
        "attainable": "at best",
        "half noise": "would show",
        "releases": "of each batch",
    }
    head = [f"{name}<br><small>{below}</small>" if below else name for name, below in heads.items()]
    return html_table("", head, rows, "small")


def _answers(findings: Sequence[Finding]) -> str:
    parts = []
    for part in dict.fromkeys(each.part for each in findings):
        asked = [each for each in findings if each.part == part]
        rows = [
            (
                escape(each.subject),
                "" if each.level is None else epsilon_text(each.level),
                escape(each.question),
                _verdict(each.verdict),
                escape(each.said),
            )
            for each in asked
        ]
        kept = sum(each.verdict == HOLDS for each in asked)
        told = f"{part.capitalize()}: {kept} of {len(asked)} hold"
        table = html_table(
            "", ["mechanism", "ε", "question", "verdict", "found"], rows, "small answers"
        )
        opened = " open" if kept < len(asked) else ""
        parts.append(f"<details{opened}><summary>{told}</summary>{table}</details>")
    return "\n".join(parts)


def _verdict(verdict: str) -> str:
    sign = {HOLDS: "✓", WEAK: "!", FAILS: "✗"}[verdict]
    return f'<span class="verdict {verdict}">{sign} {verdict}</span>'


def _epsilon(value: float | None) -> str:
    return "–" if value is None else epsilon_text(value, 3)


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title).strip("-").lower()
