"""``discreet simulate-traffic``: a labelled set, played against a running service."""

from __future__ import annotations

import os

from discreet.cli import command_line as cli
from discreet.client import Client
from discreet.design.outcome import Outcome, declared
from discreet.lab.traffic import Habits, contexts, first_rows, labels, play, summary
from discreet.text import duration
from discreet.types import JsonMapping
from discreet.validate import in_range, positive


@cli.command(
    "simulate-traffic",
    cli.flag("--url URL", "address of discreet serve", required=True),
    cli.flag("--key KEY", "an API key with the scopes decide and observe"),
    cli.flag("--data NAME|FILE", "as for discreet run: linear, fried, …", required=True),
    cli.flag("--rate R", "decisions per second (100)", 100.0),
    cli.flag("--rows N", "number of rows (default: all)", int),
    cli.flag("--late SHARE", "share of losses that are sent late", 0.0),
    cli.flag(
        "--late-by SECONDS", "delay of late losses (default: the window of the service)", float
    ),
    cli.flag("--missing SHARE", "share of losses that are never sent", 0.0),
    cli.flag("--duplicates SHARE", "share of losses that are sent twice", 0.0),
    cli.flag("--seed N", "seed of late, missing and duplicate losses", 0),
)
def traffic(args: cli.Args) -> cli.Answer:
    """Report loss over time, latency percentiles and answers by code."""
    rate = positive("rate", args.rate)
    for name in ("late", "missing", "duplicates"):
        in_range(name, getattr(args, name), 0.0, 1.0)
    data = first_rows(args.data, args.rows)
    # No second attempts: what fails is counted.
    with Client(args.url, args.key or os.environ.get("DISCREET_API_KEY"), retries=0) as client:
        status, schema = client.status(), client.schema()
        outcome = declared(schema)
        late_by = status["window"] if args.late_by is None else args.late_by
        played = play(
            client,
            contexts(data, schema),
            labels(data, schema),
            rate=rate,
            outcome=outcome,
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
    return cli.Answer(document, _lines(document, outcome), code=int(bool(found["errors"])))


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
        chance = shown(document["chance_loss"])
        lines.append(f"mean {outcome.word} {shown(document['loss'])} (by chance {chance}{best})")
    parts = [
        [duration(part["until"]), part["decisions"], part["release"], shown(part["loss"])]
        for part in document["loss_over_time"]
    ]
    times = [
        [kind, *(f"{value:.1f}" for value in found.values())]
        for kind, found in document["latency_ms"].items()
        if found
    ]
    lines += ["", *cli.table(["until", "decisions", "release", f"mean {outcome.word}"], parts), ""]
    lines += [*cli.table(["milliseconds", "p50", "p90", "p99", "max"], times), ""]
    for kind, answers in document["answers"].items():
        counted = ", ".join(f"{count:,} × {code}" for code, count in answers.items())
        lines.append(f"answers to {kind}: {counted or 'none'}")
    return lines
