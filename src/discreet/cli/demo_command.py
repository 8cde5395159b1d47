"""``discreet demo``: eight algorithms, three privacy levels, one page, in a minute."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet.cli.answer import Answer, as_json, table, write
from discreet.cli.parser import Commands, command
from discreet.errors import InvalidInput
from discreet.formatting import epsilon_text
from discreet.validate import installed, whole

if TYPE_CHECKING:
    from discreet.data import Dataset

FORMAT = "discreet-demo/1"
EPSILONS = (1.0, 4.0, float("inf"))
NOTE = (
    "ε here is the noise scale of ε: the curves come from seeded noise, not private, because runs "
    "that can be repeated and compared need a seed. A private run follows below."
)
SETTINGS_NOTE = (
    "One setting for each algorithm, the same for every data set and every ε, chosen once on other "
    "seeds; none is tuned for its ε, so do not read the table as a contest."
)


def add(commands: Commands) -> None:
    """Where to write."""
    summary = "eight algorithms, three privacy levels: a table and a page"
    example = "example:\n  discreet demo --out demo"
    flag = command(commands, "demo", summary, demo, example).add_argument
    flag("--out", default="demo", metavar="DIR", help="where to write (default: demo)")
    flag("--rows", type=int, default=20_000, help=argparse.SUPPRESS)
    flag("--seeds", type=int, default=5, help=argparse.SUPPRESS)


def demo(args: argparse.Namespace) -> Answer:
    """Play, write results, figure and page, and say where."""
    whole("rows", args.rows, 100)
    whole("seeds", args.seeds, 1)
    installed("campaign", "for the demo's page", "matplotlib", "jinja2")
    from discreet.cli.demo_settings import private_run
    from discreet.data import load
    from discreet.lab.report.demo_figure import demo_figure
    from discreet.lab.report.demo_page import page

    out = _directory(args.out)
    sets = [load("fried", rows=args.rows)]
    if find_spec("sklearn") is not None:
        sets.append(load("digits"))
    results = _play(sets, args.seeds, quiet=args.json)
    results["private"] = private_run(sets[0], out / "released.json")
    # Figures and pages are made from what the file says, and from nothing else.
    written = as_json(results) + "\n"
    results = json.loads(written)
    figure = demo_figure(results)
    files: dict[str, str | bytes] = {
        "results.json": written,
        "losses.png": figure.png(),
        "losses.svg": figure.svg(),
        "index.html": page(results),
    }
    for name, content in files.items():
        write(out / name, content)
    document = {**results, "files": [str(out / name) for name in (*files, "released.json")]}
    return Answer(document, "\n".join(_lines(document, out)))


def _directory(path: str) -> Path:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--out must be a directory; {path} is not ({error.strerror}). Choose another place."
        ) from None
    return Path(path)


def _play(sets: list[Dataset], seeds: int, *, quiet: bool) -> dict[str, Any]:
    from discreet.cli.demo_settings import ALGORITHMS, play_set

    runs: list[dict[str, Any]] = []
    for data in sets:
        if not quiet:
            told = (
                f"playing {data.name}: {len(ALGORITHMS)} algorithms, {len(EPSILONS)} privacy levels"
            )
            print(f"{told}, seeds 0 to {seeds - 1} …", file=sys.stderr, flush=True)
        runs += play_set(data, EPSILONS, seeds)
    return {
        "format": FORMAT,
        "version": __version__,
        "note": NOTE,
        "settings_note": SETTINGS_NOTE,
        "sets": [
            {
                "name": data.name,
                "rows": data.rows,
                "dimension": data.dimension,
                "n_actions": data.n_actions,
                "best_loss": data.best_loss,
                "best_fixed": data.best_fixed,
                "uniform": 1.0 - 1.0 / data.n_actions,
            }
            for data in sets
        ],
        "epsilons": list(EPSILONS),
        "seeds": seeds,
        "algorithms": [
            {"name": name, "feedback": setting.feedback, "text": setting.text}
            for name, setting in ALGORITHMS.items()
        ],
        "runs": runs,
    }


def _lines(document: Mapping[str, Any], out: Path) -> list[str]:
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
        *document["private"]["statement"].split("\n"),
        "",
        f"page     {out / 'index.html'}",
        f"figure   {out / 'losses.png'}, {out / 'losses.svg'}",
        f"results  {out / 'results.json'}",
        f"release  {out / 'released.json'} (try: discreet release show {out / 'released.json'})",
    ]


def _loss(run: Mapping[str, Any]) -> str:
    error = run["standard_error"]
    return f"{run['loss']:.3f}" + ("" if error is None else f" ± {error:.3f}")
