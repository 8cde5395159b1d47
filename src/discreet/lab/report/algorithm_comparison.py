"""Comparison of algorithms: final losses, their increase with ε, pairwise win rates.

Each comparison is a list of records, one for an algorithm or a pair of algorithms at a privacy
level; CSV files, tables and figures are made from the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from discreet.lab.report.campaign_results import REFERENCE, Level, Numbers, bandits, short
from discreet.lab.report.selection import Selection
from discreet.types import JsonMapping, JsonObject

Records = list[JsonObject]
DEFAULT = "Default"
NORMAL = 1.959963984540054
"""Half-width of a 95 % interval, in standard errors."""
BASELINE = 8.0
"""The paper's figure is relative to ε = 8."""
MARGIN = 1e-12
"""Smaller differences of mean loss are ties, which count half. [paper, pairwise win rates]"""


def over_sets(values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the mean over the data sets, its standard error, and the number of sets.

    ``values`` are (data sets, algorithms, levels); NaN is an unknown value.
    """
    known = np.isfinite(values)
    n = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, values, 0).sum(axis=0) / n
        squares = np.where(known, (values - mean) ** 2, 0).sum(axis=0)
        error = np.where(n > 1, np.sqrt(squares / (n - 1) / n), np.nan)
    return mean, error, n


def common_sets(selection: Selection) -> Numbers:
    """Return a mask (data sets, levels) of the data sets on which every algorithm was run.

    An algorithm without any run at some ε does not shorten the list of data sets there.
    """
    has = selection.has
    return np.asarray((has | ~has.any(axis=0)).all(axis=1) & has.any(axis=1))


def mean_losses(selection: Selection) -> Records:
    """Return the mean loss of each algorithm at each ε, over the same data sets.

    Standard errors are over data sets; those of a single data set are over its seeds. The bandit
    with the least mean at a level is ``best``.
    """
    common = common_sets(selection)
    mean, error, _ = over_sets(np.where(common[:, None, :], selection.loss, np.nan))
    if len(selection.datasets) == 1:
        error = np.where(common, selection.standard_error[0], np.nan)
    bandit = np.asarray([name != REFERENCE for name in selection.algorithms])
    contest = np.where(bandit[:, None] & np.isfinite(mean), mean, np.inf)
    best = np.where(np.isfinite(contest).any(axis=0), contest.argmin(axis=0), -1)
    return [
        {
            "algorithm": name,
            "epsilon": level.epsilon,
            "mean": float(mean[a, i]),
            "standard_error": float(error[a, i]),
            "best": bool(best[i] == a),
        }
        for a, name in enumerate(selection.algorithms)
        for i, level in enumerate(selection.levels)
    ]


def without_contexts(about: JsonMapping, datasets: Sequence[str]) -> dict[str, Numbers]:
    """Return losses (data sets,) of policies without contexts; NaN where a manifest has none."""
    facts = [about.get(name, {}) for name in datasets]
    return {
        "best fixed action": np.asarray([each.get("best_fixed", np.nan) for each in facts]),
        "uniform": np.asarray([1 - 1 / each.get("actions", np.nan) for each in facts]),
    }


def loss_increase(selection: Selection) -> Records:
    """Return L(ε) − L(8) over data sets that have both; without ε = 8, the largest finite ε."""
    levels = selection.levels
    private = [i for i, level in enumerate(levels) if level.private]
    if not private:
        return []
    wanted = [i for i in private if levels[i].epsilon == BASELINE]
    baseline = (wanted or private)[0]  # levels come with ε decreasing
    mean, error, datasets = over_sets(selection.loss - selection.loss[..., baseline, None])
    return [
        {
            "algorithm": algorithm,
            "epsilon": level.epsilon,
            "mean_increase": float(mean[a, i]),
            "standard_error": float(error[a, i]),
            "datasets": int(datasets[a, i]),
            "relative_to_epsilon": levels[baseline].epsilon,
        }
        for a, algorithm in enumerate(selection.algorithms)
        for i, level in enumerate(levels)
        if datasets[a, i]
    ]


def against_default(selection: Selection) -> Records:
    """Compare with the default plan; nothing without the default plan or without any other."""
    names = selection.algorithms
    if DEFAULT not in names:
        return []
    others = [a for a, name in enumerate(names) if name != DEFAULT]
    own = selection.loss[:, names.index(DEFAULT), None]
    difference = selection.loss[:, others] - own
    return differences([names[a] for a in others], selection.levels, difference)


def differences(algorithms: Sequence[str], levels: Sequence[Level], difference: Numbers) -> Records:
    """Return the loss of others less that of the default plan, and how often it is ahead.

    ``difference`` (data sets, algorithms, levels) are means over seeds, so the spread over data
    sets includes the variation of seeds. The share of data sets on which the default is ahead
    counts ties as half and has Wilson's interval.
    """
    mean, error, n = over_sets(difference)
    z = NORMAL**2 / np.maximum(n, 1)
    share = ((difference > 0) + 0.5 * (difference == 0)).sum(axis=0) / np.maximum(n, 1)
    middle, half = share + z / 2, np.sqrt(share * (1 - share) * z + z**2 / 4)
    columns = {
        "datasets": n,
        "mean_difference": mean,
        "low": mean - NORMAL * error,
        "high": mean + NORMAL * error,
        "default_ahead_percent": 100 * share,
        "ahead_low": 100 * (middle - half) / (1 + z),
        "ahead_high": 100 * (middle + half) / (1 + z),
    }
    return [
        {"epsilon": level.epsilon, "algorithm": name}
        | {column: values[a, i].item() for column, values in columns.items()}
        for i, level in enumerate(levels)
        for a, name in enumerate(algorithms)
        if n[a, i]
    ]


def outcomes(loss: Numbers) -> Numbers:
    """Return +1 where the row wins, 0 for a tie, −1 where it loses; NaN where one was not run.

    ``loss`` is (data sets, algorithms, levels), the result (data sets, levels, rows, columns).
    """
    by_level = np.moveaxis(loss, 2, 1)
    ahead = by_level[..., None, :] - by_level[..., :, None]
    return np.where(np.abs(ahead) <= MARGIN, 0.0, np.sign(ahead))


def win_rates(selection: Selection) -> Records:
    """Return win rates of pairs of bandits over all data sets, in the order of the paper's table.

    Ties count half. An algorithm is compared with itself too, as in that table.
    """
    names = bandits(selection.algorithms)
    result = outcomes(selection.loss[:, [selection.algorithms.index(name) for name in names]])
    wins, ties, losses = ((result == outcome).sum(axis=0) for outcome in (1, 0, -1))
    datasets = wins + ties + losses
    return [
        {
            **selection.levels[i]._asdict(),
            "row_algorithm": names[j],
            "column_algorithm": names[k],
            "datasets": int(datasets[i, j, k]),
            "wins": int(wins[i, j, k]),
            "ties": int(ties[i, j, k]),
            "losses": int(losses[i, j, k]),
            "win_rate_percent": round(
                float(100 * (wins[i, j, k] + ties[i, j, k] / 2) / datasets[i, j, k]), 6
            ),
        }
        for i, j, k in np.argwhere(datasets)
    ]


def with_short_names(rates: Iterable[JsonMapping]) -> Records:
    """Return the lines of ``win_rates.csv``, whose names are those of the paper's table."""
    columns = ("row_algorithm", "column_algorithm")
    return [{**each, **{name: short(each[name]) for name in columns}} for each in rates]


def rates_of(rates: Iterable[JsonMapping], epsilon: float) -> dict[str, list[float]]:
    """Return the win rates of each algorithm against the others at one level."""
    found: dict[str, list[float]] = {}
    for each in rates:
        row = found.setdefault(each["row_algorithm"], []) if each["epsilon"] == epsilon else []
        if each["row_algorithm"] != each["column_algorithm"]:
            row.append(each["win_rate_percent"])
    return found


def first(rates: Iterable[JsonMapping], epsilon: float) -> str | None:
    """Return the algorithm that wins more than half against each other one, if there is one."""
    found = rates_of(rates, epsilon)
    winners = (name for name, won in found.items() if all(each > 50 for each in won))
    return next(winners, None) if len(found) > 1 else None
