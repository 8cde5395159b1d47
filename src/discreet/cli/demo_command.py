"""``discreet demo``: nine algorithms, three privacy levels, one page, in a minute."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path

from discreet.cli.command_line import Answer, Commands, as_json, command, folder, table, write
from discreet.text import epsilon_text
from discreet.types import JsonMapping
from discreet.validate import installed, whole


def add(commands: Commands) -> None:
    """Add the flag of the folder."""
    summary = "nine algorithms, three privacy levels: a table and a page"
    example = "example:\n  discreet demo --out demo"
    flag = command(commands, "demo", summary, demo, example).add_argument
    flag("--out", default="demo", metavar="DIR", help="output folder (default: demo)")
    flag("--rows", type=int, default=20_000, help=argparse.SUPPRESS)
    flag("--seeds", type=int, default=5, help=argparse.SUPPRESS)


def demo(args: argparse.Namespace) -> Answer:
    """Play the algorithms, and write results, figure and page."""
    whole("rows", args.rows, 100)
    whole("seeds", args.seeds, 1)
    installed("campaign", "for the demo's page", "matplotlib", "jinja2")
    from discreet.data import load
    from discreet.lab.report.demo import (
        ALGORITHMS,
        EPSILONS,
        demo_document,
        demo_figure,
        demo_page,
        play_set,
        private_run,
    )

    out = folder(args.out)
    sets = [load("fried", rows=args.rows)]
    if find_spec("sklearn") is not None:
        sets.append(load("digits"))
    runs = []
    for data in sets:
        if not args.json:
            line = (
                f"playing {data.name}: {len(ALGORITHMS)} algorithms, {len(EPSILONS)} privacy levels"
            )
            print(f"{line}, seeds 0 to {args.seeds - 1} …", file=sys.stderr, flush=True)
        runs += play_set(data, EPSILONS, args.seeds)
    results = demo_document(sets, runs, args.seeds)
    results["private"] = private_run(sets[0], out / "released.json")
    # Figures and pages are made from the content of the file, and from nothing else.
    written = as_json(results) + "\n"
    results = json.loads(written)
    figure = demo_figure(results)
    files: dict[str, str | bytes] = {
        "results.json": written,
        "losses.png": figure.png(),
        "losses.svg": figure.svg(),
        "index.html": demo_page(results),
    }
    for name, content in files.items():
        write(out / name, content)
    document = {**results, "files": [str(out / name) for name in (*files, "released.json")]}
    return Answer(document, "\n".join(_lines(document, out)))


def _lines(document: JsonMapping, out: Path) -> list[str]:
    lines = []
    for data in document["sets"]:
        runs = [run for run in document["runs"] if run["data"] == data["name"]]
        header = [data["name"], *(f"ε = {epsilon_text(float(e))}" for e in document["epsilons"])]
        rows = [
            [each["name"], *(_loss(run) for run in runs if run["algorithm"] == each["name"])]
            for each in document["algorithms"]
        ]
        plain = f"best fixed action {data['best_fixed']:.3f}, uniform {data['uniform']:.3f}"
        lines += [*table(header, rows), f"without contexts: {plain}", ""]
    return [
        *lines,
        f"Mean loss ± standard error, seeds 0 to {document['seeds'] - 1}; smaller is better.",
        "Noise scale of ε; seeded noise, not private. Settings are fixed, not tuned per ε.",
        "",
        "Default     the plan of discreet when you name no policy and no oracle; not tuned",
        "Supervised  a reference, not a bandit: it sees the losses of all actions. It fits one",
        "            batch at a time, as the paper's algorithms do; Default adds up all batches",
        "",
        *document["private"]["statement"].split("\n"),
        "",
        f"page     {out / 'index.html'}",
        f"figure   {out / 'losses.png'}, {out / 'losses.svg'}",
        f"results  {out / 'results.json'}",
        f"release  {out / 'released.json'} (try: discreet release show {out / 'released.json'})",
    ]


def _loss(run: JsonMapping) -> str:
    error = run["standard_error"]
    return f"{run['loss']:.3f}" + ("" if error is None else f" ± {error:.3f}")
