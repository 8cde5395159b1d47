"""Tables of a campaign's page, and the command that repeats the campaign."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from discreet.lab.campaign.grid import Grid
from discreet.lab.report.algorithm_comparison import (
    LossIncrease,
    MeanLosses,
    WinRates,
    without_contexts,
)
from discreet.lab.report.campaign_results import REFERENCE, Level
from discreet.lab.report.paper_comparison import Comparison
from discreet.lab.report.selection import Selection
from discreet.lab.report.tables import Table, bold, number, pivot, with_error
from discreet.types import JsonMapping


def mean_losses(selection: Selection, means: MeanLosses, about: JsonMapping) -> Table:
    """Return algorithms by ε; the best bandit of a column is bold."""
    rows = [
        [name, *map(with_error, means.mean[a], means.standard_error[a], means.best == a)]
        for a, name in enumerate(selection.algorithms)
    ]
    for name, losses in without_contexts(about, selection.datasets).items():
        rows.append(
            [
                name,
                *(number(losses[each].mean() if each.any() else np.nan) for each in means.common.T),
            ]
        )
    over, counts = "data sets", means.datasets
    if len(selection.datasets) == 1:
        over, counts = "seeds", np.full(len(selection.levels), selection.reporting.sum())
    caption = (
        f"Mean ± one standard error over {over}; the best bandit of each column is bold. Best "
        "fixed action and uniform need no contexts."
    )
    head = ["", *(level.text for level in selection.levels)]
    return Table(caption, head, [*rows, [over, *map(str, counts)]])


def average_win_rates(rates: WinRates) -> Table:
    """Return mean win rates, algorithms by ε."""
    columns = [(number(each, ".1f") for each in level) for level in rates.against_the_rest()]
    rows = zip(rates.algorithms, *columns, strict=True)
    caption = "Mean win rate against the other bandits, in percent."
    return Table(caption, ["", *(level.text for level in rates.levels)], list(rows))


def by_epsilon(
    caption: str,
    records: Iterable[JsonMapping],
    row: str,
    cell: Callable[[JsonMapping], str],
) -> Table:
    """Return a table of records with a column for each ε."""
    labelled = [{**each, "level": Level(each["epsilon"], 0.0).text} for each in records]
    return pivot(caption, labelled, row, "level", cell)


def differences(compared: Comparison) -> Table:
    """Return the mean absolute difference to the published win rates at each ε."""
    records = [
        {"": "points", "epsilon": epsilon, "points": points}
        for epsilon, points in compared.by_epsilon().items()
    ]
    caption = "Mean absolute difference at each ε."
    return by_epsilon(caption, records, "", lambda each: number(each["points"], ".1f"))


def increases(increase: LossIncrease) -> Table:
    """Return the increase of the final loss with its standard error, algorithms by ε."""
    baseline = increase.relative_to
    records = [each for each in increase.records() if each["epsilon"] != baseline.epsilon]
    return by_epsilon(
        f"Increase of the final loss, relative to {baseline.text}.",
        records,
        "algorithm",
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
    return by_epsilon(caption, records, "algorithm", cell)


def by_dataset(selection: Selection, about: JsonMapping) -> dict[str, Table]:
    """Return for each ε losses of data sets by algorithm; the best bandit of a row is bold."""
    contest = np.asarray([name != REFERENCE for name in selection.algorithms])
    others = without_contexts(about, selection.datasets)
    made = {}
    for i, level in enumerate(selection.levels):
        loss = selection.loss[:, :, i]
        least = np.where(contest & np.isfinite(loss), loss, np.inf).min(axis=1)
        best = contest & (loss == least[:, None])
        rows = [
            [
                selection.datasets[d],
                *(
                    bold(number(each), really)
                    for each, really in zip(loss[d], best[d], strict=True)
                ),
                *(number(losses[d]) for losses in others.values()),
            ]
            for d in np.flatnonzero(np.isfinite(loss).any(axis=1))
        ]
        made[level.text] = Table("", ["", *selection.algorithms, *others], rows, "small")
    return made


FLAGS = {
    "mechanism": "--mechanism",
    "features": "--features",
    "algorithms": "--algorithms",
    "oracles": "--oracles",
    "epsilons": "--epsilon",
    "ridges": "--ridges",
    "seeds": "--seeds",
}


def rerun_command(manifest: JsonMapping) -> str:
    """Return ``discreet campaign run …``, with placeholders for the paths of data.

    >>> rerun_command({"grid": {**Grid.of("paper").to_document(), "seeds": 3}})
    'discreet campaign run --preset paper --mechanism paper --seeds 3 --data DATA --out DIR'
    """
    grid, reading = manifest["grid"], manifest.get("reading", {})
    usual = Grid.of(grid["preset"]).to_document()
    declared = {each["name"] for each in grid.get("plans", ())}  # plans have no flags
    named = [name for name in grid["algorithms"] if name not in declared]
    # The mechanism is always named, since it determines the noise.
    flags = {
        FLAGS[name]: value
        for name, value in {**grid, "algorithms": named}.items()
        if name in FLAGS and (name == "mechanism" or value != usual.get(name))
    }
    if "schema" in reading:
        flags["--schema"] = "SCHEMA.toml"
    flags |= {f"--{name}": reading[name] for name in ("target", "user") if name in reading}
    for name, count in grid.get("participation", {}).items():
        flags[f"--{name}-per-user" if name == "batches" else "--records-per-batch"] = count
    words = ["discreet campaign run", *(["campaign.toml"] if declared else [])]
    words += [f"--preset {grid['preset']}", *(f"{flag} {_words(v)}" for flag, v in flags.items())]
    return " ".join([*words, "--data DATA --out DIR"])


def _words(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(_words, value))
    return f"{value:g}" if isinstance(value, float) else shlex.quote(str(value))
