"""``discreet demo``: nine algorithms, three privacy levels, one page, in a minute."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec

from discreet.cli import command_line as cli
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
from discreet.lab.report.figures import write_files
from discreet.text import epsilon_text
from discreet.types import JsonMapping
from discreet.validate import whole

LEGEND = """\
Mean loss ± standard error, seeds 0 to {last}; smaller is better.
Noise scale of ε; seeded noise, not private. Settings are fixed, not tuned per ε.

Default     the plan of discreet when you name no policy and no oracle; not tuned
Supervised  a reference, not a bandit: it sees the losses of all actions. It fits one
            batch at a time, as the paper's algorithms do; Default adds up all batches

{statement}

page     {out}/index.html
figure   {out}/losses.png, {out}/losses.svg
results  {out}/results.json
release  {out}/released.json (try: discreet release show {out}/released.json)"""


@cli.command(
    "demo",
    cli.flag("--out DIR", "output folder (default: demo)", "demo"),
    cli.flag("--rows N", argparse.SUPPRESS, 20_000),
    cli.flag("--seeds N", argparse.SUPPRESS, 5),
)
def demo(args: cli.Args) -> cli.Answer:
    """Play the algorithms, and write results, figure and page."""
    whole("rows", args.rows, 100)
    whole("seeds", args.seeds, 1)

    out = cli.folder(args.out)
    sets = [load("fried", rows=args.rows)]
    if find_spec("sklearn") is not None:
        sets.append(load("digits"))
    runs, counts = [], f"{len(ALGORITHMS)} algorithms, {len(EPSILONS)} privacy levels"
    for data in sets:
        if not args.json:
            line = f"playing {data.name}: {counts}, seeds 0 to {args.seeds - 1} …"
            print(line, file=sys.stderr, flush=True)
        runs += play_set(data, EPSILONS, args.seeds)
    results = demo_document(sets, runs, args.seeds)
    results["private"] = private_run(sets[0], out / "released.json")
    # Figures and pages are made from the content of the file, and from nothing else.
    written = cli.as_json(results) + "\n"
    results = json.loads(written)
    figure = demo_figure(results)
    files: dict[str, str | bytes] = {
        "results.json": written,
        "losses.png": figure.png(),
        "losses.svg": figure.svg(),
        "index.html": demo_page(results),
    }
    results["files"] = [*write_files(out, files), str(out / "released.json")]
    lines = []
    for data in results["sets"]:
        played = [run for run in results["runs"] if run["data"] == data["name"]]
        header = [data["name"], *(f"ε = {epsilon_text(float(e))}" for e in results["epsilons"])]
        rows = [
            [each["name"], *(_loss(run) for run in played if run["algorithm"] == each["name"])]
            for each in results["algorithms"]
        ]
        plain = f"best fixed action {data['best_fixed']:.3f}, uniform {data['uniform']:.3f}"
        lines += [*cli.table(header, rows), f"without contexts: {plain}", ""]
    legend = {"last": args.seeds - 1, "statement": results["private"]["statement"], "out": out}
    return cli.Answer(results, [*lines, LEGEND.format(**legend)])


def _loss(run: JsonMapping) -> str:
    error = run["standard_error"]
    return f"{run['loss']:.3f}" + ("" if error is None else f" ± {error:.3f}")
