"""``discreet audit``: attack every mechanism that ships, and report the findings."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.cli.command_line import Answer, Commands, command, table, write
from discreet.errors import InvalidInput
from discreet.text import epsilon_text
from discreet.types import JsonObject
from discreet.validate import in_range, installed, one_of, whole

if TYPE_CHECKING:
    from discreet.audit.finding import Finding
    from discreet.audit.suite import Effort

TEXT = """\
For every mechanism the audit compares the claimed guarantee with computed sensitivities and
likelihood ratios, with the noise that is added, with attacks on worst-case pairs of batches, and
with whole runs of a learner. It gives one verdict per question. The exit code is 1 if a claim
fails. docs/audit.md explains the results.

examples:
  discreet audit --quick
  discreet audit --full --html audit.html
  discreet audit --mechanism ridge-structured --epsilon 1 4
  discreet audit --part noise
"""


def add(commands: Commands) -> None:
    """Add flags for effort, mechanisms, parts and ε."""
    summary = "attack every mechanism of the library and report verdicts"
    parser = command(commands, "audit", summary, audit, TEXT)
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument(
        "--quick", action="store_true", help="ε = 2, a minute on two cores (default)"
    )
    effort.add_argument("--full", action="store_true", help="ε = 1, 2, 4, 8, at most 15 minutes")
    parser.add_argument(
        "--mechanism", nargs="+", metavar="NAME", help="ridge-structured, logistic-gamma, finite, …"
    )
    parser.add_argument(
        "--part", nargs="+", metavar="NAME", help="exact, noise, black-box, transcript"
    )
    parser.add_argument(
        "--epsilon", nargs="+", type=float, metavar="E", help="values of ε to audit"
    )
    parser.add_argument("--html", metavar="FILE", help="also write the report as HTML")
    parser.add_argument(
        "--jobs",
        type=int,
        default=0,
        metavar="N",
        help="number of processes (default: one per core)",
    )


def audit(args: argparse.Namespace) -> Answer:
    """Run the audit; exit code 1 if a claim fails."""
    from discreet.audit.finding import FAILS
    from discreet.audit.suite import AUDITED, PARTS, answers, audit_document, checks

    began = time.monotonic()
    if args.html:
        installed("campaign", "for the page", "matplotlib", "jinja2")
    effort, mechanisms = _effort(args), _chosen("mechanism", args.mechanism, AUDITED)
    parts = _chosen("part", args.part, tuple(part.replace(" ", "-") for part in PARTS))
    listed = checks(effort, mechanisms, [part.replace("-", " ") for part in parts])
    if not listed:
        raise InvalidInput(
            f"part must be one that these mechanisms have; got {', '.join(parts)}. "
            "Whole runs are played with ridge-structured and default-plan."
        )
    findings = answers(listed, whole("jobs", args.jobs, 0), _meter(len(listed), args.json))
    seconds = round(time.monotonic() - began, 1)
    document = audit_document(listed, findings, effort, mechanisms, _command(args), seconds)
    if args.html:
        from discreet.audit.audit_page import audit_page

        write(args.html, audit_page(document, findings))
    code = 1 if document["verdict"] == FAILS else 0
    return Answer(document, "\n".join(_lines(document, findings)), code)


def _effort(args: argparse.Namespace) -> Effort:
    from discreet.audit.suite import FULL, QUICK

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


def _lines(document: JsonObject, findings: list[Finding]) -> list[str]:
    from discreet.audit.finding import HOLDS

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
    return "" if value is None else epsilon_text(value, 3)


def _meter(total: int, quiet: bool) -> Any:
    """Return a function that shows progress on one line of standard error."""
    if quiet or not sys.stderr.isatty():
        return None

    def show(done: int, finding: Finding) -> None:
        line = f"{done} of {total}: {finding.subject}, {finding.question}"[:78].ljust(78)
        print(f"\r{line}", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return show
