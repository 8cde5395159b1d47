"""``discreet observe``: late outcomes from a table, to a service or into its database."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from discreet.cli.answer import Answer
from discreet.cli.parser import Commands, command
from discreet.cli.serve_command import config_flag, need_extra

if TYPE_CHECKING:
    from discreet.client.reported_outcomes import RowResults
    from discreet.data.warehouse import OutcomeTable

TEXT = """\
The table is a .parquet or .csv file, or a query of a DuckDB file or of PostgreSQL. It has a column
of decision ids and one of losses or rewards, as the plan declares. Rows without a value are left
out. The first value of a decision stays, however often rows are sent; values that come after the
window of their batch are refused. Errors name rows, counted from 1.

With --url rows go to a running service, by its API. Without it they go into the database of the
experiment file, which is much faster: a SQLite database must not be served meanwhile, one of
PostgreSQL may be. After a kill the same command stores what is missing; with --progress it begins
where the other stopped.

examples:
  discreet observe --from outcomes.parquet
  discreet observe --from outcomes.parquet --url http://127.0.0.1:8000 --key dk_…
  discreet observe --from shop.duckdb --query 'SELECT decision, spent FROM orders' \\
      --id decision --value spent --progress orders.progress"""
SHOWN = 20
"""Refused rows that are printed."""
LARGE = 200_000
"""Rows from which a second process helps."""


def add(commands: Commands) -> None:
    """Add flags for the table, its columns, and where rows go."""
    parser = command(commands, "observe", "late outcomes from a table", observe, TEXT)
    config_flag(parser)
    flag = parser.add_argument
    flag("--from", dest="source", required=True, metavar="SOURCE", help="file or postgresql://…")
    flag("--query", metavar="SQL", help="for a database: what to read")
    flag("--id", default="id", metavar="COLUMN", help="ids of decisions (id)")
    flag("--value", metavar="COLUMN", help="their losses or rewards (loss or reward)")
    flag("--url", metavar="URL", help="a running service, instead of the experiment file")
    flag("--key", metavar="KEY", help="an API key with the scope observe (DISCREET_API_KEY)")
    flag("--progress", metavar="FILE", help="remember here which rows are done")


def observe(args: argparse.Namespace) -> Answer:
    """Send or store every row; print how many, and which were refused."""
    from discreet.client.reported_outcomes import DONE, ProgressFile, send_outcomes
    from discreet.client.sync_client import Client
    from discreet.data.warehouse import OutcomeTable
    from discreet.design.outcome import declared

    def table(word: str) -> OutcomeTable:
        return OutcomeTable(args.source, args.query, args.id, args.value or word)

    def results(chunks: Iterable[list[Any]]) -> Iterator[RowResults]:
        if client is not None:
            return send_outcomes(client, outcome, chunks)
        from discreet.service.runtime.outcome_import import import_outcomes

        return import_outcomes(settings, chunks, helpers=int(rows > LARGE))

    client = None
    if args.url is not None:
        client = Client(args.url, args.key or os.environ.get("DISCREET_API_KEY"), timeout=60.0)
        outcome = declared(client.schema())
    else:
        need_extra()
        from discreet.service.settings import Settings

        settings = Settings.read(args.config)
        outcome = settings.plan.outcome
    rows = table(outcome.word).count()
    progress = None if args.progress is None else ProgressFile(args.progress, args.source, rows)
    began = progress.done if progress else 0
    counts, refused, done = Counter[str](), list[tuple[int, str]](), began
    for each in results(table(outcome.word).chunks(began)):
        counts += each.counts
        refused += each.refused[: 1000 - len(refused)]
        done += each.counts.total()
        if progress:
            progress.add(each.counts.total())
        if sys.stderr.isatty():
            print(f"\r{done:,} of {rows:,} rows", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    lines = [f"{done - began:,} of {rows:,} rows read"]
    lines += [f"{counts[result]:,} {result}" for result in counts]
    lines += [f"row {row}: {reason}" for row, reason in sorted(refused)[:SHOWN]]
    document = {"rows": rows, "read": done - began, "results": dict(counts), "refused": refused}
    return Answer(document, "\n".join(lines), code=int(any(each not in DONE for each in counts)))
