"""``discreet audit``: attack every mechanism that ships, and say what was found."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from typing import Any

import discreet
from discreet.audit.finding import FAILS, HOLDS, WEAK, Finding
from discreet.audit.subjects import MECHANISMS
from discreet.audit.suite import (
    FALSE_ALARM,
    FULL,
    PARTS,
    QUICK,
    Effort,
    answers,
    checks,
    error_rate,
)
from discreet.cli.answer import Answer, table, write
from discreet.cli.progress_meter import duration
from discreet.errors import InvalidInput
from discreet.validate import in_range, one_of, whole

FORMAT = "discreet-audit/1"


def audit(args: argparse.Namespace) -> Answer:
    """Every question with its verdict; exit code 1 if a claim fails."""
    began = time.monotonic()
    effort, mechanisms = _effort(args), _chosen("mechanism", args.mechanism, MECHANISMS)
    parts = _chosen("part", args.part, tuple(part.replace(" ", "-") for part in PARTS))
    listed = checks(effort, mechanisms, [part.replace("-", " ") for part in parts])
    if not listed:
        raise InvalidInput(
            f"part must be one that is asked of these mechanisms; got {', '.join(parts)}. "
            "Whole runs are played with ridge-structured and default-plan."
        )
    findings = answers(listed, whole("jobs", args.jobs, 0), _meter(len(listed), args.json))
    alpha = error_rate(listed)
    statements = sum(check.statements for check in listed)
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": discreet.__version__,
        "command": _command(args),
        "verdict": _worst(findings),
        "summary": _summary(findings),
        "subtitle": (
            f"{len(findings)} questions about {', '.join(mechanisms)} at ε = "
            f"{', '.join(f'{each:g}' for each in effort.epsilons)}"
        ),
        "error": (
            f"{statements} statistical statements, each wrong with probability at most "
            f'{alpha:.1e}: if all code is correct, an audit says anything but "holds" at most '
            f"once in {1 / FALSE_ALARM:,.0f} runs, by a union bound. A claim that is refuted was "
            f"refuted at {alpha:.1e}. Computed answers have no such error."
        ),
        "statements": statements,
        "alpha": alpha,
        "false_alarm": FALSE_ALARM,
        "seconds": round(time.monotonic() - began, 1),
        "findings": [each.to_json() for each in findings],
    }
    document["duration"] = duration(document["seconds"])
    if args.html:
        from discreet.audit.audit_page import audit_page

        write(args.html, audit_page(document, findings))
    code = 1 if document["verdict"] == FAILS else 0
    return Answer(document, "\n".join(_lines(document, findings)), code)


def _effort(args: argparse.Namespace) -> Effort:
    effort = FULL if args.full else QUICK
    if args.epsilon is None:
        return effort
    step = "Below, an attack needs millions of releases; above, e^ε is no protection."
    levels = [in_range("epsilon", each, 0.25, 16.0, step) for each in args.epsilon]
    return replace(effort, epsilons=tuple(dict.fromkeys(levels)))


def _chosen(what: str, names: list[str] | None, all_of_them: tuple[str, ...]) -> tuple[str, ...]:
    if names is None:
        return all_of_them
    chosen = {one_of(what, name, all_of_them) for name in names}
    return tuple(name for name in all_of_them if name in chosen)


def _command(args: argparse.Namespace) -> str:
    parts = ["discreet audit", "--full" if args.full else "--quick"]
    if args.mechanism:
        parts.append(f"--mechanism {' '.join(args.mechanism)}")
    if args.part:
        parts.append(f"--part {' '.join(args.part)}")
    if args.epsilon:
        parts.append(f"--epsilon {' '.join(f'{each:g}' for each in args.epsilon)}")
    return " ".join(parts)


def _worst(findings: list[Finding]) -> str:
    said = {each.verdict for each in findings}
    return next((verdict for verdict in (FAILS, WEAK) if verdict in said), HOLDS)


def _summary(findings: list[Finding]) -> str:
    count = {verdict: sum(f.verdict == verdict for f in findings) for verdict in (FAILS, WEAK)}
    if count[FAILS]:
        return (
            f"{count[FAILS]} of {len(findings)} claims FAIL. Do not release anything with these "
            "mechanisms before the cause is known."
        )
    if count[WEAK]:
        return (
            f"No claim fails, but {count[WEAK]} of {len(findings)} answers are weak: an attack "
            "showed much less than it should, so it may be broken, or there is more noise than "
            "declared."
        )
    return f"All {len(findings)} claims hold, and every attack showed what it could."


def _lines(document: dict[str, Any], findings: list[Finding]) -> list[str]:
    rows = [
        [
            f"{each.subject}: {each.question}",
            _number(each.level),
            _number(each.exact),
            _number(each.measured),
            _number(each.attainable),
            _number(each.halved),
            each.verdict,
        ]
        for each in findings
    ]
    header = ["question", "claimed", "exact", "proven", "attainable", "half noise", "verdict"]
    wrong = [
        f"{each.verdict}: {each.subject}, ε = {_number(each.level)}: {each.question}: {each.said}"
        for each in findings
        if each.verdict != HOLDS
    ]
    return [*table(header, rows), "", *wrong, document["summary"], document["error"]]


def _number(value: float | None) -> str:
    return "" if value is None else "∞" if value == float("inf") else f"{value:.3g}"


def _meter(total: int, quiet: bool) -> Any:
    """A line on standard error that changes, for people who wait."""
    if quiet or not sys.stderr.isatty():
        return None

    def told(done: int, finding: Finding) -> None:
        line = f"{done} of {total}: {finding.subject}, {finding.question}"[:78].ljust(78)
        print(f"\r{line}", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return told
