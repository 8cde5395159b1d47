"""Report of a campaign: CSV tables, figures and one page, from its result files only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from discreet.client.pages import rendered
from discreet.errors import InvalidInput
from discreet.lab.campaign.results_folder import file_name
from discreet.lab.report import algorithm_comparison as comparison
from discreet.lab.report import paper_comparison as paper
from discreet.lab.report import tables
from discreet.lab.report.campaign_figures import against_epsilon, curve_chart, heat_maps
from discreet.lab.report.campaign_results import (
    DATA,
    POOLED,
    REFERENCE,
    CampaignResults,
    Level,
    bandits,
)
from discreet.lab.report.figures import Drawing
from discreet.lab.report.selection import Selection, curves, select
from discreet.text import epsilon_text, listed
from discreet.types import JsonMapping, JsonObject
from discreet.validate import one_of, writable

INLINED = 12
"""Largest number of data sets with curves inside the page; other curves stay in files."""
SHOWN = 6
"""Number of names that are listed; the others are counted."""


def write(
    results_dir: Path,
    out: Path,
    select_by: str = "seeds",
    curves_of: str | Sequence[str] = "paper",
) -> JsonObject:
    """Write ``index.html``, figures and tables into ``out``; return a document with their contents.

    ``select_by`` is ``seeds``, as in the paper, or ``split``: half the seeds select, half report.
    ``curves_of`` is ``paper`` (its six data sets, or else the first three), ``all`` or names.
    """
    source = CampaignResults(results_dir)
    about, manifest = source.datasets, source.manifest
    best = select(source.runs(), select_by)
    drawn = shown(best, curves_of, about)
    rates, means = comparison.win_rates(best), comparison.mean_losses(best)
    increase, beside = comparison.loss_increase(best), comparison.against_default(best)
    compared = _compared(best, source)
    folder = _Folder(Path(out))
    for name, records in {
        "best": best.records(),
        "win_rates": comparison.with_short_names(rates),
        "loss_increase": increase,
        "choices": best.choices(),
        "against_default": beside,
    }.items():
        if records:
            folder.write(f"{name}.csv", tables.csv_text(records))

    figures: JsonObject = {"maps": {}, "curves": {}, "more": [], "increase": "", "levels": ""}
    epsilons = [level.epsilon for level in best.levels]
    baseline = Level(increase[0]["relative_to_epsilon"], 0.0).text if increase else None
    contest = len(bandits(best.algorithms)) > 1 and len(best.datasets) > 1
    if contest:  # with one set every rate is 0 or 100
        folder.draw("win_rates", heat_maps(rates, epsilons))
        for i, level in enumerate(best.levels):
            figures["maps"][level.text] = heat_maps(rates, [level.epsilon]).inline(f"map{i}")
    if increase and sum(level.private for level in best.levels) > 1:
        private = [each for each in increase if np.isfinite(each["epsilon"])]
        words = f"final loss, less that at {baseline}"
        chart = against_epsilon(private, "mean_increase", words, {})
        figures["increase"] = folder.draw("loss_increase", chart)
    if beside and len(best.levels) > 1:
        counted = comparison.common_sets(best).any(axis=1)
        plain = comparison.without_contexts(about, best.datasets)
        fixed = {name: float(np.mean(losses[counted])) for name, losses in plain.items()}
        chart = against_epsilon(means, "mean", "mean final loss", fixed)
        figures["levels"] = folder.draw("levels", chart)
    for place, name in enumerate(drawn):
        found = curves(source.curves(name), best, name)
        if found is not None:
            known = comparison.without_contexts(about, [name])
            chart = curve_chart(found, {each: float(level[0]) for each, level in known.items()})
            stem = f"curves/{file_name(name)}"
            svg = folder.draw(stem, chart, f"curves{place}")
            if place < INLINED:
                figures["curves"][name] = svg
            else:
                figures["more"].append(f"{stem}.svg")

    lines, holes = summary(best, rates, means, about), missing(best, source)
    devices = ", ".join(sorted({task.device for task in source.tasks if task.device}))
    page = rendered(
        "discreet.lab.report",
        "campaign.html",
        best=best,
        source=source,
        device=manifest["device"] or devices or "unknown device",
        levels=", ".join(epsilon_text(level.epsilon) for level in best.levels),
        summary=lines,
        missing=holes,
        figures=figures,
        mean_losses=tables.losses_by_level(best, means, about),
        beside_default=tables.beside_default(beside),
        average_win_rates=tables.average_win_rates(rates),
        comparison=paper.sentences(compared)[:-1] if compared else [],  # the last is the statement
        citation=paper.CITATION,
        differences=tables.differences(compared) if compared else None,
        relative_to=baseline,
        increases=tables.increases(increase) if increase else None,
        by_dataset=tables.by_dataset(best, about),
        command=tables.rerun_command(manifest),
        pooled=POOLED,
        reference=REFERENCE,
        written=["index.html", *folder.written],
    )
    folder.write("index.html", page)
    return {
        "selection": best.statement,
        "runs": best.runs,
        "datasets": len(best.datasets),
        "algorithms": list(best.algorithms),
        "epsilons": epsilons,
        "summary": lines,
        "missing": holes,
        "features": source.features,
        "event": manifest.get("event"),
        "files": [str(folder.root / name) for name in folder.written],
    }


class _Folder:
    """Folder of a report, and the files written to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.written: list[str] = []

    def write(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        with writable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.written.append(name)

    def draw(self, name: str, drawing: Drawing, prefix: str = "") -> str:
        """Write a figure in both formats, and return it for the page."""
        self.write(f"{name}.png", drawing.png())
        self.write(f"{name}.svg", drawing.svg())
        return drawing.inline(prefix or name)


def shown(selection: Selection, wanted: str | Sequence[str], about: JsonMapping) -> list[str]:
    """Return the data sets to draw: ``paper`` (its six, or the first three), ``all``, or names."""
    if wanted == "all":
        return list(selection.datasets)
    if wanted == "paper":
        numbers = {paper.openml_id(name, about.get(name, {})): name for name in selection.datasets}
        present = [numbers[number] for number in paper.FIGURES if number in numbers]
        return present or list(selection.datasets[:3])
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        one_of("curves", name, selection.datasets)
    return names


def _compared(best: Selection, source: CampaignResults) -> JsonObject | None:
    if source.features != "raw":  # the paper's columns are as they are
        return None
    try:
        found = paper.beside_published(best, source.datasets)
    except InvalidInput:  # nothing shared with the paper: nothing to say
        return None
    return found if found["by_epsilon"] else None


def summary(
    selection: Selection,
    rates: Sequence[JsonMapping],
    means: Sequence[JsonMapping],
    about: JsonMapping,
) -> list[str]:
    """Return the algorithm that is first everywhere, a line for each ε, and plain policies."""
    several = len(selection.datasets) > 1
    first = {comparison.first(rates, level.epsilon) for level in selection.levels}
    lines = []
    if several and len(first) == 1 and None not in first:
        lines = [f"{first.pop()} is first at every ε: it wins more than half against each other."]
    for level in selection.levels:
        at = [each for each in means if each["epsilon"] == level.epsilon]
        losses = {each["algorithm"]: each["mean"] for each in at if np.isfinite(each["mean"])}
        known = sorted(losses, key=losses.__getitem__)
        best = [f"{each}, {losses[each]:.3f}" for each in bandits(known)[:2]]
        line = f"{level.text}: least mean loss {', then '.join(best) or 'unknown'}"
        if REFERENCE in known:
            line += f" ({REFERENCE}, which sees every loss: {losses[REFERENCE]:.3f})"
        won = comparison.rates_of(rates, level.epsilon)
        average = {name: np.mean(each) for name, each in won.items() if each}
        if several and average:
            leader = max(average, key=average.__getitem__)
            line += f"; highest win rate {leader}, {average[leader]:.0f} %"
        lines.append(f"{line}.")
    for name, plain in comparison.without_contexts(about, selection.datasets).items():
        if np.isfinite(plain).all():
            lines.append(f"Without contexts, {name}: {plain.mean():.3f}.")
    return lines


def missing(selection: Selection, source: CampaignResults) -> list[str]:
    """Return sentences about runs of the grid that the folder lacks, and runs that do not count."""
    grid, names = source.grid, selection.datasets
    epsilons = {level.epsilon for level in selection.levels}
    seeds = grid["seeds"] - (grid["seeds"] // 2 if selection.how == "split" else 0)
    counts = zip(names, selection.reporting.sum(axis=1), strict=True)
    # Pairs of algorithm and ε that were never run are not gaps of a data set.
    gaps = np.argwhere(~selection.has & selection.has.any(axis=0))
    failed = [task for task in source.tasks if task.error]
    found = {
        "No runs of {}.": [a for a in grid["algorithms"] if a not in selection.algorithms],
        "No runs at ε = {}.": [
            epsilon_text(each) for each in map(float, grid["epsilons"]) if each not in epsilons
        ],
        "No runs on {}.": [name for name in source.datasets if name not in names],
        f"{len(gaps):,} of {selection.has.size:,} combinations of data set, algorithm and ε have "
        "no result: {}.": [
            f"{names[d]} × {selection.algorithms[a]} at {selection.levels[i].text}"
            for d, a, i in gaps
        ],
        f"Fewer seeds than the {grid['seeds']} of the grid on {{}}.": [
            name for name, n in counts if n < seeds
        ],
    }
    left_out = {
        "Runs without a finite loss, whose configurations do not compete": selection.not_finite,
        "Configurations that lack a seed and do not compete": selection.unfinished,
        "Seeds that only some configurations of a data set have": selection.idle_seeds,
    }
    return [
        *(text.format(listed(some, SHOWN)) for text, some in found.items() if some),
        *(f"{text}: {count:,}." for text, count in left_out.items() if count),
        *(
            f"{task.dataset} could not be read: {task.error}"
            if task.family == DATA
            else f"{task.dataset}, {task.family}, failed: {task.error}"
            for task in failed[:SHOWN]
        ),
        *([f"{len(failed) - SHOWN} more tasks failed."] if len(failed) > SHOWN else []),
    ]
