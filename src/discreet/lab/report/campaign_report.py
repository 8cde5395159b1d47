"""Report of a campaign: CSV tables, figures and one page, from its result files only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from discreet.client.pages import rendered
from discreet.lab.campaign.result_files import Folder, file_name, read
from discreet.lab.report import algorithm_comparison as comparison
from discreet.lab.report import figures, tables
from discreet.lab.report import paper_comparison as paper
from discreet.lab.report.selection import (
    CURVE_COLUMNS,
    REFERENCE,
    RUN_COLUMNS,
    Selection,
    bandits,
    curves,
    select,
)
from discreet.privacy.budget import Participation
from discreet.text import epsilon_text, listed
from discreet.types import JsonMapping, JsonObject
from discreet.validate import one_of

POOLED = "PooledRidge"
"""The oracle of the default plan: it has one mechanism, discreet's own, in every campaign."""
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
    source = Folder(Path(results_dir))
    manifest = source.manifest()
    grid, about = manifest["grid"], manifest["datasets"]
    best = select(read(source.root, RUN_COLUMNS), select_by)
    drawn = shown(best, curves_of, about)
    rates, means = comparison.win_rates(best), comparison.mean_losses(best)
    increase, against = comparison.loss_increase(best), comparison.against_default(best)
    files: dict[str, str | bytes] = {}
    for name, records in {
        "best": best.winners(),
        "win_rates": comparison.with_short_names(rates),
        "loss_increase": increase,
        "choices": best.choices(),
        "against_default": against,
    }.items():
        if records:
            files[f"{name}.csv"] = tables.csv_text(records)

    def draw(name: str, drawing: figures.Drawing, prefix: str = "") -> str:
        """Add a figure in both formats to the files, and return it for the page."""
        files[f"{name}.png"], files[f"{name}.svg"] = drawing.png(), drawing.svg()
        return drawing.inline(prefix or name)

    charts: JsonObject = {"maps": {}, "curves": {}, "more": [], "increase": "", "levels": ""}
    baseline = increase[0]["relative_to_epsilon"] if increase else math.inf
    if len(bandits(best.algorithms)) > 1 and len(best.datasets) > 1:  # else a rate is 0 or 100
        draw("win_rates", figures.heat_maps(rates, best.epsilons))
        for i, epsilon in enumerate(best.epsilons):
            chart = figures.heat_maps(rates, [epsilon])
            charts["maps"][f"ε = {epsilon_text(epsilon)}"] = chart.inline(f"map{i}")
    private = [each for each in increase if math.isfinite(each["epsilon"])]
    if len({each["epsilon"] for each in private}) > 1:
        words = f"final loss, less that at ε = {epsilon_text(baseline)}"
        chart = figures.against_epsilon(private, "mean_increase", words, {})
        charts["increase"] = draw("loss_increase", chart)
    if against and len(best.epsilons) > 1:
        counted = comparison.common_sets(best).any(axis=1)
        plain = comparison.without_contexts(about, best.datasets)
        fixed = {name: float(np.mean(losses[counted])) for name, losses in plain.items()}
        chart = figures.against_epsilon(means, "mean", "mean final loss", fixed)
        charts["levels"] = draw("levels", chart)
    for number, name in enumerate(drawn):
        found = curves(read(source.root, CURVE_COLUMNS, name), best, name)
        if found:
            known = comparison.without_contexts(about, [name])
            chart = figures.curve_chart(
                found, {each: float(level[0]) for each, level in known.items()}
            )
            stem = f"curves/{file_name(name)}"
            svg = draw(stem, chart, f"curves{number}")
            if number < INLINED:
                charts["curves"][name] = svg
            else:
                charts["more"].append(f"{stem}.svg")

    lines, holes = summary(best, rates, means, about), missing(best, source)
    played = {*best.oracle[best.oracle != ""].tolist()}
    page = rendered(
        "discreet.lab.report",
        "campaign.html",
        best=best,
        manifest=manifest,
        mechanism="structured" if played == {POOLED} else grid["mechanism"],
        device=manifest["device"] or "unknown device",
        not_private=manifest.get("event", {}).get("reason", ""),
        participation=Participation.from_json(grid.get("participation")),
        levels=", ".join(map(epsilon_text, best.epsilons)),
        summary=lines,
        missing=holes,
        figures=charts,
        mean_losses=tables.losses_by_level(best, means, about),
        beside_default=tables.beside_default(against),
        average_win_rates=tables.average_win_rates(rates),
        relative_to=f"ε = {epsilon_text(baseline)}",
        increases=tables.increases(increase) if increase else None,
        by_dataset=tables.by_dataset(best, about),
        command=tables.rerun_command(manifest),
        pooled=POOLED in played,
        others=played != {POOLED},
        reference=REFERENCE,
        written=["index.html", *files],
    )
    files["index.html"] = page
    return {
        "selection": best.statement,
        "runs": best.runs,
        "datasets": len(best.datasets),
        "algorithms": list(best.algorithms),
        "epsilons": list(best.epsilons),
        "summary": lines,
        "missing": holes,
        "features": grid["features"],
        "event": manifest.get("event"),
        "files": figures.write_files(out, files),
    }


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


def summary(
    selection: Selection,
    rates: Sequence[JsonMapping],
    means: Sequence[JsonMapping],
    about: JsonMapping,
) -> list[str]:
    """Return the algorithm that is first everywhere, a line for each ε, and plain policies."""
    several = len(selection.datasets) > 1
    first = {comparison.first(rates, epsilon) for epsilon in selection.epsilons}
    lines = []
    if several and len(first) == 1 and None not in first:
        lines = [f"{first.pop()} is first at every ε: it wins more than half against each other."]
    for epsilon in selection.epsilons:
        at = [each for each in means if each["epsilon"] == epsilon]
        losses = {each["algorithm"]: each["mean"] for each in at if np.isfinite(each["mean"])}
        known = sorted(losses, key=losses.__getitem__)
        best = [f"{each}, {losses[each]:.3f}" for each in bandits(known)[:2]]
        line = f"ε = {epsilon_text(epsilon)}: "
        line += f"least mean loss {', then '.join(best) or 'unknown'}"
        if REFERENCE in known:
            line += f" ({REFERENCE}, which sees every loss: {losses[REFERENCE]:.3f})"
        won = comparison.rates_of(rates, epsilon)
        average = {name: np.mean(each) for name, each in won.items() if each}
        if several and average:
            leader = max(average, key=average.__getitem__)
            line += f"; highest win rate {leader}, {average[leader]:.0f} %"
        lines.append(f"{line}.")
    for name, plain in comparison.without_contexts(about, selection.datasets).items():
        if np.isfinite(plain).all():
            lines.append(f"Without contexts, {name}: {plain.mean():.3f}.")
    return lines


def missing(selection: Selection, source: Folder) -> list[str]:
    """Return sentences about runs of the grid that the folder lacks, and runs that do not count."""
    manifest = source.manifest()
    grid, names = manifest["grid"], selection.datasets
    seeds = grid["seeds"] - (grid["seeds"] // 2 if selection.how == "split" else 0)
    # Pairs of algorithm and ε that were never run are not gaps of a data set.
    gaps = np.argwhere(~selection.has & selection.has.any(axis=0))
    failures = _failures(source, manifest["datasets"])
    found = {
        "No runs of {}.": [a for a in grid["algorithms"] if a not in selection.algorithms],
        "No runs at ε = {}.": [
            epsilon_text(each)
            for each in map(float, grid["epsilons"])
            if each not in selection.epsilons
        ],
        "No runs on {}.": [name for name in manifest["datasets"] if name not in names],
        f"{len(gaps):,} of {selection.has.size:,} combinations of data set, algorithm and ε have "
        "no result: {}.": [
            f"{names[d]} × {selection.algorithms[a]} at ε = {epsilon_text(selection.epsilons[i])}"
            for d, a, i in gaps
        ],
        f"Fewer seeds than the {grid['seeds']} of the grid on {{}}.": [
            name
            for name, reported in zip(names, selection.reporting, strict=True)
            if len(reported) < seeds
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
        *failures[:SHOWN],
        *([f"{len(failures) - SHOWN} more tasks failed."] if len(failures) > SHOWN else []),
    ]


def _failures(source: Folder, datasets: Iterable[str]) -> list[str]:
    """Return a sentence about each failed task; family ``data`` reads the data set itself."""
    named = {file_name(dataset): dataset for dataset in datasets}
    errors = {name: source.sidecar(name).error for name in source.tasks()}
    sentences = []
    for name, error in errors.items():
        if error is not None and name.endswith(".data"):
            stem = name.removesuffix(".data")
            sentences.append(f"{named.get(stem, stem)} could not be read: {error}")
        elif error is not None:
            stem, *family = name.rsplit(".", 2)
            sentences.append(f"{named.get(stem, stem)}, {'.'.join(family)}, failed: {error}")
    return sentences
