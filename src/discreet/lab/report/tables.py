"""Tables of results: as CSV from records, one dictionary per line, and for pages."""

from __future__ import annotations

import csv
import io
import math
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup, escape

from discreet.lab.campaign.grid import Grid
from discreet.lab.report.algorithm_comparison import (
    common_sets,
    least_bandit,
    rates_of,
    without_contexts,
)
from discreet.lab.report.selection import Selection
from discreet.text import epsilon_text
from discreet.types import JsonMapping


def csv_text(records: Sequence[JsonMapping]) -> str:
    """Return a CSV file with all digits of numbers; an unknown value is empty."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(records[0]), lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({k: "" if v is None or v != v else v for k, v in record.items()})
    return buffer.getvalue()


class Table(NamedTuple):
    """Table of a page: cells are text or Markup, the first of a row is its heading."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    kind: str = ""


def pivot(
    caption: str,
    records: Iterable[JsonMapping],
    row: str,
    column: str,
    cell: Callable[[JsonMapping], str],
) -> Table:
    """Return a table with a line for each value of ``row`` and a column for each of ``column``."""
    cells = {(record[row], record[column]): cell(record) for record in records}
    head = list(dict.fromkeys(name for _, name in cells))
    lines = dict.fromkeys(name for name, _ in cells)
    rows = [[name, *(cells.get((name, each), "–") for each in head)] for name in lines]
    return Table(caption, ["", *head], rows)


def by_epsilon(
    caption: str,
    records: Iterable[JsonMapping],
    cell: Callable[[JsonMapping], str],
) -> Table:
    """Return a table of records, algorithms by ε."""
    labelled = [{**each, "level": f"ε = {epsilon_text(each['epsilon'])}"} for each in records]
    return pivot(caption, labelled, "algorithm", "level", cell)


def number(value: float, form: str = ".3f") -> str:
    """Return a number with a true minus sign; a dash for infinity and NaN."""
    return format(value, form).replace("-", "−") if math.isfinite(value) else "–"


def bold(text: str, really: bool = True) -> str:
    """Return bold text where ``really``."""
    return Markup("<b>{}</b>").format(text) if really else text


def with_error(mean: float, error: float, best: bool = False, form: str = ".3f") -> str:
    """Return ``0.123 ± 0.004``, the error in small letters; bold if it is the best."""
    if not math.isfinite(mean):
        return "–"
    spread = Markup(" <small>± {:.3f}</small>").format(error) if math.isfinite(error) else ""
    return escape(bold(number(mean, form), best)) + spread


def losses_by_level(
    selection: Selection, means: Sequence[JsonMapping], about: JsonMapping
) -> Table:
    """Return algorithms by ε; the best bandit of a column is bold."""
    caption = (
        "Mean ± one standard error over {}; the best bandit of each column is bold. Best "
        "fixed action and uniform need no contexts."
    )
    table = by_epsilon(
        caption,
        means,
        lambda each: with_error(each["mean"], each["standard_error"], each["best"]),
    )
    rows, common = list(table.rows), common_sets(selection)
    for name, losses in without_contexts(about, selection.datasets).items():
        plain = (losses[each].mean() if each.any() else np.nan for each in common.T)
        rows.append([name, *map(number, plain)])
    over, counts = "data sets", common.sum(axis=0)
    if len(selection.datasets) == 1:
        over, counts = "seeds", np.full(len(selection.epsilons), len(selection.reporting[0]))
    return Table(caption.format(over), table.head, [*rows, [over, *map(str, counts)]])


def average_win_rates(rates: Sequence[JsonMapping]) -> Table:
    """Return mean win rates, algorithms by ε."""
    averages = [
        {"algorithm": name, "epsilon": epsilon, "mean": np.mean(won or np.nan)}
        for epsilon in dict.fromkeys(each["epsilon"] for each in rates)
        for name, won in rates_of(rates, epsilon).items()
    ]
    caption = "Mean win rate against the other bandits, in percent."
    return by_epsilon(caption, averages, lambda each: number(each["mean"], ".1f"))


def increases(increase: Sequence[JsonMapping]) -> Table:
    """Return the increase of the final loss with its standard error, algorithms by ε."""
    baseline = increase[0]["relative_to_epsilon"]
    return by_epsilon(
        f"Increase of the final loss, relative to ε = {epsilon_text(baseline)}.",
        [each for each in increase if each["epsilon"] != baseline],
        lambda each: with_error(each["mean_increase"], each["standard_error"], form="+.3f"),
    )


def beside_default(records: Sequence[JsonMapping]) -> Table:
    """Return differences to the default plan, algorithms by ε."""

    def cell(each: JsonMapping) -> str:
        half = (each["high"] - each["low"]) / 2
        spread = "" if half != half else f" ± {half:.3f}"
        return f"{each['mean_difference']:+.3f}{spread} ({each['default_ahead_percent']:.0f})"

    caption = (
        "Loss of each algorithm, tuned on every set, less that of the untuned default plan: "
        "mean over data sets with its 95 % interval, and in brackets the percentage of sets on "
        "which the default is ahead. against_default.csv has intervals of both."
    )
    return by_epsilon(caption, records, cell)


def by_dataset(selection: Selection, about: JsonMapping) -> dict[str, Table]:
    """Return for each ε losses of data sets by algorithm; the best bandit of a row is bold."""
    others = without_contexts(about, selection.datasets)
    head = ["", *selection.algorithms, *others]
    made = {}
    for i, epsilon in enumerate(selection.epsilons):
        loss = selection.loss[:, :, i]
        best = least_bandit(loss, np.asarray(selection.algorithms), axis=1)
        rows = [
            [
                selection.datasets[d],
                *(bold(number(each), b) for each, b in zip(loss[d], best[d], strict=True)),
                *(number(losses[d]) for losses in others.values()),
            ]
            for d in np.flatnonzero(np.isfinite(loss).any(axis=1))
        ]
        made[f"ε = {epsilon_text(epsilon)}"] = Table("", head, rows, "small")
    return made


def rerun_command(manifest: JsonMapping) -> str:
    """Return ``discreet campaign run …``, with placeholders for the paths of data.

    >>> rerun_command({"grid": {**Grid.of("paper").to_document(), "seeds": 3}})
    'discreet campaign run --preset paper --mechanism paper --seeds 3 --data DATA --out DIR'
    """
    grid, reading = manifest["grid"], manifest.get("reading", {})
    usual = Grid.of(grid["preset"]).to_document()
    declared = {each["name"] for each in grid.get("plans", ())}  # plans have no flags
    given = {**grid, "algorithms": [name for name in grid["algorithms"] if name not in declared]}
    # The mechanism is always named, since it determines the noise.
    flags = {"preset": grid["preset"], "mechanism": grid["mechanism"]}
    for name in ("features", "seeds", "algorithms", "epsilons", "ridges", "oracles"):
        if name in given and given[name] != usual.get(name):
            flags["epsilon" if name == "epsilons" else name] = given[name]
    if "schema" in reading:
        flags["schema"] = "SCHEMA.toml"
    flags |= {name: reading[name] for name in ("target", "user") if name in reading}
    if "participation" in grid:
        flags["batches-per-user"] = grid["participation"]["batches"]
        flags["records-per-batch"] = grid["participation"]["records"]
    flags |= {"data": "DATA", "out": "DIR"}
    file = ["campaign.toml"] if declared else []
    words = [f"--{name} {_words(value)}" for name, value in flags.items()]
    return " ".join(["discreet campaign run", *file, *words])


def _words(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(_words, value))
    return f"{value:g}" if isinstance(value, float) else shlex.quote(str(value))
