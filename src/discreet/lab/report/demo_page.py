"""One self-contained page: the table, the figure, and what may be claimed; no network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from discreet.lab.report.demo_figure import demo_figure
from discreet.lab.report.tables import with_error
from discreet.pages import rendered


def page(results: Mapping[str, Any]) -> str:
    """The page of a demo's results, light and dark, readable on a phone."""
    runs = {(run["data"], run["algorithm"], run["epsilon"]): run for run in results["runs"]}
    # Supervised sees the loss of every action: it does not compete.
    bandits = [each["name"] for each in results["algorithms"] if each["feedback"] == "bandit"]
    cells = {}
    for (data, name, epsilon), run in runs.items():
        best = min(bandits, key=lambda each: float(runs[data, each, epsilon]["loss"]))
        error = math.nan if run["standard_error"] is None else run["standard_error"]
        cells[data, name, epsilon] = with_error(run["loss"], error, name == best)
    figure = demo_figure(results).inline()
    return rendered("discreet.lab.report", "demo.html", **results, cells=cells, figure=figure)
