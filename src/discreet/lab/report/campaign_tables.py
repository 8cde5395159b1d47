"""Tables of a campaign's page, and the time of its tasks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from discreet.lab.report.campaign_results import TaskTime
from discreet.lab.report.compare import Comparison
from discreet.lab.report.final_loss import LossIncrease, MeanLoss, without_contexts
from discreet.lab.report.runs import REFERENCE, Level
from discreet.lab.report.selection import Choices, Selection
from discreet.lab.report.summary_text import counted
from discreet.lab.report.tables import Table, bold, number, with_error
from discreet.lab.report.win_rates import WinRates


@dataclass(frozen=True)
class Share:
    """Tasks of a family, or of a data set, together."""

    name: str
    tasks: int
    seconds: float
    runs: int
    rounds: int

    @property
    def rounds_per_second(self) -> float:
        return self.rounds / self.seconds if self.seconds else float("nan")


@dataclass(frozen=True)
class Runtime:
    """Seconds of computation, summed over jobs; waiting and reading data do not count."""

    total: Share
    families: tuple[Share, ...]
    datasets: tuple[Share, ...]
    """Slowest first."""
    devices: tuple[str, ...]


def runtime(tasks: Sequence[TaskTime], about: Mapping[str, Any]) -> Runtime:
    """Return runs and rounds by family and by data set."""
    done = [task for task in tasks if task.runs and not task.error]
    families: dict[str, list[TaskTime]] = defaultdict(list)
    datasets: dict[str, list[TaskTime]] = defaultdict(list)
    for task in done:
        families[task.family or "other"].append(task)
        datasets[task.dataset].append(task)

    def share(name: str, some: Sequence[TaskTime]) -> Share:
        rounds = sum(task.runs * int(about.get(task.dataset, {}).get("rows", 0)) for task in some)
        seconds, runs = sum(task.seconds for task in some), sum(task.runs for task in some)
        return Share(name, len(some), seconds, runs, rounds)

    by_set = [share(name, some) for name, some in datasets.items()]
    return Runtime(
        share("all", done),
        tuple(share(name, families[name]) for name in sorted(families)),
        tuple(sorted(by_set, key=lambda each: (-each.seconds, each.name))),
        tuple(sorted({task.device for task in done if task.device})),
    )


SLOWEST = 10


def mean_losses(selection: Selection, means: MeanLoss, about: Mapping[str, Any]) -> Table:
    """Return algorithms by ε; the best bandit of a column is bold."""
    rows = [
        [name, *map(with_error, means.mean[a], means.standard_error[a], means.best == a)]
        for a, name in enumerate(selection.algorithms)
    ]
    for name, losses in without_contexts(about, selection.datasets).items():
        mean = [losses[common].sum() / (common.sum() or np.nan) for common in means.common.T]
        rows.append([name, *map(number, mean)])
    counts = ["data sets", *(str(n) for n in means.datasets)]
    over = "the data sets that have every algorithm, ± one standard error over data sets"
    if len(selection.datasets) == 1:
        seeds = int(selection.reporting.sum())
        over = f"{counted(seeds, 'seed')}, ± one standard error over seeds"
        counts = ["seeds", *(str(seeds) for _ in means.datasets)]
    caption = (
        f"Mean over {over}; the best bandit of each column is bold. Best fixed action and uniform "
        "need no contexts."
    )
    return Table(caption, ["", *(level.text for level in selection.levels)], [*rows, counts])


def average_win_rates(rates: WinRates) -> Table:
    """Return mean win rates, algorithms by ε."""
    average = rates.against_the_rest()
    rows = [
        [name, *(number(value, ".1f") for value in average[:, a])]
        for a, name in enumerate(rates.algorithms)
    ]
    caption = "Mean win rate against the other bandits, in percent."
    return Table(caption, ["", *(level.text for level in rates.levels)], rows)


def differences(compared: Comparison) -> Table:
    """Mean absolute difference at each ε."""
    by_epsilon = compared.by_epsilon()
    heads = [Level(epsilon, 0).text for epsilon in by_epsilon]
    row = ["points", *(number(value, ".1f") for value in by_epsilon.values())]
    return Table("Mean absolute difference at each ε.", ["", *heads], [row])


def increases(increase: LossIncrease) -> Table:
    """Return the increase of the final loss with its standard error, algorithms by ε."""
    kept = [i for i in range(len(increase.levels)) if i != increase.baseline]
    rows = [
        [name, *(with_error(mean[i], error[i], form="+.3f") for i in kept)]
        for name, mean, error in zip(
            increase.algorithms, increase.mean, increase.standard_error, strict=True
        )
    ]
    caption = f"Increase of the final loss, relative to {increase.relative_to.text}."
    return Table(caption, ["", *(increase.levels[i].text for i in kept)], rows)


def chosen(choices: Choices) -> list[Table]:
    """Return for each ε the number of data sets on which an oracle and λ were selected."""
    pairs = [(o, r) for o in range(len(choices.oracles)) for r in range(len(choices.ridges))]
    if not pairs:
        return []
    head = ["λ", *(_ridge(choices.ridges[r]) for _, r in pairs)]
    above = [("", 1), *((oracle, len(choices.ridges)) for oracle in choices.oracles)]
    made = []
    for i, level in enumerate(choices.levels):
        rows = [
            [name, *(_count(int(counts[pair]), counts.max()) for pair in pairs)]
            for name, counts in zip(choices.algorithms, choices.datasets[:, i], strict=True)
            if counts.any()
        ]
        made.append(Table(bold(level.text), head, rows, "small counts", above))
    return made


def by_dataset(selection: Selection, about: Mapping[str, Any]) -> dict[str, Table]:
    """Return for each ε losses of data sets by algorithm."""
    contest = [name != REFERENCE for name in selection.algorithms]
    others = without_contexts(about, selection.datasets)
    made = {}
    for i, level in enumerate(selection.levels):
        loss = selection.loss[:, :, i]
        least = np.where(contest & np.isfinite(loss), loss, np.inf).min(axis=1)
        rows = [
            [
                selection.datasets[d],
                *(
                    bold(number(loss[d, a]), contest[a] and loss[d, a] == least[d])
                    for a in range(len(contest))
                ),
                *(number(losses[d]) for losses in others.values()),
            ]
            for d in np.flatnonzero(np.isfinite(loss).any(axis=1))
        ]
        made[level.text] = Table("", ["", *selection.algorithms, *others], rows, "small")
    return made


def times(runtime: Runtime) -> list[Table]:
    """Return the time by family, and the slowest data sets."""
    if not runtime.families:
        return []
    heads = ["", "tasks", "seconds", "runs", "ms per run", "rounds", "rounds per second"]
    families = [_share(each) for each in (*runtime.families, runtime.total)]
    slowest = [_share(each) for each in runtime.datasets[:SLOWEST]]
    caption = "Seconds of computation, summed over jobs that ran at the same time."
    return [Table(caption, heads, families), Table("The slowest data sets.", heads, slowest)]


def _share(share: Share) -> list[str]:
    counts = f"{share.tasks:,}", f"{share.seconds:,.1f}", f"{share.runs:,}"
    each = number(1000 * share.seconds / share.runs if share.runs else float("nan"), ",.1f")
    return [share.name, *counts, each, _large(share.rounds), _large(share.rounds_per_second)]


def _large(value: float) -> str:
    """Return ``1.42e9``."""
    return number(value, ".2e").replace("e+0", "e").replace("e+", "e")


def _ridge(ridge: float) -> str:
    """Return ``0.01`` or ``1e−6``, the shorter form."""
    plain = f"{ridge:g}"
    return plain if len(plain) < 5 else re.sub(r"\.?0*e-0*", "e−", f"{ridge:.3e}")


def _count(count: int, most: int) -> str:
    return bold(str(count), count == most) if count else Markup('<span class="faint">·</span>')
