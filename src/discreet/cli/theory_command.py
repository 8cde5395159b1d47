"""``discreet theory bounds|scaling``: bounds in numbers, and measured regret."""

from __future__ import annotations

import argparse
import os
import time

from discreet.cli import command_line as cli
from discreet.text import duration, guarantee_text
from discreet.validate import installed, positive, whole

BOUNDS = {
    "Err": "{error_bound:.4g}",
    "rate": "{learning_rate:.3g}",
    "regret ≤": "{regret_bound:.4g}",
    "÷ T": "{bound_over_T:.3g}",
    "dominant": "{dominant}",
    "< T from": "{below_T_from:.2g}",
    "fits": "{fits:,}",
}
"""Columns of the table of bounds."""
GROWTH = {
    "axis": "{axis}, {instance}",
    "algorithm": "{algorithm}",
    "rates": "{rates}",
    "slope": "{slope:.3f}",
    "95 %": "{low:.3f} to {high:.3f}",
    "slope of the bound": "{bound_slope:.3f}",
}
"""Columns of the table of measured slopes."""


@cli.command(
    "theory bounds",
    cli.flag("--T T", "rounds", int, required=True),
    cli.flag("--A A", "actions", int, required=True),
    cli.flag("--F F", "functions in the class", int, required=True),
    cli.flag("--epsilon E", "default: 1", 1.0),
    cli.flag("--delta D", "probability of failure (default: 0.05)", 0.05),
)
def bounds(args: cli.Args) -> cli.Answer:
    """Report every guarantee at one T, A, |F|, ε and δ."""
    from discreet.lab.theory import bounds_document

    epsilon = positive("epsilon", args.epsilon)
    document = bounds_document(args.T, args.A, args.F, args.delta, epsilon)
    rows = [
        [name, *(cell.format_map(each) for cell in BOUNDS.values())]
        for name, each in document.items()
        if isinstance(each, dict)  # others are of the problem
    ]
    lines = [
        f"T = {args.T:,}, A = {args.A}, |F| = {args.F:,}, "
        f"{guarantee_text(document['epsilon'], document['delta'])}; "
        f"{document['epochs']} epochs, {document['fits']} fits",
        "",
        *cli.table(["", *BOUNDS], rows),
        "",
        "Each bound holds with probability 1 − δ. Where ÷ T is above 1 it says nothing yet: regret",
        "never exceeds T. The rate is that of the last epoch.",
    ]
    return cli.Answer(document, lines)


@cli.command(
    "theory scaling",
    cli.flag("--out DIR", "output folder", required=True),
    cli.flag("--seeds N", "default: 30", 30),
    cli.flag("--quick", argparse.SUPPRESS),
)
def scaling(args: cli.Args) -> cli.Answer:
    """Run the experiments, then write results, figures and the page."""
    installed("campaign", "for the report", "matplotlib", "jinja2")
    from discreet.lab.report.scaling_report import write_report
    from discreet.lab.theory.scaling_experiments import AXES, QUICK, document_of, points

    axes = QUICK if args.quick else AXES
    seeds = whole("seeds", args.seeds, 2, "An interval needs at least two seeds.")
    out = cli.folder(args.out)
    begun, found = time.monotonic(), []
    for point in points(axes, seeds, workers=1 if args.quick else os.cpu_count() or 1):
        found.append(point)
        if not args.json:
            cli.progress(f"{point.axis} = {point.value:g}, {point.algorithm}")
    seconds = time.monotonic() - begun
    document = document_of(found, axes, seeds)
    cli.write(out / "scaling.json", cli.as_json(document) + "\n")
    files = ["scaling.json", *write_report(document, out)]
    rows = [[cell.format_map(each) for cell in GROWTH.values()] for each in document["growth"]]
    lines = [
        *cli.table([*GROWTH], rows),
        "",
        f"{len(found)} points, {seeds} seeds, {duration(round(seconds))}",
        *(f"wrote    {out / name}" for name in files),
    ]
    return cli.Answer({**document, "seconds": seconds, "files": files}, lines)
