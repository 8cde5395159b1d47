"""Figures, tables and the page of the scaling experiments, from their results alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from discreet.client.pages import rendered
from discreet.lab.report import figures
from discreet.lab.report.tables import Table, csv_text, number, pivot
from discreet.types import Axes, Figure, JsonMapping, JsonObject

NAMES = {
    "vanilla": "Algorithm 1",
    "batched_vanilla": "batched VanillaPO",
    "batched_bonus": "batched BonusPO",
    "private_batched_vanilla": "private VanillaPO",
    "private_batched_bonus": "private BonusPO",
}
RATES = {"theorem": "rates of the theorem", "practical": "practical rates"}
Columns = Sequence[tuple[str, str, str]]
"""Axis, instance and name of each panel of a figure, or column of a table."""
HORIZONS = (
    ("T", "hard", "gap shrinks with T"),
    ("T", "easy", "gap 1/2"),
    ("T", "gap 1/8", "gap 1/8"),
    ("T", "gap 1/32", "gap 1/32"),
    ("T", "worst", "worst of the three"),
    ("T", "items", "actions with features"),
)
OTHERS = (
    ("A", "hard", "A"),
    ("A", "items", "A, with features"),
    ("F", "hard", "log |F|"),
    ("epsilon", "hard", "1 + 1/ε"),
)
_DRAWN = ("hard", "easy", "worst", "items")


def write_report(results: JsonMapping, out: Path) -> list[str]:
    """Write everything into a folder; return the names of the files."""
    drawings = {
        "regret_against_T": _panels(
            results, [each for each in HORIZONS if each[1] in _DRAWN], "rounds T"
        ),
        "regret_against_A_F_epsilon": _panels(results, OTHERS, None),
        "bounds": figures.Drawing((6.2, 4.6), lambda figure, ink: _bounds(results, figure, ink)),
    }
    page = rendered(
        "discreet.lab.report",
        "theory.html",
        seeds=results["seeds"],
        figures=[drawing.inline(f"figure{i}") for i, drawing in enumerate(drawings.values())],
        horizons=_slopes(results, HORIZONS),
        others_slopes=_slopes(results, OTHERS),
        ratios=_ratios(results),
        **summary(results),
    )
    files: dict[str, str | bytes] = {
        "points.csv": csv_text(results["points"]),
        "slopes.csv": csv_text(results["growth"]),
        "index.html": page,
        **{f"{name}.png": drawing.png() for name, drawing in drawings.items()},
    }
    figures.write_files(out, files)
    return list(files)


def _panels(
    results: JsonMapping, columns: Sequence[tuple[str, str, str]], words: str | None
) -> figures.Drawing:
    """Draw regret, a column for each axis and instance, a row for each kind of rates."""

    def draw(figure: Figure, ink: str) -> None:
        from matplotlib.ticker import LogLocator

        described_axes = {each["name"]: each["words"] for each in results["axes"]}
        share = True if words else "col"
        grid = figure.subplots(2, len(columns), squeeze=False, sharex=share, sharey=True)
        for row, (rates, title) in zip(grid, RATES.items(), strict=True):
            row[0].set_ylabel(f"regret, {title}")
            for axis, (name, instance, label) in zip(row, columns, strict=True):
                for algorithm, described in NAMES.items():
                    line = _line(results, name, instance, algorithm, rates)
                    if line:
                        error = [1.96 * point["standard_error"] for point in line]
                        x, mean = ([point[key] for point in line] for key in ("value", "mean"))
                        style = _style(algorithm)
                        figures.error_line(axis, x, mean, error, label=described, **style)
                axis.set_yscale("log")
                figures.rounds_axis(axis, ink)
                if words:
                    _guide(axis, results, ink)
                    axis.set_title(label if rates == "theorem" else "", fontsize=10)
                else:
                    axis.set_xticks(x, [f"{each:g}" for each in x], fontsize=9)
                if rates == "practical":
                    items = ", with features" if instance == "items" else ""
                    axis.set_xlabel(words or f"{described_axes[name]}{items}")
            if not words:  # ticks at 1, 2 and 5: these axes span little more than one decade
                row[0].yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                row[0].yaxis.set_major_formatter(lambda value, _: figures.short_number(value))
        figures.legend(figure, grid[0, :1], ncols=6, fontsize=9)

    return figures.Drawing((3.7 * len(columns), 6.6), draw)


def _bounds(results: JsonMapping, figure: Figure, ink: str) -> None:
    """Draw the bounds, T, and regret measured with the same rates, at gap 1/2."""
    axis = figure.subplots()
    rounds = [point["T"] for point in _line(results, "T", "hard", "vanilla", "theorem")]
    axis.plot(rounds, rounds, color=ink, linewidth=2.2, label="T: regret is never above")
    for name, words in NAMES.items():
        line = _line(results, "T", "hard", name, "theorem")
        axis.plot(rounds, [point["bound"] for point in line], label=words, **_style(name))
    for name in ("vanilla", "batched_vanilla"):
        line = _line(results, "T", "easy", name, "theorem")
        style = {**_style(name), "marker": "o", "markersize": 3.5, "linewidth": 1.0}
        axis.plot(rounds, [p["mean"] for p in line], label=f"{NAMES[name]}, measured", **style)
    axis.set_ylabel("regret, and what it is bounded by")
    axis.set_xlabel("rounds T")
    axis.set_yscale("log")
    figures.rounds_axis(axis, ink)
    figures.legend(figure, [axis], ncols=2, fontsize=9)


def _guide(axis: Axes, results: JsonMapping, ink: str) -> None:
    """Draw a line of slope one half, through the hard instance's first point."""
    line = _line(results, "T", "hard", "batched_bonus", "theorem")
    rounds = np.array([point["T"] for point in line])
    heights = line[0]["mean"] * np.sqrt(rounds / rounds[0])
    axis.plot(rounds, heights, color=ink, linewidth=0.8, alpha=0.6, label="slope ½")


def _line(
    results: JsonMapping, axis: str, instance: str, algorithm: str, rates: str
) -> list[JsonMapping]:
    wanted = {"axis": axis, "instance": instance, "algorithm": algorithm, "rates": rates}
    return [point for point in results["points"] if wanted.items() <= point.items()]


def _style(algorithm: str) -> JsonObject:
    """Return the line style of an algorithm; a dashed line is a private algorithm."""
    kind = "VanillaPO" if algorithm.endswith("vanilla") else "BonusPO"
    colour = "#009E73" if algorithm == "vanilla" else figures.STYLES[kind][0]
    dash = (0, (4, 2)) if algorithm.startswith("private") else "-"
    return {"color": colour, "linestyle": dash, "linewidth": 1.6}


def summary(results: JsonMapping) -> JsonObject:
    """Return the numbers of the page's main results."""

    def span(axis: str, instance: str, rates: str, key: str = "slope") -> str:
        wanted = {"axis": axis, "instance": instance, "rates": rates}
        values = [each[key] for each in results["growth"] if wanted.items() <= each.items()]
        return f"{number(min(values), '.2f')} to {number(max(values), '.2f')}"

    hard = [each for each in results["growth"] if (each["axis"], each["instance"]) == ("T", "hard")]
    steepest = max(hard, key=lambda each: float(each["slope"]))
    ratios = [point["bound_over_T"] for point in results["points"] if point["axis"] == "T"]
    batched = [p for p in results["points"] if p["algorithm"] != "vanilla"]
    return {
        "span": span,
        "steepest": f"{number(steepest['slope'])} ({NAMES[steepest['algorithm']]}, "
        f"{RATES[steepest['rates']]})",
        "least_ratio": min(ratios),
        "largest_ratio": max(ratios),
        "exact_calls": all(p["fits"] == p["T"].bit_length() - 1 for p in batched),
        "batched": len(batched),
    }


def _slopes(results: JsonMapping, columns: Columns) -> Table:
    """Return a line for each algorithm and kind of rates; each slope with its interval."""
    named = {(axis, instance): words for axis, instance, words in columns}
    records = [
        {**each, "row": f"{NAMES[each['algorithm']]}, {RATES[each['rates']]}", "words": words}
        for each in results["growth"]
        if (words := named.get((each["axis"], each["instance"])))
    ]
    return pivot("Slopes; the theorems' order is ½.", records, "row", "words", _slope)


def _slope(line: JsonMapping) -> str:
    interval = f"{number(line['low'], '.2f')} to {number(line['high'], '.2f')}"
    return Markup("{} <small>{}</small>").format(number(line["slope"]), interval)


def _ratios(results: JsonMapping) -> Table:
    """Return regret and bounds for the rates of the theorems; the bounds hold for no others."""
    rows = []
    for algorithm, name in NAMES.items():
        hard, easy = (
            _line(results, "T", instance, algorithm, "theorem")[-1] for instance in ("hard", "easy")
        )
        shown = (hard["mean"], easy["mean"], easy["bound"], easy["bound_over_T"], easy["fits"])
        rows.append([name, *(number(each, ",.0f") for each in shown)])
    head = ["", "hard instance", "gap 1/2", "bound", "bound ÷ T", "oracle calls"]
    return Table(f"Regret at T = {hard['T']:,} with the rates of the theorems.", head, rows)
