"""Mean final loss against ε, with what needs no contexts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from discreet.formatting import epsilon_text
from discreet.lab.report.figure_style import Drawing, line_style, plain
from discreet.lab.report.mean_loss import MeanLoss, without_contexts
from discreet.lab.report.selection import Selection


def level_chart(selection: Selection, means: MeanLoss, about: Mapping[str, Any]) -> Drawing:
    """One line per algorithm, one standard error over data sets."""
    return Drawing((6.4, 5.6), partial(_levels, selection, means, about))


def _levels(selection: Selection, means: MeanLoss, about: Any, figure: Any, ink: str) -> None:
    axis = figure.subplots()
    places = np.arange(len(selection.levels))
    for a, name in enumerate(selection.algorithms):
        axis.errorbar(
            places,
            means.mean[a],
            np.nan_to_num(means.standard_error[a]),
            label=name,
            marker="o",
            markersize=3,
            elinewidth=0.8,
            capsize=0,
            **line_style(name, ink),
        )
    known = means.common.any(axis=1)
    for (name, losses), dash in zip(
        without_contexts(about, selection.datasets).items(), ("--", ":"), strict=True
    ):
        axis.axhline(float(np.mean(losses[known])), color=ink, lw=1, ls=dash, label=name)
    axis.set_xticks(places, [epsilon_text(level.epsilon) for level in selection.levels])
    axis.set_xlabel("ε (more privacy to the right)")
    axis.set_ylabel("mean final loss")
    plain(axis, ink)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
