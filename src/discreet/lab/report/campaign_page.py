"""Page of a campaign: text, tables and figures in one file without network access."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from discreet.client.pages import rendered
from discreet.lab.campaign.grid import PRESETS, Grid
from discreet.lab.report.algorithm_comparison import (
    AgainstDefault,
    LossIncrease,
    MeanLosses,
    WinRates,
    without_contexts,
)
from discreet.lab.report.campaign_results import REFERENCE, CampaignResults, Level, TaskTime
from discreet.lab.report.paper_comparison import Comparison
from discreet.lab.report.selection import Choices, Selection
from discreet.lab.report.summary_text import caveats, counted, missing, summary
from discreet.lab.report.tables import Table, bold, number, with_error
from discreet.types import JsonMapping


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


def runtime(tasks: Sequence[TaskTime], about: JsonMapping) -> Runtime:
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


def mean_losses(selection: Selection, means: MeanLosses, about: JsonMapping) -> Table:
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


def by_dataset(selection: Selection, about: JsonMapping) -> dict[str, Table]:
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
    grid = manifest.get("grid", {})
    preset = grid.get("preset", "paper")
    usual = Grid.of(preset).to_document() if preset in PRESETS else {}
    file = " campaign.toml" if "plans" in grid else ""  # plans have no flags
    parts = [f"discreet campaign run{file} --preset {preset}"]
    declared = [each["name"] for each in grid.get("plans", ())]
    if declared:
        grid = {**grid, "algorithms": [a for a in grid["algorithms"] if a not in declared]}
    for name, flag in FLAGS.items():
        # The mechanism is always named, since it determines the noise.
        if name in grid and (_plain(grid[name]) != _plain(usual.get(name)) or name == "mechanism"):
            parts.append(f"{flag} {_words(grid[name])}")
    reading = manifest.get("reading", {})
    parts += ["--schema SCHEMA.toml"] * ("schema" in reading)
    for name in ("target", "user"):
        if name in reading:
            parts.append(f"--{name} {shlex.quote(reading[name])}")
    if often := grid.get("participation"):
        parts.append(f"--batches-per-user {often['batches']}")
        parts.append(f"--records-per-batch {often['records']}")
    return " ".join([*parts, "--data DATA --out DIR"])


def _plain(value: Any) -> Any:
    """Return the value as JSON returns it."""
    return list(value) if isinstance(value, tuple) else value


def _words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(_words(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Figures:
    """SVG for inlining: a heat map for each ε, and curves for each data set."""

    heat_maps: Mapping[str, str]
    increase: str
    curves: Mapping[str, str]
    more_curves: Sequence[str]
    levels: str = ""


def campaign_page(
    source: CampaignResults,
    selection: Selection,
    rates: WinRates,
    means: MeanLosses,
    increase: LossIncrease | None,
    choices: Choices,
    comparison: Comparison | None,
    figures: Figures,
    files: Sequence[str],
    to_default: AgainstDefault | None = None,
) -> str:
    """Return one self-contained HTML file, light and dark, for screens, phones and paper."""
    spent, manifest = runtime(source.tasks, source.datasets), source.manifest
    device = manifest.get("device") or ", ".join(spent.devices) or "unknown device"
    not_private = f" (NonPrivate: {source.not_private})" if source.not_private else ""
    levels = ", ".join(level.text.removeprefix("ε = ") for level in selection.levels)
    return rendered(
        "discreet.lab.report",
        "campaign.html",
        title=f"{counted(len(selection.algorithms), 'algorithm')} on "
        f"{counted(len(selection.datasets), 'data set')}",
        subtitle=f"{counted(selection.runs, 'run')}; ε = {levels}; {selection.mechanism} "
        f"mechanisms; {device}. Labelled data played as a bandit: "
        "the loss of a round is 1 unless the action is the label. Smaller is better.",
        statement=selection.statement,
        summary=summary(selection, rates, means, source.datasets),
        missing=missing(selection, source),
        caveats=caveats(selection, source),
        figures=figures,
        sizes=source.datasets,
        mean_losses=mean_losses(selection, means, source.datasets),
        beside_default=to_default.table() if to_default else None,
        average_win_rates=average_win_rates(rates),
        comparison=comparison,
        differences=differences(comparison) if comparison else None,
        relative_to=increase.relative_to.text if increase else None,
        increases=increases(increase) if increase else None,
        choices=chosen(choices),
        by_dataset=by_dataset(selection, source.datasets),
        times=times(spent),
        command=rerun_command(manifest),
        facts={
            "Device": device,
            "Code": f"discreet {manifest.get('code_version', 'of unknown version')}",
            "Grid": manifest.get("grid_digest", "without a digest"),
            "Mechanisms": selection.mechanism,
            "Features": f"{source.features}{not_private}",
            "Files": ", ".join(files),
        },
    )
