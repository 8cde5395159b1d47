"""``discreet campaign run|status|report|compare``: the paper's evaluation, and variants of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from discreet.cli import command_line as cli
from discreet.lab.campaign import result_files, run_campaign
from discreet.lab.campaign.run_campaign import KEYS, Campaign, Progress, read_campaign
from discreet.lab.report import campaign_report, paper_comparison
from discreet.privacy.budget import Participation
from discreet.text import duration, epsilon_text
from discreet.types import JsonObject

BAR = 20
FOLDER = cli.flag("folder DIR", "folder of results, as --out of campaign run")
SELECT = """choose settings on the seeds that are reported, as the paper does, or on half of them \
and report the other half"""
CURVES = "data sets with a plot of curves: paper (its six), all, or names"


def words(found: Progress) -> str:
    """Return tasks done, rounds per second, time left and the latest task."""
    counted = f"{found.tasks_done} of {found.tasks} tasks"
    if not found.tasks_done or not found.seconds:
        return counted
    rate = found.rounds_done / found.seconds
    left = (found.rounds - found.rounds_done) / rate if rate else 0.0
    remaining = [f"{duration(round(left))} left"] if left else []
    return ", ".join([counted, f"{rounds(rate)}/s", *remaining, found.latest])


def rounds(count: float) -> str:
    """Return ``40,000 rounds`` or ``2.6 million rounds``."""
    return f"{count / 1e6:,.1f} million rounds" if count >= 1e6 else f"{count:,.0f} rounds"


@cli.command(
    "campaign run",
    cli.flag("file campaign.toml", "file with these keys", nargs="?"),
    cli.IMPORT,
    cli.flag("--data NAME", "data sets: folders, files, openml:ID, paper, fried, …", nargs="+"),
    cli.flag("--out DIR", "folder of results; an existing one is continued"),
    cli.flag("--device auto|numpy|cpu|cuda", "cpu is torch without a GPU"),
    cli.flag("--jobs N", "number of processes (default: one per core, at most 12 on a GPU)", int),
    cli.flag("--scheduler ADDRESS", "address of a Dask cluster: tcp://…"),
    cli.flag("--max-columns P", "skip data sets with more columns", int),
    cli.flag("--memory GIB", "memory of all jobs (default: the free memory)", float),
    cli.flag(
        "--preset paper|quick|default|rivals",
        "the paper's 800 settings per level, a small grid, the untuned default plan, or the "
        "default plan and other private bandits (default: paper)",
    ),
    cli.flag("--mechanism paper|structured", "kind of noise (default: paper)"),
    cli.flag("--algorithms NAME", "algorithms (default: the paper's eight and Default)", nargs="+"),
    cli.flag("--epsilon E", "privacy levels ε; inf for no noise", float, nargs="+"),
    cli.flag("--ridges R", "regularisation strengths λ", float, nargs="+"),
    cli.flag("--seeds N", "use seeds 0 … N−1 (default: paper 10, quick 3)", int),
    cli.flag(
        "--features raw|ranges|wide",
        "leave columns as they are, or scale them by the ranges of the data, for evaluation "
        "only (default: raw)",
    ),
    cli.flag("--oracles NAME", "oracles of the grid: Ridge, Logistic", nargs="+"),
    *(cli.SCHEMA, cli.TARGET, cli.USER, *cli.OFTEN_FLAGS),
)
def run(args: cli.Args) -> cli.Answer:
    """Compute the missing runs; exit code 1 if a task failed, 130 after Ctrl-C."""
    document = read_campaign(args.file) if args.file else {}
    given = {key: value for key, value in vars(args).items() if key in KEYS}
    document |= {key: value for key, value in given.items() if value is not None}
    campaign, found, code = Campaign.from_document(document), Progress(), 0

    def show(latest: Progress) -> None:
        nonlocal found
        found = latest
        if args.json or not found.tasks:
            return
        if sys.stderr.isatty():  # one line that changes, with a bar by rounds: tasks differ in size
            full = BAR * found.rounds_done // max(1, found.rounds)
            cli.progress(f"[{'#' * full}{' ' * (BAR - full)}] {words(found)}")
        elif found.tasks_done:
            print(words(found), file=sys.stderr, flush=True)

    if not args.json:
        cli.progress("reading data …")
    try:
        run_campaign.run(campaign, show)
    except KeyboardInterrupt:
        code = 130
    finally:
        if sys.stderr.isatty() and not args.json:
            print(file=sys.stderr)
    document = {
        "out": str(campaign.out),
        "tasks": found.tasks,
        "tasks_done": found.tasks_done,
        "runs": found.runs_done,
        "rounds": found.rounds_done,
        "seconds": found.seconds,
        "failed": found.failed,
        "too_wide": found.too_wide,
        "stopped": bool(code),
    }
    if code:
        done = f"{found.tasks_done} of {found.tasks} tasks are done and kept"
        return cli.Answer(document, f"stopped: {done}. Run the same command again to go on.", code)
    return cli.Answer(document, _run_lines(found, campaign), code=int(bool(found.failed)))


def _run_lines(found: Progress, campaign: Any) -> list[str]:
    first = "no run was missing"
    if found.tasks or found.failed:
        rate = f" ({rounds(found.rounds_done / found.seconds)} per second)" * bool(found.seconds)
        first = f"{found.runs_done:,} runs in {duration(round(found.seconds))}{rate}"
    lines = [first]
    if found.too_wide:
        wide = ", ".join(found.too_wide)
        lines.append(f"wider than {campaign.max_columns} columns, left out: {wide}")
    lines += [f"failed: {name}: {why}" for name, why in found.failed.items()]
    lines += ["Run the same command again to retry these."] * bool(found.failed)
    return [*lines, f"results  {campaign.out} (try: discreet campaign report {campaign.out})"]


@cli.command("campaign status", cli.IMPORT, FOLDER)
def status(args: cli.Args) -> cli.Answer:
    """Report present, missing, failed and damaged runs."""
    document = {"folder": args.folder, **result_files.status(Path(args.folder))}
    grid, sets, device = document["grid"], document["datasets"], document["device"]
    there = f"{document['runs']:,} of {document['expected']:,} runs are there"
    levels = ", ".join(epsilon_text(float(each)) for each in grid["epsilons"])
    lines = [
        there + "; the campaign is running" * document["running"],
        f"preset {grid['preset']}, mechanism {grid['mechanism']}, features "
        f"{grid['features']}{' (NonPrivate)' * bool(document['not_private'])}, ε = {levels}, "
        f"{grid['seeds']} seeds; made on {device or 'nothing yet'}",
    ]
    if often := Participation.from_json(grid.get("participation")):
        lines.append(f"ε is for one user, who contributes {often.text}")
    if sets:
        rows = [
            [name, each["runs"], each["expected"], f"{each['seconds']:.1f}", _state(each)]
            for name, each in sets.items()
        ]
        lines += ["", *cli.table(["data set", "runs", "of", "seconds", "state"], rows)]
    for name, each in sets.items():
        lines += [f"{name} {family}: {why}" for family, why in each["failed"].items()]
    unreadable = document["unreadable"].items()
    return cli.Answer(
        document, [*lines, *(f"{n} could not be read: {why}" for n, why in unreadable)]
    )


def _state(each: JsonObject) -> str:
    if each["failed"] or each["damaged"]:
        return "failed" if each["failed"] else "damaged"
    return "complete" if each["runs"] >= each["expected"] else "incomplete"


@cli.command(
    "campaign report",
    cli.IMPORT,
    FOLDER,
    cli.flag("--out DIR", "output folder (default: DIR/report)"),
    cli.flag("--select seeds|split", SELECT, "seeds"),
    cli.flag("--curves NAME", CURVES, str, nargs="+", default=["paper"]),
)
def report(args: cli.Args) -> cli.Answer:
    """Write tables, figures and one page, from the result files only."""
    folder = Path(args.folder)
    out = Path(args.out) if args.out else folder / "report"
    curves = args.curves if len(args.curves) > 1 else args.curves[0]
    document = campaign_report.write(folder, out, args.select, curves)
    lines = [*document["summary"], *document["missing"], f"page     {out / 'index.html'}"]
    return cli.Answer(document, lines)


@cli.command("campaign compare", cli.IMPORT, FOLDER, cli.flag("--cells", "also print every cell"))
def compare(args: cli.Args) -> cli.Answer:
    """Compare win rates with the published ones."""
    document = paper_comparison.compare(Path(args.folder))
    lines, cells = paper_comparison.sentences(document), document["cells"]
    if not args.cells:
        return cli.Answer({key: document[key] for key in document if key != "cells"}, lines)
    header = ["ε", "row", "column", "sets", "ours", "paper", "difference"]
    rows = [
        [
            epsilon_text(cell["epsilon"]),
            cell["row_algorithm"],
            cell["column_algorithm"],
            cell["datasets"],
            f"{cell['ours']:.1f}",
            None if cell["published"] is None else f"{cell['published']:.1f}",
            None if cell["difference"] is None else f"{cell['difference']:+.1f}",
        ]
        for cell in cells
    ]
    return cli.Answer(document, [*lines, "", *cli.table(header, rows)])
