"""``discreet theory bounds|scaling``: bounds in numbers, and measured regret."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from discreet.cli.command_line import Answer, Commands, as_json, command, table, write
from discreet.text import duration, guarantee_text
from discreet.types import JsonObject
from discreet.validate import installed, positive, whole

SCALING = """\
Regret against T (2^8 … 2^17), A (2 … 32), |F| (2 … 4096) and ε (0.1 … 10), one axis at a time: five
algorithms, with the rates of their theorems and with practical ones. Minutes on two cores.

example:
  discreet theory scaling --out scaling
"""


def add(commands: Commands) -> None:
    """Add ``bounds``, with a problem, and ``scaling``, with a folder."""
    group = command(commands, "theory", "regret bounds of the paper, and experiments on them")
    kinds = group.add_subparsers(dest="kind", metavar="bounds|scaling", required=True)
    example = "example:\n  discreet theory bounds --T 100000 --A 10 --F 1000 --epsilon 1"
    flag = command(kinds, "bounds", "compute every bound and rate", bounds, example).add_argument
    flag("--T", type=int, required=True, metavar="T", help="rounds")
    flag("--A", type=int, required=True, metavar="A", help="actions")
    flag("--F", type=int, required=True, metavar="F", help="functions in the class")
    flag("--epsilon", type=float, default=1.0, metavar="E", help="default: 1")
    flag(
        "--delta",
        type=float,
        default=0.05,
        metavar="D",
        help="probability of failure (default: 0.05)",
    )
    flag = command(kinds, "scaling", "measure how regret grows", scaling, SCALING).add_argument
    flag("--out", required=True, metavar="DIR", help="output folder")
    flag("--seeds", type=int, default=30, metavar="N", help="default: 30")
    flag("--quick", action="store_true", help=argparse.SUPPRESS)


def bounds(args: argparse.Namespace) -> Answer:
    """Report every guarantee at one T, A, |F|, ε and δ."""
    from discreet.lab.theory.regret_bounds import bounds_document

    document = bounds_document(
        args.T, args.A, args.F, args.delta, positive("epsilon", args.epsilon)
    )
    return Answer(document, "\n".join(_bound_lines(document)))


def _bound_lines(document: JsonObject) -> list[str]:
    rows = []
    for name, each in document.items():
        if not isinstance(each, dict):  # of the problem
            continue
        rows.append(
            [
                name,
                f"{each['error_bound']:.4g}",
                f"{each['learning_rate']:.3g}",
                f"{each['regret_bound']:.4g}",
                f"{each['bound_over_T']:.3g}",
                each["dominant"],
                f"{each['below_T_from']:.2g}",
                f"{each['fits']:,}",
            ]
        )
    header = ["", "Err", "rate", "regret ≤", "÷ T", "dominant", "< T from", "fits"]
    T, A, F = document["T"], document["A"], document["F"]
    return [
        f"T = {T:,}, A = {A}, |F| = {F:,}, "
        f"{guarantee_text(document['epsilon'], document['delta'])}; "
        f"{document['epochs']} epochs, {document['fits']} fits",
        "",
        *table(header, rows),
        "",
        "Each bound holds with probability 1 − δ. Where ÷ T is above 1 it says nothing yet: regret",
        "never exceeds T. The rate is that of the last epoch.",
    ]


def scaling(args: argparse.Namespace) -> Answer:
    """Run the experiments, then write results, figures and the page."""
    installed("campaign", "for the report", "matplotlib", "jinja2")
    from discreet.lab.report.scaling_report import write_report
    from discreet.lab.theory.scaling_experiments import AXES, QUICK, document_of, points

    axes = QUICK if args.quick else AXES
    seeds = whole("seeds", args.seeds, 2, "An interval needs at least two seeds.")
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    begun, found = time.monotonic(), []
    for point in points(axes, seeds, workers=1 if args.quick else os.cpu_count() or 1):
        found.append(point)
        if not args.json and sys.stderr.isatty():
            print(
                f"\r{point.axis} = {point.value:g}, {point.algorithm}",
                end="\033[K",
                file=sys.stderr,
            )
    seconds = time.monotonic() - begun
    if not args.json and sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    document = document_of(found, axes, seeds)
    write(out / "scaling.json", as_json(document) + "\n")
    files = ["scaling.json", *write_report(document, out)]
    rows = [
        [
            f"{each['axis']}, {each['instance']}",
            each["algorithm"],
            each["rates"],
            f"{each['slope']:.3f}",
            f"{each['low']:.3f} to {each['high']:.3f}",
            f"{each['bound_slope']:.3f}",
        ]
        for each in document["growth"]
    ]
    header = ["axis", "algorithm", "rates", "slope", "95 %", "slope of the bound"]
    lines = [
        *table(header, rows),
        "",
        f"{len(found)} points, {seeds} seeds, {duration(round(seconds))}",
        *(f"wrote    {out / name}" for name in files),
    ]
    return Answer({**document, "seconds": seconds, "files": files}, "\n".join(lines))
