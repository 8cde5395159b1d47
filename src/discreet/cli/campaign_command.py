"""``discreet campaign run|status|report|compare``: the paper's evaluation, and variants of it."""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.command_line import Answer, Commands, command, table
from discreet.cli.flags import import_flag, often_flags, schema_flag, target_flag, user_flag
from discreet.text import duration, epsilon_text
from discreet.types import JsonObject
from discreet.validate import installed

BAR = 20


class Meter:
    """Progress on standard error: one line that changes, or one line per task."""

    def __init__(self, *, quiet: bool = False) -> None:
        from discreet.lab.campaign.run_campaign import Progress

        self._quiet = quiet
        self._in_place = sys.stderr.isatty()
        self.latest = Progress()

    def begin(self) -> None:
        """Show that data are read, before the first task is known."""
        if self._in_place and not self._quiet:
            print("reading data …", end="", file=sys.stderr, flush=True)

    def show(self, progress: Progress) -> None:
        self.latest = progress
        if self._quiet or not progress.tasks:
            return
        if self._in_place:
            width = shutil.get_terminal_size().columns - 1
            line = f"{bar(progress)} {words(progress)}"[:width].ljust(width)
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
        elif progress.tasks_done:
            print(words(progress), file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._in_place and not self._quiet:
            print(file=sys.stderr)


def bar(progress: Progress) -> str:
    """Return [########            ], by rounds, since tasks differ in size."""
    full = BAR * progress.rounds_done // max(1, progress.rounds)
    return f"[{'#' * full}{' ' * (BAR - full)}]"


def words(progress: Progress) -> str:
    """Return tasks done, rounds per second, time left and the latest task."""
    counted = f"{progress.tasks_done} of {progress.tasks} tasks"
    if not progress.tasks_done or not progress.seconds:
        return counted
    rate = progress.rounds_done / progress.seconds
    parts = [counted, f"{rounds(rate)}/s"]
    left = (progress.rounds - progress.rounds_done) / rate if rate else 0.0
    if left:
        parts.append(f"{duration(round(left))} left")
    return ", ".join([*parts, progress.latest])


def rounds(count: float) -> str:
    """Return ``40,000 rounds`` or ``2.6 million rounds``."""
    return f"{count / 1e6:,.1f} million rounds" if count >= 1e6 else f"{count:,.0f} rounds"


if TYPE_CHECKING:
    from discreet.lab.campaign.run_campaign import Progress

NEEDED = ("pyarrow", "joblib", "sklearn")
TEXT = """\
A campaign plays a grid of settings on many data sets and stores every result in a folder. Stored
results are not computed again: repeat the command to continue after an interruption, or run it with
more seeds, levels, algorithms or data to add them. A TOML file has the same keys as the flags.

examples:
  discreet campaign run --preset quick --data fried digits --out results
  discreet campaign run --preset default --data fried digits --out results
  discreet campaign run --preset rivals --data fried digits --out table --seeds 3
  discreet campaign run --preset paper --data paper --out results --device cuda
  discreet campaign run campaign.toml --seeds 20
"""


def add(commands: Commands) -> None:
    """Add ``run``, which takes a grid and data, and commands that take its folder."""
    group = command(commands, "campaign", "evaluate thousands of settings on many data sets")
    kinds = group.add_subparsers(dest="kind", metavar="run|status|report|compare", required=True)
    command(kinds, "run", "compute the runs that are missing", run, TEXT).flags_on_use = _run_flags
    looks = (
        (status, "report complete, missing and failed runs"),
        (report, "write tables, figures and one page from the results"),
        (compare, "compare win rates with those of the paper"),
    )
    for call, summary in looks:
        name = call.__name__
        example = f"example:\n  discreet campaign {name} results"
        parser = command(kinds, name, summary, call, example)
        import_flag(parser)
        flag = parser.add_argument
        flag("folder", metavar="DIR", help="folder of results, as --out of campaign run")
        if call is report:
            flag("--out", metavar="DIR", help="output folder (default: DIR/report)")
            flag(
                "--select",
                default="seeds",
                metavar="seeds|split",
                help="choose settings on the seeds that are reported, as the paper does, "
                "or on half of them and report the other half",
            )
            flag(
                "--curves",
                nargs="+",
                default=["paper"],
                metavar="NAME",
                help="data sets with a plot of curves: paper (its six), all, or names",
            )
        if call is compare:
            flag("--cells", action="store_true", help="also print every cell")


def _run_flags(parser: argparse.ArgumentParser) -> None:
    from discreet.lab.campaign.campaign_settings import SETTINGS

    parser.add_argument("file", nargs="?", metavar="campaign.toml", help="file with these keys")
    import_flag(parser)
    for key, each in SETTINGS.items():
        if each.metavar is not None:
            parser.add_argument(
                f"--{key.replace('_', '-')}",
                nargs="+" if each.many else None,
                type=str if each.many else each.kind,
                metavar=each.metavar,
                help=each.help,
            )
    schema_flag(parser)
    target_flag(parser)
    user_flag(parser)
    often_flags(parser)


def run(args: argparse.Namespace) -> Answer:
    """Compute the missing runs; exit code 1 if a task failed, 130 after Ctrl-C."""
    installed("campaign", "for campaigns", *NEEDED)
    from discreet.lab.campaign.campaign_settings import SETTINGS, Campaign, read_campaign
    from discreet.lab.campaign.run_campaign import run as play

    document = read_campaign(args.file) if args.file else {}
    given = {key: getattr(args, key, None) for key in SETTINGS}  # plans have no flag
    document |= {key: value for key, value in given.items() if value is not None}
    campaign = Campaign.from_document(document)
    meter = Meter(quiet=args.json)
    code = 0
    meter.begin()
    try:
        play(campaign, meter.show)
    except KeyboardInterrupt:
        code = 130
    finally:
        meter.close()
    progress = meter.latest
    document = {
        "out": str(campaign.out),
        "tasks": progress.tasks,
        "tasks_done": progress.tasks_done,
        "runs": progress.runs_done,
        "rounds": progress.rounds_done,
        "seconds": progress.seconds,
        "failed": progress.failed,
        "too_wide": progress.too_wide,
        "stopped": bool(code),
    }
    if code:
        kept = f"{progress.tasks_done} of {progress.tasks} tasks are done and kept"
        return Answer(document, f"stopped: {kept}. Run the same command again to go on.", code)
    text = "\n".join(_run_lines(document, campaign.max_columns))
    return Answer(document, text, code=1 if progress.failed else 0)


def _run_lines(document: JsonObject, max_columns: int | None) -> list[str]:

    failed, out, seconds = document["failed"], document["out"], document["seconds"]
    if not document["tasks"] and not failed:
        first = "no run was missing"
    else:
        rate = f" ({rounds(document['rounds'] / seconds)} per second)" if seconds else ""
        first = f"{document['runs']:,} runs in {duration(round(seconds))}{rate}"
    wide = document["too_wide"]
    return [
        first,
        *([f"wider than {max_columns} columns, left out: {', '.join(wide)}"] if wide else []),
        *(f"failed: {name}: {why}" for name, why in failed.items()),
        *(["Run the same command again to retry these."] if failed else []),
        f"results  {out} (try: discreet campaign report {out})",
    ]


def status(args: argparse.Namespace) -> Answer:
    """Report present, missing, failed and damaged runs."""
    from discreet.lab.campaign.result_files import status as look

    found = look(Path(args.folder))
    grid = found.grid.to_document()
    runs = sum(each.runs for each in found.datasets.values())
    expected = sum(each.expected for each in found.datasets.values())
    sets = {name: asdict(each) for name, each in found.datasets.items()}
    document = {
        "folder": args.folder,
        "running": found.running,
        "runs": runs,
        "expected": expected,
        "device": found.device,
        "grid": grid,
        "not_private": found.not_private,
        "datasets": sets,
        "unreadable": found.unreadable,
    }
    rows = [
        [name, f"{each['runs']:,}", f"{each['expected']:,}", f"{each['seconds']:.1f}", _state(each)]
        for name, each in sets.items()
    ]
    levels = ", ".join(epsilon_text(epsilon) for epsilon in found.grid.epsilons)
    often = found.grid.participation
    lines = [
        f"{runs:,} of {expected:,} runs are there" + ("; the campaign is running" * found.running),
        f"preset {found.grid.preset}, mechanism {found.grid.mechanism}, features "
        f"{found.grid.features}{' (NonPrivate)' * bool(found.not_private)}, ε = {levels}, "
        f"{found.grid.seeds} seeds; made on {found.device or 'nothing yet'}",
        *([] if often is None else [f"ε is for one user, who contributes {often.text}"]),
        *(["", *table(["data set", "runs", "of", "seconds", "state"], rows)] if rows else []),
        *(
            f"{name} {family}: {why}"
            for name, each in sets.items()
            for family, why in each["failed"].items()
        ),
        *(f"{name} could not be read: {why}" for name, why in found.unreadable.items()),
    ]
    return Answer(document, "\n".join(lines))


def _state(each: JsonObject) -> str:
    if each["failed"]:
        return "failed"
    if each["damaged"]:
        return "damaged"
    return "complete" if each["runs"] >= each["expected"] else "incomplete"


def report(args: argparse.Namespace) -> Answer:
    """Write tables, figures and one page, from the result files only."""
    installed("campaign", "for reports", *NEEDED, "matplotlib", "jinja2")
    from discreet.lab.report.campaign_report import write

    folder = Path(args.folder)
    out = Path(args.out) if args.out else folder / "report"
    curves = args.curves if len(args.curves) > 1 else args.curves[0]
    document = write(folder, out, args.select, curves)
    lines = [str(line) for key in ("summary", "missing") for line in _listed(document.get(key))]
    return Answer(document, "\n".join([*lines, f"page     {out / 'index.html'}"]))


def compare(args: argparse.Namespace) -> Answer:
    """Compare win rates with the published ones."""
    installed("campaign", "for campaigns", *NEEDED)
    from discreet.lab.report.paper_comparison import compare as compared

    comparison = compared(Path(args.folder))
    document = comparison.document()
    lines = comparison.sentences()
    if args.cells:
        header = ["ε", "row", "column", "sets", "ours", "paper", "difference"]
        rows = [
            [
                epsilon_text(cell.epsilon),
                cell.row_algorithm,
                cell.column_algorithm,
                str(cell.datasets),
                f"{cell.ours:.1f}",
                "–" if cell.published is None else f"{cell.published:.1f}",
                "–" if cell.difference is None else f"{cell.difference:+.1f}",
            ]
            for cell in comparison.cells
        ]
        lines = [*lines, "", *table(header, rows)]
    else:
        document = {name: value for name, value in document.items() if name != "cells"}
    return Answer(document, "\n".join(lines))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
