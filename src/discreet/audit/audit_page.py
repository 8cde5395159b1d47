"""The document of an audit, and its page: the verdict, a picture, every question; no network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import discreet
from discreet.audit.finding import FAILS, WEAK, Finding, worst
from discreet.audit.suite import FALSE_ALARM, Check, Effort, error_rate
from discreet.text import duration, epsilon_text
from discreet.types import JsonMapping, JsonObject

FORMAT = "discreet-audit/1"
SHOWN = {"black box": "Single releases", "transcript": "Whole runs of a learner"}


def audit_document(
    listed: Sequence[Check],
    findings: Sequence[Finding],
    effort: Effort,
    mechanisms: Sequence[str],
    command: str,
    seconds: float,
) -> JsonObject:
    """Return verdict, summary and findings of an audit, with its error rates."""
    alpha = error_rate(listed)
    statements = sum(check.statements for check in listed)
    levels = ", ".join(epsilon_text(each) for each in effort.epsilons)
    return {
        "format": FORMAT,
        "version": discreet.__version__,
        "command": command,
        "verdict": worst({each.verdict for each in findings}),
        "summary": _summary(findings),
        "subtitle": f"{len(findings)} questions about {', '.join(mechanisms)} at ε = {levels}",
        "error": (
            f"{statements} statistical statements, each wrong with probability at most "
            f'{alpha:.1e}: if all code is correct, an audit says anything but "holds" at most '
            f"once in {1 / FALSE_ALARM:,.0f} runs, by a union bound. A claim that is refuted was "
            f"refuted at {alpha:.1e}. Computed answers have no such error."
        ),
        "statements": statements,
        "alpha": alpha,
        "false_alarm": FALSE_ALARM,
        "seconds": seconds,
        "findings": [each.to_json() for each in findings],
        "duration": duration(round(seconds)),
    }


def _summary(findings: Sequence[Finding]) -> str:
    failed, weak = (sum(f.verdict == verdict for f in findings) for verdict in (FAILS, WEAK))
    if failed:
        return (
            f"{failed} of {len(findings)} claims FAIL. Do not release anything with these "
            "mechanisms before the cause is known."
        )
    if weak:
        return (
            f"No claim fails, but {weak} of {len(findings)} answers are weak: an attack showed "
            "much less than it should, so the attack may be broken, or there is more noise than "
            "declared."
        )
    return f"All {len(findings)} claims hold, and every attack showed what it could."


def audit_page(document: JsonMapping, findings: Sequence[Finding]) -> str:
    """One self-contained HTML file, light and dark, for screens, phones and paper."""
    from discreet.client.pages import rendered  # needs Jinja, which is in some of the extras

    exact = {(each.subject, each.level): each.exact for each in findings if each.exact is not None}
    bounds = {title: defaultdict[str, list[Finding]](list) for title in SHOWN.values()}
    for each in findings:
        if each.part in SHOWN and each.measured is not None:
            row = each.question if each.part == "transcript" else each.subject
            about = each.subject, each.level
            known = exact.get(about) if each.exact is None else each.exact
            bounds[SHOWN[each.part]][row].append(replace(each, exact=known))
    parts = {each.part: [f for f in findings if f.part == each.part] for each in findings}
    functions = {"epsilon_text": epsilon_text, "place": _place}
    shown = {"bounds": bounds, "parts": parts, **functions}
    return rendered("discreet.audit", "audit.html", **document, **shown)


def _place(value: float, claim: float) -> float:
    """The place of a value in the picture, where a claim has 80 points."""
    return round(80.0 * min(value / claim, 2.5), 1)
