"""``discreet audit``: attack every mechanism that ships, and report the findings."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from discreet.audit import suite
from discreet.audit.finding import FAILS, HOLDS, Finding
from discreet.cli import command_line as cli
from discreet.errors import InvalidInput
from discreet.text import epsilon_text
from discreet.validate import in_range, installed, one_of, whole


@cli.command(
    "audit",
    cli.flag("--quick", "ε = 2, a minute on two cores (default)"),
    cli.flag("--full", "ε = 1, 2, 4, 8, at most 15 minutes"),
    cli.flag("--mechanism NAME", "ridge-structured, logistic-gamma, finite, …", nargs="+"),
    cli.flag("--part NAME", "exact, noise, black-box, transcript", nargs="+"),
    cli.flag("--epsilon E", "values of ε to audit", float, nargs="+"),
    cli.flag("--html FILE", "also write the report as HTML"),
    cli.flag("--jobs N", "number of processes (default: one per core)", 0),
)
def audit(args: argparse.Namespace) -> cli.Answer:
    """Run the audit; exit code 1 if a claim fails."""
    began = time.monotonic()
    if args.html:
        installed("campaign", "for the page", "jinja2")
    effort, mechanisms = _effort(args), _chosen("mechanism", args.mechanism, suite.AUDITED)
    parts = _chosen("part", args.part, [part.replace(" ", "-") for part in suite.PARTS])
    listed = suite.checks(effort, mechanisms, [part.replace("-", " ") for part in parts])
    if not listed:
        raise InvalidInput(
            f"part must be one that these mechanisms have; got {', '.join(parts)}. "
            "Whole runs are played with ridge-structured and default-plan."
        )

    def show(done: int, found: Finding) -> None:
        line = f"{done} of {len(listed)}: {found.subject}, {found.question}"
        cli.progress(line, last=done == len(listed))

    findings = suite.answers(listed, whole("jobs", args.jobs, 0), None if args.json else show)
    seconds = round(time.monotonic() - began, 1)
    document = suite.audit_document(listed, findings, effort, mechanisms, _typed(args), seconds)
    if args.html:
        cli.write(args.html, suite.audit_page(document, findings))
    header = ["question", "claimed", "exact", "proven", "attainable", "half noise", "verdict"]
    rows = [
        [
            f"{each.subject}: {each.question}",
            *map(_number, (each.level, each.exact, each.measured, each.attainable, each.halved)),
            each.verdict,
        ]
        for each in findings
    ]
    wrong = [
        f"{each.verdict}: {each.subject}, ε = {_number(each.level)}: {each.question}: {each.said}"
        for each in findings
        if each.verdict != HOLDS
    ]
    lines = [*cli.table(header, rows), "", *wrong, document["summary"], document["error"]]
    return cli.Answer(document, lines, code=int(document["verdict"] == FAILS))


def _effort(args: argparse.Namespace) -> suite.Effort:

    effort = suite.FULL if args.full else suite.QUICK
    if args.epsilon is None:
        return effort
    step = "Below, an attack needs millions of releases; above, e^ε is no protection."
    levels = [in_range("epsilon", each, 0.25, 16.0, step) for each in args.epsilon]
    return replace(effort, epsilons=tuple(dict.fromkeys(levels)))


def _chosen(what: str, names: list[str] | None, known: tuple[str, ...] | list[str]) -> list[str]:
    chosen = known if names is None else [one_of(what, name, known) for name in names]
    return [name for name in known if name in chosen]


def _typed(args: argparse.Namespace) -> str:
    """Return the command as it was typed."""
    words = ["discreet audit", "--full" if args.full else "--quick"]
    for name in ("mechanism", "part", "epsilon"):
        if given := getattr(args, name):
            words += [f"--{name}", *(f"{x:g}" if isinstance(x, float) else x for x in given)]
    return " ".join(words)


def _number(value: float | None) -> str:
    return "" if value is None else epsilon_text(value, 3)
