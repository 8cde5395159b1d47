"""Report of a campaign: CSV tables, figures and one page, from its result files only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.lab.report.algorithm_comparison import (
    DEFAULT_COLUMNS,
    INCREASE_COLUMNS,
    RATE_COLUMNS,
    against_default,
    loss_increase,
    mean_loss,
    win_rates,
    without_contexts,
)
from discreet.lab.report.campaign_page import Figures, campaign_page
from discreet.lab.report.campaign_results import CampaignResults
from discreet.lab.report.figures import Drawing, heat_map, heat_maps, increase_chart, level_chart
from discreet.lab.report.loss_curves import curve_chart, curves, shown
from discreet.lab.report.paper_comparison import Comparison, beside_published
from discreet.lab.report.selection import (
    BEST_COLUMNS,
    CHOICE_COLUMNS,
    Selection,
    choices,
    select,
)
from discreet.lab.report.summary_text import missing, summary
from discreet.lab.report.tables import csv_text
from discreet.types import JsonObject

INLINED = 2_000_000
"""Largest number of bytes of curves inside the page; other curves stay in separate files."""


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
    best = select(source.runs(), select_by)
    drawn = shown(best, curves_of, source.datasets)
    rates = win_rates(best)
    means, increase = mean_loss(best), loss_increase(best)
    picked = choices(best)
    folder = _Folder(Path(out))

    folder.write("best.csv", csv_text(BEST_COLUMNS, best.rows()))
    folder.write("win_rates.csv", csv_text(RATE_COLUMNS, rates.rows()))
    rows = [] if increase is None else increase.rows()
    folder.write("loss_increase.csv", csv_text(INCREASE_COLUMNS, rows))
    folder.write("choices.csv", csv_text(CHOICE_COLUMNS, picked.rows()))
    to_default = against_default(best)
    if to_default is not None:
        folder.write("against_default.csv", csv_text(DEFAULT_COLUMNS, to_default.rows()))

    maps: dict[str, str] = {}
    if len(rates.algorithms) > 1 and len(best.datasets) > 1:  # with one set every rate is 0 or 100
        folder.draw("win_rates", heat_maps(rates))
        for i, level in enumerate(rates.levels):
            maps[level.text] = heat_map(rates, i).inline(f"map{i}")
    increase_figure = ""
    if increase is not None:
        chart = increase_chart(increase)
        folder.draw("loss_increase", chart)
        increase_figure = chart.inline("increase")
    levels = ""
    if to_default is not None and len(best.levels) > 1:
        chart = level_chart(best, means, source.datasets)
        folder.draw("levels", chart)
        levels = chart.inline("levels")
    figures = Figures(maps, increase_figure, *_curves(source, best, drawn, folder), levels)
    compared, written = _compared(best, source), ["index.html", *folder.written]
    page = campaign_page(
        source, best, rates, means, increase, picked, compared, figures, written, to_default
    )
    folder.write("index.html", page)
    return {
        "selection": best.statement,
        "runs": best.runs,
        "datasets": len(best.datasets),
        "algorithms": list(best.algorithms),
        "epsilons": [level.epsilon for level in best.levels],
        "summary": summary(best, rates, means, source.datasets),
        "missing": missing(best, source),
        "features": source.features,
        "event": source.manifest.get("event"),
        "files": [str(folder.root / name) for name in folder.written],
    }


class _Folder:
    """Folder of a report, and the files written to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.written: list[str] = []

    def write(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise InvalidInput(
                f"output must be writable; {path} is not ({error.strerror}). Choose another place."
            ) from None
        self.written.append(name)

    def draw(self, name: str, drawing: Drawing) -> None:
        self.write(f"{name}.png", drawing.png())
        self.write(f"{name}.svg", drawing.svg())


def _curves(
    source: CampaignResults, best: Selection, drawn: Sequence[str], folder: _Folder
) -> tuple[dict[str, str], list[str]]:
    """Return figures for the page, and the names of files whose figures did not fit."""
    inlined: dict[str, str] = {}
    more: list[str] = []
    left = INLINED
    for number, name in enumerate(drawn):
        found = curves(source.curves(name), best, name)
        if found is None:
            continue
        known = without_contexts(source.datasets, [name])
        chart = curve_chart(found, {each: float(level[0]) for each, level in known.items()})
        place = f"curves/{source.file_name(name)}"
        folder.draw(place, chart)
        svg = chart.inline(f"curves{number}") if left > 0 else ""
        left -= len(svg)
        if svg and left >= 0:
            inlined[name] = svg
        else:
            left = 0
            more.append(f"{place}.svg")
    return inlined, more


def _compared(best: Selection, source: CampaignResults) -> Comparison | None:
    if source.features != "raw":  # the paper's columns are as they are
        return None
    try:
        found = beside_published(best, source.datasets)
    except InvalidInput:  # nothing shared with the paper: nothing to say
        return None
    return found if found.differences else None
