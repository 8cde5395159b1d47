"""Page of a campaign: text, tables and figures in one file without network access."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.client.pages import rendered
from discreet.lab.campaign.grid import PRESETS, Grid
from discreet.lab.report import campaign_tables as tables
from discreet.lab.report.campaign_results import Source
from discreet.lab.report.campaign_tables import runtime
from discreet.lab.report.compare import Comparison
from discreet.lab.report.final_loss import AgainstDefault, LossIncrease, MeanLoss
from discreet.lab.report.selection import Choices, Selection
from discreet.lab.report.summary_text import caveats, counted, missing, summary
from discreet.lab.report.win_rates import WinRates

FLAGS = {
    "mechanism": "--mechanism",
    "features": "--features",
    "algorithms": "--algorithms",
    "oracles": "--oracles",
    "epsilons": "--epsilon",
    "ridges": "--ridges",
    "seeds": "--seeds",
}


def rerun_command(manifest: Mapping[str, Any]) -> str:
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
    source: Source,
    selection: Selection,
    rates: WinRates,
    means: MeanLoss,
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
        mean_losses=tables.mean_losses(selection, means, source.datasets),
        beside_default=to_default.table() if to_default else None,
        average_win_rates=tables.average_win_rates(rates),
        comparison=comparison,
        differences=tables.differences(comparison) if comparison else None,
        relative_to=increase.relative_to.text if increase else None,
        increases=tables.increases(increase) if increase else None,
        choices=tables.chosen(choices),
        by_dataset=tables.by_dataset(selection, source.datasets),
        times=tables.times(spent),
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
