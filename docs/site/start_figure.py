"""The figure of the start page: loss against ε, drawn from a result file.

python docs/site/start_figure.py

It reads docs/results/defaults/loss_against_epsilon.csv and writes two files into docs/images, for
light and for dark pages.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from discreet.lab.report.figures import INK, Drawing, line_style, plain
from discreet.text import epsilon_text

DOCS = Path(__file__).parents[1]
LOSSES = DOCS / "results" / "defaults" / "loss_against_epsilon.csv"
BEST_FIXED = "best fixed action"
UNTUNED = "Default"
# Where lines lie on each other the words must not: VanillaPO and SquareCB differ by 0.001.
LABELS = {
    UNTUNED: "the default, untuned",
    "ReplayBonusPO": "ReplayBonusPO, tuned",
    "SquareCB": "SquareCB, VanillaPO, tuned",
    "FastCB": "FastCB, tuned",
}
LIFTED = {"FastCB": 0.006, "SquareCB": -0.002, "ReplayBonusPO": -0.003, UNTUNED: -0.003}
LIGHT_INK, DARK_PAPER = "#d4d6da", "#131416"
SIZE = (6.6, 4.2)
"""Small, so that letters are large enough on a phone."""


def losses() -> dict[str, dict[str, float]]:
    """Algorithm -> ε as text, or nothing for what needs no ε -> mean loss."""
    found: dict[str, dict[str, float]] = {}
    with LOSSES.open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["algorithm"], {})[row["epsilon"]] = float(row["loss"])
    return found


def draw(figure: Any, ink: str) -> None:
    found = losses()
    axis = figure.subplots()
    levels = list(found[UNTUNED])
    places = range(len(levels))
    for name in ("FastCB", "VanillaPO", "SquareCB", "ReplayBonusPO", UNTUNED):
        heights = [found[name][level] for level in levels]
        style = {**line_style(name, ink), "marker": "o", "markersize": 4}
        if name == UNTUNED:
            style |= {"color": "#c2479b", "linewidth": 3.0, "markersize": 6}
        axis.plot(places, heights, **style)
        if name in LABELS:
            axis.annotate(
                LABELS[name],
                (len(levels) - 1, heights[-1] + LIFTED[name]),
                xytext=(10, 0),
                textcoords="offset points",
                va="center",
                weight="bold" if name == UNTUNED else "normal",
            )
    best = found[BEST_FIXED][""]
    axis.hlines(best, -0.2, len(levels) - 1, color=ink, linestyle=(0, (4, 2)), linewidth=1.2)
    axis.annotate(
        BEST_FIXED,
        (len(levels) - 1, best),
        xytext=(10, 0),
        textcoords="offset points",
        va="center",
    )
    axis.set_xticks(places, [epsilon_text(float(level)) for level in levels])
    axis.set_ylabel("mean loss over 59 data sets")
    axis.set_xlabel("ε: more privacy to the left, none at ∞")
    axis.set_ylim(0.25, 0.45)
    plain(axis, ink)


def main() -> None:
    light = Drawing(SIZE, draw).svg()
    light = "\n".join(line.rstrip() for line in light.splitlines()) + "\n"
    dark = light.replace(INK, LIGHT_INK)
    dark = re.sub(r"#ffffff|\bwhite\b", DARK_PAPER, dark)
    for name, text in {"light": light, "dark": dark}.items():
        (DOCS / "images" / f"loss-against-epsilon-{name}.svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
