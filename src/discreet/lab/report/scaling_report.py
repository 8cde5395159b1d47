"""Figures, tables and the page of the scaling experiments, from their results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from discreet.client.pages import rendered
from discreet.lab.report.figures import STYLES, Drawing, plain, short_number
from discreet.lab.report.tables import Table, csv_text, number
from discreet.releases.canonical import write_atomically
from discreet.types import JsonMapping, JsonObject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {
    "vanilla": "Algorithm 1",
    "batched_vanilla": "batched VanillaPO",
    "batched_bonus": "batched BonusPO",
    "private_batched_vanilla": "private VanillaPO",
    "private_batched_bonus": "private BonusPO",
}
RATES = {"theorem": "rates of the theorem", "practical": "practical rates"}
_ALGORITHM_1 = "#009E73"


INSTANCES = {
    "hard": "gap shrinks with T",
    "easy": "gap 1/2",
    "worst": "worst of gaps 1/2, 1/8, 1/32",
    "items": "actions with features",
}


def horizon_chart(results: Results) -> Drawing:
    """Draw regret against T: columns are instances, rows are kinds of rates."""
    return Drawing((14.4, 6.6), partial(_horizons, results))


def axes_chart(results: Results) -> Drawing:
    """Draw regret against A, |F| and ε on the hard instance, and A with features, both rates."""
    axes = []
    for axis in results["axes"]:
        if axis["name"] != "T":
            axes.append({**axis, "instance": "hard"})
        if axis["name"] == "A":
            words = "actions A, with features"
            axes.append({**axis, "words": words, "instance": "items"})
    return Drawing((3.8 * len(axes), 6.6), partial(_others, results, axes))


def bound_chart(results: Results) -> Drawing:
    """Draw the bounds, T, and regret measured with the same rates, at gap 1/2."""
    return Drawing((6.2, 4.6), partial(_bounds, results))


def _horizons(results: Results, figure: Figure, ink: str) -> None:
    grid = figure.subplots(2, len(INSTANCES), sharex=True, sharey=True)
    for row, rates in zip(grid, RATES, strict=True):
        for axis, (instance, words) in zip(row, INSTANCES.items(), strict=True):
            _lines(axis, results, "T", instance, rates, ink)
            _guide(axis, results, ink)
            axis.set_title(words if rates == "theorem" else "", fontsize=10)
            _finish(axis, "rounds T" if rates == "practical" else "", ink)
        row[0].set_ylabel(f"regret, {RATES[rates]}")
    _legend(figure, grid[0, 0])


def _others(results: Results, axes: Sequence[Results], figure: Figure, ink: str) -> None:
    from matplotlib.ticker import LogLocator

    grid = figure.subplots(2, len(axes), squeeze=False, sharex="col", sharey=True)
    for row, rates in zip(grid, RATES, strict=True):
        for axis, about in zip(row, axes, strict=True):
            _lines(axis, results, about["name"], about["instance"], rates, ink)
            _finish(axis, about["words"] if rates == "practical" else "", ink)
            axis.set_xticks(about["values"], [f"{each:g}" for each in about["values"]], fontsize=9)
        row[0].set_ylabel(f"regret, {RATES[rates]}")
        # Ticks at 1, 2 and 5 of each decade: these axes span little more than one.
        row[0].yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        row[0].yaxis.set_major_formatter(lambda value, _: short_number(value))
    _legend(figure, grid[0, 0])


def _bounds(results: Results, figure: Figure, ink: str) -> None:
    axis = figure.subplots()
    horizons = _line(results, "T", "hard", "vanilla", "theorem")
    rounds = np.array([point["T"] for point in horizons])
    axis.plot(rounds, rounds, color=ink, linewidth=2.2, label="T: regret is never above")
    for name, words in NAMES.items():
        line = _line(results, "T", "hard", name, "theorem")
        axis.plot(rounds, [point["bound"] for point in line], label=words, **_style(name, ink))
    for name in ("vanilla", "batched_vanilla"):
        line = _line(results, "T", "easy", name, "theorem")
        style = {**_style(name, ink), "marker": "o", "markersize": 3.5, "linewidth": 1.0}
        axis.plot(rounds, [p["mean"] for p in line], label=f"{NAMES[name]}, measured", **style)
    axis.set_ylabel("regret, and what it is bounded by")
    _finish(axis, "rounds T", ink)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)


def _lines(axis: Axes, results: Results, name: str, instance: str, rates: str, ink: str) -> None:
    for algorithm, words in NAMES.items():
        line = _line(results, name, instance, algorithm, rates)
        if not line:
            continue
        axis.errorbar(
            [point["value"] for point in line],
            [point["mean"] for point in line],
            [1.96 * point["standard_error"] for point in line],
            label=words,
            marker="o",
            markersize=3,
            elinewidth=1,
            **_style(algorithm, ink),
        )


def _guide(axis: Axes, results: Results, ink: str) -> None:
    """Draw a line of slope one half, through the hard instance's first point."""
    line = _line(results, "T", "hard", "batched_bonus", "theorem")
    rounds = np.array([point["T"] for point in line])
    heights = line[0]["mean"] * np.sqrt(rounds / rounds[0])
    axis.plot(rounds, heights, color=ink, linewidth=0.8, alpha=0.6, label="slope ½")


def _line(
    results: Results, axis: str, instance: str, algorithm: str, rates: str
) -> list[JsonMapping]:
    wanted = (axis, instance, algorithm, rates)
    keys = ("axis", "instance", "algorithm", "rates")
    return [point for point in results["points"] if tuple(point[key] for key in keys) == wanted]


def _style(algorithm: str, ink: str) -> JsonObject:
    """Return the line style of an algorithm; a dashed line is a private algorithm."""
    if algorithm == "vanilla":
        return {"color": _ALGORITHM_1, "linestyle": "-", "linewidth": 1.6}
    kind = "VanillaPO" if algorithm.endswith("vanilla") else "BonusPO"
    dash = (0, (4, 2)) if algorithm.startswith("private") else "-"
    colour = STYLES[kind][0]
    return {"color": ink if colour == "ink" else colour, "linestyle": dash, "linewidth": 1.6}


def _finish(axis: Axes, words: str, ink: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.xaxis.set_major_formatter(lambda value, _: short_number(value))
    axis.minorticks_off()
    axis.set_xlabel(words)
    plain(axis, ink)


def _legend(figure: Figure, axis: Axes) -> None:
    lines, names = axis.get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=6, frameon=False, fontsize=9)


Results = JsonMapping

HORIZONS = {
    ("T", "hard"): "gap shrinks with T",
    ("T", "easy"): "gap 1/2",
    ("T", "gap 1/8"): "gap 1/8",
    ("T", "gap 1/32"): "gap 1/32",
    ("T", "worst"): "worst of the three",
    ("T", "items"): "actions with features",
}
OTHERS = {
    ("A", "hard"): "A",
    ("A", "items"): "A, with features",
    ("F", "hard"): "log |F|",
    ("epsilon", "hard"): "1 + 1/ε",
}
"""Quantity of which regret is a power, along each axis."""


def write_report(results: Results, out: Path) -> list[str]:
    """Write everything into a folder; return the names of the files."""
    figures = {
        "regret_against_T": horizon_chart(results),
        "regret_against_A_F_epsilon": axes_chart(results),
        "bounds": bound_chart(results),
    }
    contents: dict[str, bytes] = {
        "points.csv": _csv(results["points"]),
        "slopes.csv": _csv(results["growth"]),
        "index.html": scaling_page(results, figures).encode(),
    }
    for name, drawing in figures.items():
        contents[f"{name}.png"] = drawing.png()
    for name, data in contents.items():
        write_atomically(out / name, data, mode=0o644)
    return list(contents)


def scaling_page(results: Results, figures: Mapping[str, Drawing]) -> str:
    """Return one self-contained page without network access."""
    return rendered(
        "discreet.lab.report",
        "theory.html",
        seeds=results["seeds"],
        summary=summary(results),
        figures=[drawing.inline(f"figure{i}") for i, drawing in enumerate(figures.values())],
        horizons=_slopes(results, "Slopes in T; the theorems' order is ½.", HORIZONS),
        others=_slopes(
            results,
            "Slopes on the hard instance, and with features; the theorems' order is ½.",
            OTHERS,
        ),
        ratios=_ratios(results),
        method=METHOD,
    )


METHOD = (
    "One axis at a time from T = 8,192, A = 4, |F| = 64, δ = 0.05, ε = 1 for the private versions; "
    "16 equally likely contexts; Bernoulli losses; only the truth knows the one good "
    "action of each context. Each seed draws which function of the class is true.",
    "Hard: the gap at which playing blindly costs ½√(A·T·log|F|·(1 + 1/ε)). It shrinks with T, so "
    "the same evidence is there at every T and a slope of ½ is the instance's own; an algorithm "
    "can be better than blind, but not leave that slope. Fixed gaps are the harder test: worst "
    "takes, at each T, the gap of 1/2, 1/8 and 1/32 with the largest mean regret.",
    "Rates of the theorem: as stated, with all constants. Practical: the same formulas without the "
    "error bound, eight times as fast; the bonus eight times as small.",
    "Slopes are least squares through logarithms of means; intervals resample seeds (95 %) and "
    "say nothing of how straight the line is. slopes.csv also has the slope through the last three "
    "points, and that of the bound.",
    "Noise and draws are seeded: nothing here is a private release.",
)


def summary(results: Results) -> list[str]:
    """Return the main results in sentences."""

    def span(axis: str, instance: str, rates: str, key: str = "slope") -> str:
        lines = [each for each in _growth(results, axis, instance) if each["rates"] == rates]
        values = [each[key] for each in lines]
        return f"{number(min(values), '.2f')} to {number(max(values), '.2f')}"

    def others(rates: str) -> str:
        return (
            f"slopes in A {span('A', 'hard', rates)}, in log |F| {span('F', 'hard', rates)}, "
            f"in 1 + 1/ε {span('epsilon', 'hard', rates)}"
        )

    steepest = max(_growth(results, "T", "hard"), key=lambda each: float(each["slope"]))
    ratios = [point["bound_over_T"] for point in results["points"] if point["axis"] == "T"]
    batched = [p for p in results["points"] if p["algorithm"] != "vanilla"]
    exact = all(p["fits"] == p["T"].bit_length() - 1 for p in batched)
    return [
        f"Hard instance: no slope in T is above {number(steepest['slope'])} "
        f"({NAMES[steepest['algorithm']]}, {RATES[steepest['rates']]}). Its gap shrinks like 1/√T, "
        "so that ½ is the instance's own slope; fixed gaps say more.",
        f"Practical rates: slopes in T {span('T', 'easy', 'practical')} at gap 1/2, and "
        f"{span('T', 'worst', 'practical')} for the worst of three fixed gaps at each T.",
        f"Rates of the theorem at gap 1/2: slopes in T {span('T', 'easy', 'theorem')}, and "
        f"{span('T', 'easy', 'theorem', 'late_slope')} through the last three points. These rates "
        "are so slow that most horizons end before learning shows: regret is linear as long as "
        "rate × T × gap is small, and √T comes after.",
        f"Rates of the theorem, hard instance: {others('theorem')}; the order is ½ for each. At "
        "these horizons play is nearly blind, so this too is the instance's own growth.",
        f"Practical rates, which no theorem covers, hard instance: {others('practical')}. Small "
        "classes are easier than their bound, since two functions name at most two actions, so "
        "growth with |F| begins from below.",
        f"The constants are large: over these T the bounds are {min(ratios):,.3g} to "
        f"{max(ratios):,.3g} times T, so no bound says anything yet: regret is at most T.",
        f"Batched algorithms call the oracle exactly M − 1 times: {'yes' if exact else 'NO'}, at "
        f"all {len(batched)} points.",
    ]


def _growth(results: Results, axis: str, instance: str) -> list[JsonMapping]:
    wanted = (axis, instance)
    return [each for each in results["growth"] if (each["axis"], each["instance"]) == wanted]


def _slopes(results: Results, caption: str, columns: Mapping[tuple[str, str], str]) -> Table:
    """Return a row for each algorithm and kind of rates; each slope with its interval."""
    keys = ("axis", "instance", "algorithm", "rates")
    found = {tuple(each[key] for key in keys): each for each in results["growth"]}
    rows = []
    for algorithm, name in NAMES.items():
        for rates, words in RATES.items():
            lines = [found.get((*column, algorithm, rates)) for column in columns]
            rows.append([name, words, *map(_slope, lines)])
    return Table(caption, ["", "rates", *columns.values()], rows)


def _slope(line: JsonMapping | None) -> str:
    if line is None:
        return ""
    interval = f"{number(line['low'], '.2f')} to {number(line['high'], '.2f')}"
    return Markup("{} <small>{}</small>").format(number(line["slope"]), interval)


def _ratios(results: Results) -> Table:
    """Return regret and bounds for the rates of the theorems; the bounds hold for no others."""
    shown = {
        (p["algorithm"], p["instance"], p["T"]): p
        for p in results["points"]
        if (p["axis"], p["rates"]) == ("T", "theorem")
    }
    last = max(T for *_, T in shown)
    rows = []
    for algorithm, name in NAMES.items():
        hard, easy = (shown[algorithm, instance, last] for instance in ("hard", "easy"))
        rows.append(
            (
                name,
                number(hard["mean"], ",.0f"),
                number(easy["mean"], ",.0f"),
                number(easy["bound"], ",.0f"),
                number(easy["bound_over_T"], ",.0f"),
                f"{easy['fits']:,}",
            )
        )
    head = ["", "hard instance", "gap 1/2", "bound", "bound ÷ T", "oracle calls"]
    return Table(f"Regret at T = {last:,} with the rates of the theorems.", head, rows)


def _csv(rows: list[JsonMapping]) -> bytes:
    return csv_text(list(rows[0]), [list(row.values()) for row in rows]).encode()
