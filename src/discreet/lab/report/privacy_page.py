"""Page of a privacy curve: verdict, figure and table, without network access."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from discreet.client.pages import rendered
from discreet.lab.report.figures import Drawing
from discreet.lab.report.tables import Table, bold, number
from discreet.simulate.evaluation_plots import draw_groups, draw_privacy_curve
from discreet.simulate.privacy_curve import PrivacyCurve
from discreet.text import epsilon_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def privacy_figure(curve: PrivacyCurve) -> Drawing:
    """Draw the curve."""
    return Drawing((7.0, 4.4), partial(_draw, curve))


def group_figure(curve: PrivacyCurve) -> Drawing:
    """Draw the curve of each group."""
    return Drawing((7.0, 4.4), partial(_draw_groups, curve))


def privacy_page(curve: PrivacyCurve, name: str, notes: list[str], command: str) -> str:
    """Return one self-contained HTML file, light and dark, for screens, phones and paper."""
    return rendered(
        "discreet.lab.report",
        "privacy_curve.html",
        title=f"Loss against ε on {name}",
        curve=curve,
        notes=notes,
        figure_svg=privacy_figure(curve).inline("curve"),
        losses=_table(curve),
        groups=_groups(curve) if curve.group_lines else None,
        groups_svg=group_figure(curve).inline("groups") if curve.group_lines else None,
        explanation=curve.plan.explain(),
        command=command,
    )


def _table(curve: PrivacyCurve) -> Table:
    """Return a line per ε; bold where the interval lies below the best fixed action."""
    rows = [
        [
            f"ε = {epsilon_text(point.epsilon)}",
            bold(number(point.loss, ".4f"), point.high < curve.best_fixed),
            number(point.standard_error, ".4f"),
            f"{point.low:.4f} … {point.high:.4f}",
            number(point.loss - curve.best_fixed, "+.4f"),
        ]
        for point in curve.table
    ]
    plain = {"best fixed action": curve.best_fixed, "uniform actions": curve.uniform}
    rows += [
        [name, number(level, ".4f"), "", "", number(level - curve.best_fixed, "+.4f")]
        for name, level in plain.items()
    ]
    interval = f"{curve.confidence:.0%} interval"
    heads = ["", "mean loss", "standard error", interval, "compared with the best fixed action"]
    caption = "Bold: the whole interval lies below the best fixed action."
    return Table(caption, heads, rows)


def _groups(curve: PrivacyCurve) -> Table:
    """Return a line per group and ε."""
    losses = curve.by_group()
    caption = "The best fixed action is that of the group alone."
    return Table(caption, list(losses.header), [list(cells) for cells in losses.cells])


def _draw_groups(curve: PrivacyCurve, figure: Figure, ink: str) -> None:
    draw_groups(curve.by_group(), figure.subplots(), ink)


def _draw(curve: PrivacyCurve, figure: Figure, ink: str) -> None:
    draw_privacy_curve(curve, figure.subplots(), ink)
