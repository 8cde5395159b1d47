"""``discreet simulate-traffic``: a labelled set, played against a running service."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

from discreet.billboard.client import Client
from discreet.cli.answer import Answer, table
from discreet.data.dataset import Dataset
from discreet.errors import InvalidInput
from discreet.validate import in_range, positive, whole


def traffic(args: argparse.Namespace) -> Answer:
    """Loss over time, latency percentiles and answers by code."""
    from discreet.traffic.contexts import contexts
    from discreet.traffic.open_loop import Habits, play
    from discreet.traffic.summary import summary

    rate = positive("rate", args.rate)
    for name in ("late", "missing", "duplicates"):
        in_range(name, getattr(args, name), 0.0, 1.0)
    data = _data(args.data, args.rows)
    # No second attempts: what fails is counted.
    with Client(args.url, args.key or os.environ.get("DISCREET_API_KEY"), retries=0) as client:
        status, schema = client.status(), client.schema()
        late_by = status["window"] if args.late_by is None else args.late_by
        played = play(
            client,
            contexts(data, schema),
            data.labels.tolist(),
            rate=rate,
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
        "chance_loss": 1 - 1 / schema["n_actions"],
        "best_loss": data.best_loss,
        **found,
    }
    return Answer(document, "\n".join(_lines(document)), code=1 if found["errors"] else 0)


def _data(name: str, rows: int | None) -> Dataset:
    """The first rows of a set; a generated one has as many as are wanted."""
    from dataclasses import replace

    from discreet.data import load
    from discreet.data.lookup import GENERATORS

    if rows is None or name in GENERATORS:
        return load(name, rows=rows)
    data = load(name)
    if whole("rows", rows, 1) > data.rows:
        raise InvalidInput(f"rows must be at most {data.rows}; got {rows}. Play fewer.")
    known = None if data.expected is None else data.expected[:rows]
    return replace(data, contexts=data.contexts[:rows], labels=data.labels[:rows], expected=known)


def _lines(document: Mapping[str, Any]) -> list[str]:
    best = "" if document["best_loss"] is None else f", best possible {document['best_loss']:.3f}"
    lines = [
        f"{document['decided']:,} of {document['rows']:,} decisions on {document['data']} in "
        f"{document['seconds']:.1f} s, {document['stored']:,} stored, "
        f"{document['missing']:,} without an answer",
    ]
    if document["loss"] is not None:
        lines.append(
            f"mean loss {document['loss']:.3f} (by chance {document['chance_loss']:.3f}{best})"
        )
    rows = [
        [
            f"{part['until']:.1f} s",
            f"{part['decisions']:,}",
            str(part["release"]),
            f"{part['loss']:.3f}",
        ]
        for part in document["loss_over_time"]
    ]
    lines += ["", *table(["until", "decisions", "release", "mean loss"], rows), ""]
    rows = [
        [kind, *(f"{value:.1f}" for value in times.values())]
        for kind, times in document["latency_ms"].items()
        if times
    ]
    lines += [*table(["milliseconds", "p50", "p90", "p99", "max"], rows), ""]
    for kind, answers in document["answers"].items():
        told = ", ".join(f"{count:,} × {code}" for code, count in answers.items())
        lines.append(f"answers to {kind}: {told or 'none'}")
    return lines
