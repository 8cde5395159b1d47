"""``discreet observe``: late outcomes from a table, to a service or into its database."""

from __future__ import annotations

import os
from collections import Counter

from discreet.cli import command_line as cli
from discreet.client.http_client import Client
from discreet.client.reported_outcomes import DONE, ProgressFile, send_outcomes
from discreet.data.warehouse import OutcomeTable
from discreet.design.outcome import Guardrail, declared, declared_guardrails
from discreet.errors import InvalidInput

SHOWN, KEPT = 20, 1000
"""Refused rows that are printed, and that --json lists."""
LARGE = 200_000
"""Rows from which a second process helps."""


@cli.command(
    "observe",
    cli.CONFIG,
    cli.flag("--from SOURCE", "file or postgresql://…", required=True, dest="source"),
    cli.flag("--query SQL", "query, for a database"),
    cli.flag("--id COLUMN", "ids of decisions (id)", "id"),
    cli.flag("--value COLUMN", "their losses or rewards (loss or reward)"),
    cli.flag("--guardrails NAMES", "columns of guardrails, as complaints,latency; none"),
    cli.flag("--url URL", "a running service, instead of the experiment file"),
    cli.flag("--key KEY", "an API key with the scope observe (DISCREET_API_KEY)"),
    cli.flag("--progress FILE", "file that records which rows are done"),
)
def observe(args: cli.Args) -> cli.Answer:
    """Send or store every row; print how many, and which were refused."""
    key = args.key or os.environ.get("DISCREET_API_KEY")
    client = None if args.url is None else Client(args.url, key, timeout=60.0)
    if client is not None:
        schema = client.schema()
        outcome, rails = declared(schema), declared_guardrails(schema)
    else:
        settings = cli.service_settings(args.config)
        outcome, rails = settings.plan.outcome, tuple(settings.plan.guardrails or ())
    rails = _chosen(rails, args.guardrails)
    names = tuple(each.name for each in rails)
    table = OutcomeTable(args.source, args.query, args.id, args.value or outcome.word, names)
    rows = table.count()
    done = ProgressFile(args.progress, table.mark, rows)
    began, chunks = done.done, table.chunks(done.done)
    if client is not None:
        results = send_outcomes(client, outcome, chunks, rails)
    else:
        from discreet.service.runtime.bulk import import_outcomes

        results = import_outcomes(settings, chunks, helpers=int(rows > LARGE), guardrails=names)
    counts, refused = Counter[str](), list[tuple[int, str]]()
    for each in results:
        counts += each.counts
        refused += each.refused[: KEPT - len(refused)]
        done.add(each.counts.total())
        cli.progress(f"{done.done:,} of {rows:,} rows", last=done.done == rows)
    read = done.done - began
    lines = [f"{read:,} of {rows:,} rows read"]
    lines += [f"{counts[result]:,} {result}" for result in counts]
    lines += [f"row {row}: {reason}" for row, reason in sorted(refused)[:SHOWN]]
    document = {"rows": rows, "read": read, "results": dict(counts), "refused": refused}
    return cli.Answer(document, lines, code=int(any(each not in DONE for each in counts)))


def _chosen(declared: tuple[Guardrail, ...], given: str | None) -> tuple[Guardrail, ...]:
    """Return the guardrails that the table has; a report cannot be completed later."""
    names = [] if given in (None, "none") else str(given).split(",")
    known = [each.name for each in declared]
    if set(names) - set(known) or len(set(names)) < len(names) or (declared and given is None):
        raise InvalidInput(
            f"--guardrails must name guardrails of the plan ({', '.join(known) or 'it has none'}), "
            f"or be none; got {given!r}. The first report of a decision stays as it is: write "
            f"--guardrails {','.join(known) or 'none'}, or none to report outcomes alone."
        )
    return tuple(each for name in names for each in declared if each.name == name)
