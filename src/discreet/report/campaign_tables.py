"""The tables of a campaign's page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import numpy as np

from discreet.report.algorithm_names import REFERENCE
from discreet.report.compare import Comparison
from discreet.report.loss_increase import LossIncrease
from discreet.report.mean_loss import MeanLoss
from discreet.report.runs import Level
from discreet.report.runtime import Runtime, Share
from discreet.report.selected_settings import Choices
from discreet.report.selection import Selection
from discreet.report.tables import html_table, number
from discreet.report.win_rates import WinRates

SLOWEST = 10


def mean_losses(selection: Selection, means: MeanLoss) -> str:
    """Algorithms by ε; the best bandit of a column is bold."""
    rows = [
        [
            escape(name),
            *(
                _with_error(means.mean[a, i], means.standard_error[a, i], bold=means.best[i] == a)
                for i in range(len(selection.levels))
            ),
        ]
        for a, name in enumerate(selection.algorithms)
    ]
    counts = ["data sets", *(str(n) for n in means.datasets)]
    caption = (
        "Mean over the data sets that have every algorithm, ± one standard error over data sets; "
        "the best bandit of each column is bold."
    )
    return html_table(caption, ["", *_heads(selection.levels)], [*rows, counts])


def average_win_rates(rates: WinRates) -> str:
    """Algorithms by ε."""
    average = rates.against_the_rest()
    rows = [
        [escape(name), *(number(value, ".1f") for value in average[:, a])]
        for a, name in enumerate(rates.algorithms)
    ]
    caption = "Mean win rate against the other bandits, in percent."
    return html_table(caption, ["", *_heads(rates.levels)], rows)


def comparison(compared: Comparison) -> str:
    """Mean absolute difference at each ε."""
    by_epsilon = compared.by_epsilon()
    heads = [Level(epsilon, 0).text for epsilon in by_epsilon]
    row = ["points", *(number(value, ".1f") for value in by_epsilon.values())]
    return html_table("Mean absolute difference at each ε.", ["", *heads], [row])


def increases(increase: LossIncrease) -> str:
    """Algorithms by ε, in thousandths where that is what they are."""
    kept = [i for i in range(len(increase.levels)) if i != increase.baseline]
    rows = [
        [
            escape(name),
            *(
                _with_error(increase.mean[a, i], increase.standard_error[a, i], "+.3f")
                for i in kept
            ),
        ]
        for a, name in enumerate(increase.algorithms)
    ]
    caption = f"Increase of the final loss, relative to {increase.relative_to.text}."
    return html_table(caption, ["", *_heads([increase.levels[i] for i in kept])], rows)


def chosen(choices: Choices) -> str:
    """For each ε, algorithms by oracle and λ: on how many data sets that pair won."""
    pairs = [(o, r) for o in range(len(choices.oracles)) for r in range(len(choices.ridges))]
    if not pairs:
        return ""
    heads = [_ridge(choices.ridges[r]) for _, r in pairs]
    above = [("", 1), *((oracle, len(choices.ridges)) for oracle in choices.oracles)]
    made = [
        "<p>On how many data sets a configuration with that oracle and that λ was selected; the "
        'most frequent pair of a row is bold.</p><div class="tables">'
    ]
    for i, level in enumerate(choices.levels):
        rows = []
        for a, name in enumerate(choices.algorithms):
            counts = choices.datasets[a, i]
            if counts.any():
                rows.append(
                    [escape(name), *(_count(int(counts[o, r]), counts.max()) for o, r in pairs)]
                )
        made.append(html_table(f"<b>{level.text}</b>", ["λ", *heads], rows, "small counts", above))
    return "\n".join([*made, "</div>"])


def by_dataset(selection: Selection) -> str:
    """For each ε, data sets by algorithm; folded, since it is long."""
    contest = [name != REFERENCE for name in selection.algorithms]
    made = ["<p>Mean over seeds; the best bandit of each row is bold. best.csv has all digits.</p>"]
    for i, level in enumerate(selection.levels):
        loss = selection.loss[:, :, i]
        there = np.flatnonzero(np.isfinite(loss).any(axis=1))
        least = np.where(contest & np.isfinite(loss), loss, np.inf).min(axis=1)
        rows = [
            [
                escape(selection.datasets[d]),
                *(
                    _bold(number(loss[d, a]), contest[a] and loss[d, a] == least[d])
                    for a in range(len(contest))
                ),
            ]
            for d in there
        ]
        table = html_table("", ["", *map(escape, selection.algorithms)], rows, "small")
        made.append(f"<details><summary>{level.text}</summary>{table}</details>")
    return "\n".join(made)


def times(runtime: Runtime) -> str:
    """Families, and the slowest data sets."""
    if not runtime.families:
        return ""
    heads = ["", "tasks", "seconds", "runs", "rounds", "rounds a second"]
    caption = "Seconds of computation, added over jobs that ran side by side."
    families = html_table(
        caption, heads, [_share(each) for each in (*runtime.families, runtime.total)]
    )
    slowest = [_share(each) for each in runtime.datasets[:SLOWEST]]
    return families + html_table("The slowest data sets.", heads, slowest)


def _share(share: Share) -> list[str]:
    rate = share.rounds_a_second
    return [
        escape(share.name),
        f"{share.tasks:,}",
        f"{share.seconds:,.1f}",
        f"{share.runs:,}",
        _large(share.rounds),
        _large(rate),
    ]


def _large(value: float) -> str:
    """``1.42e9``."""
    return number(value, ".2e").replace("e+0", "e").replace("e+", "e")


def _ridge(ridge: float) -> str:
    """``0.01`` or ``1e−6``: as short as it can be."""
    plain = f"{ridge:g}"
    return plain if len(plain) < 5 else re.sub(r"\.?0*e-0*", "e−", f"{ridge:.3e}")


def _heads(levels: Sequence[Level]) -> list[str]:
    return [level.text for level in levels]


def _with_error(value: float, error: float, form: str = ".3f", *, bold: bool = False) -> str:
    if not np.isfinite(value):
        return "–"
    spread = f" <small>± {error:.3f}</small>" if np.isfinite(error) else ""
    return _bold(number(value, form), bold) + spread


def _bold(text: str, bold: bool) -> str:
    return f"<b>{text}</b>" if bold else text


def _count(count: int, most: int) -> str:
    if not count:
        return '<span class="faint">·</span>'
    return _bold(str(count), count == most)
