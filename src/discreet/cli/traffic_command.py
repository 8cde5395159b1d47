"""``discreet simulate-traffic``: a labelled set, played against a running service."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from discreet.cli.command_line import Answer, Commands, command, table
from discreet.text import duration
from discreet.types import JsonMapping
from discreet.validate import in_range, positive

if TYPE_CHECKING:
    from discreet.design.outcome import Outcome

TEXT = """\
Requests are sent at the given rate, independent of response times. The loss of an action is 0 if
it is the label of the row, else 1. A service with rewards receives its highest and lowest reward.
Late losses are sent after --late-by seconds. Without --key the environment variable
DISCREET_API_KEY is used. The exit code is 1 if a request failed; the status 410, for a loss that
arrived too late, is not a failure.

example:
  discreet simulate-traffic --url http://127.0.0.1:8000 --key dk_… --data linear \\
      --rate 200 --rows 5000 --late 0.05 --missing 0.1 --duplicates 0.02
"""


def add(commands: Commands) -> None:
    """Add flags for data, address, rate, and late, missing or duplicate losses."""
    summary = "send a labelled data set to a service as simulated traffic"
    flag = command(commands, "simulate-traffic", summary, traffic, TEXT).add_argument
    flag("--url", required=True, metavar="URL", help="address of discreet serve")
    flag("--key", metavar="KEY", help="an API key with the scopes decide and observe")
    flag("--data", required=True, metavar="NAME|FILE", help="as for discreet run: linear, fried, …")
    flag("--rate", type=float, default=100.0, metavar="R", help="decisions per second (100)")
    flag("--rows", type=int, metavar="N", help="number of rows (default: all)")
    flag(
        "--late",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="share of losses that are sent late",
    )
    flag(
        "--late-by",
        type=float,
        metavar="SECONDS",
        help="delay of late losses (default: the window of the service)",
    )
    flag(
        "--missing",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="share of losses that are never sent",
    )
    flag(
        "--duplicates",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="share of losses that are sent twice",
    )
    flag(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of late, missing and duplicate losses",
    )


def traffic(args: argparse.Namespace) -> Answer:
    """Report loss over time, latency percentiles and answers by code."""
    from discreet.client import Client
    from discreet.design.outcome import declared
    from discreet.lab.traffic import Habits, contexts, first_rows, labels, play, summary

    rate = positive("rate", args.rate)
    for name in ("late", "missing", "duplicates"):
        in_range(name, getattr(args, name), 0.0, 1.0)
    data = first_rows(args.data, args.rows)
    # No second attempts: what fails is counted.
    with Client(args.url, args.key or os.environ.get("DISCREET_API_KEY"), retries=0) as client:
        status, schema = client.status(), client.schema()
        late_by = status["window"] if args.late_by is None else args.late_by
        played = play(
            client,
            contexts(data, schema),
            labels(data, schema),
            rate=rate,
            outcome=declared(schema),
            habits=Habits(args.late, late_by, args.missing, args.duplicates),
            users=status["unit"] != "decision",
            seed=args.seed,
        )
    found = summary(played)
    document = {
        "url": args.url,
        "experiment": status["experiment"],
        "data": data.name,
        "rows": data.rows,
        "rate": rate,
        "outcome": schema["outcome"],
        "chance_loss": 1 - 1 / schema["n_actions"],
        "best_loss": data.best_loss,
        **found,
    }
    return Answer(
        document, "\n".join(_lines(document, declared(schema))), code=1 if found["errors"] else 0
    )


def _lines(document: JsonMapping, outcome: Outcome) -> list[str]:
    """Return lines with losses in the declared units of the service."""

    def shown(loss: float) -> str:
        return f"{outcome.value_of(loss):.3f}"

    known = document["best_loss"]
    best = "" if known is None else f", best possible {shown(known)}"
    lines = [
        f"{document['decided']:,} of {document['rows']:,} decisions on {document['data']} in "
        f"{duration(document['seconds'])}, {document['stored']:,} stored, "
        f"{document['missing']:,} without an answer",
    ]
    if document["loss"] is not None:
        lines.append(
            f"mean {outcome.word} {shown(document['loss'])} "
            f"(by chance {shown(document['chance_loss'])}{best})"
        )
    rows = [
        [
            duration(part["until"]),
            f"{part['decisions']:,}",
            str(part["release"]),
            shown(part["loss"]),
        ]
        for part in document["loss_over_time"]
    ]
    lines += ["", *table(["until", "decisions", "release", f"mean {outcome.word}"], rows), ""]
    rows = [
        [kind, *(f"{value:.1f}" for value in times.values())]
        for kind, times in document["latency_ms"].items()
        if times
    ]
    lines += [*table(["milliseconds", "p50", "p90", "p99", "max"], rows), ""]
    for kind, answers in document["answers"].items():
        counted = ", ".join(f"{count:,} × {code}" for code, count in answers.items())
        lines.append(f"answers to {kind}: {counted or 'none'}")
    return lines
