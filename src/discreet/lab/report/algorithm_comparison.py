"""Comparison of algorithms: final losses, their increase with ε, pairwise win rates.

Each comparison is a list of records, one for an algorithm or a pair of algorithms at a privacy
level; CSV files, tables and figures are made from the records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from discreet.lab.report.selection import REFERENCE, SHORT, Records, Selection, bandits, records
from discreet.types import JsonMapping, Numbers

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
    names = np.asarray(selection.algorithms)[:, None]
    columns = {
        "algorithm": names,
        "epsilon": selection.epsilons,
        "mean": mean,
        "standard_error": error,
        "best": least_bandit(mean, names, axis=0),
    }
    return records(np.ones(mean.shape, dtype=bool), columns)


def least_bandit(losses: Numbers, names: Numbers, axis: int) -> Numbers:
    """Return a mask of the least known losses of bandits along an axis."""
    contest = np.where((names != REFERENCE) & np.isfinite(losses), losses, np.inf)
    return (contest == contest.min(axis=axis, keepdims=True)) & np.isfinite(contest)


def without_contexts(about: JsonMapping, datasets: Sequence[str]) -> dict[str, Numbers]:
    """Return losses (data sets,) of policies without contexts; NaN where a manifest has none."""
    facts = [about.get(name, {}) for name in datasets]
    return {
        "best fixed action": np.asarray([each.get("best_fixed", np.nan) for each in facts]),
        "uniform": np.asarray([1 - 1 / each.get("actions", np.nan) for each in facts]),
    }


def loss_increase(selection: Selection) -> Records:
    """Return L(ε) − L(8) over data sets that have both; without ε = 8, the largest finite ε."""
    private = [epsilon for epsilon in selection.epsilons if math.isfinite(epsilon)]
    if not private:
        return []
    baseline = BASELINE if BASELINE in private else private[0]
    base = selection.loss[..., [selection.epsilons.index(baseline)]]
    mean, error, datasets = over_sets(selection.loss - base)
    columns = {
        "algorithm": np.asarray(selection.algorithms)[:, None],
        "epsilon": selection.epsilons,
        "mean_increase": mean,
        "standard_error": error,
        "datasets": datasets,
        "relative_to_epsilon": baseline,
    }
    return records(datasets > 0, columns)


def against_default(selection: Selection) -> Records:
    """Compare with the default plan; nothing without the default plan or without any other."""
    names = selection.algorithms
    if DEFAULT not in names:
        return []
    others = [a for a, name in enumerate(names) if name != DEFAULT]
    own = selection.loss[:, names.index(DEFAULT), None]
    difference = selection.loss[:, others] - own
    return differences([names[a] for a in others], selection.epsilons, difference)


def differences(
    algorithms: Sequence[str], epsilons: Sequence[float], difference: Numbers
) -> Records:
    """Return the loss of others less that of the default plan, and how often it is ahead.

    ``difference`` (data sets, algorithms, levels) are means over seeds, so the spread over data
    sets includes the variation of seeds. The share of data sets on which the default is ahead
    counts ties as half and has Wilson's interval.
    """
    mean, error, n = (each.T for each in over_sets(difference))
    z = NORMAL**2 / np.maximum(n, 1)
    ahead = ((difference > 0) + 0.5 * (difference == 0)).sum(axis=0).T
    share = ahead / np.maximum(n, 1)
    middle, half = share + z / 2, np.sqrt(share * (1 - share) * z + z**2 / 4)
    columns = {
        "epsilon": np.asarray(epsilons)[:, None],
        "algorithm": np.asarray(algorithms),
        "datasets": n,
        "mean_difference": mean,
        "low": mean - NORMAL * error,
        "high": mean + NORMAL * error,
        "default_ahead_percent": 100 * share,
        "ahead_low": 100 * (middle - half) / (1 + z),
        "ahead_high": 100 * (middle + half) / (1 + z),
    }
    return records(n > 0, columns)


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
    columns = {
        "epsilon": np.asarray(selection.epsilons)[:, None, None],
        "delta": np.asarray(selection.deltas)[:, None, None],
        "row_algorithm": np.asarray(names)[:, None],
        "column_algorithm": np.asarray(names),
        "datasets": datasets,
        "wins": wins,
        "ties": ties,
        "losses": losses,
        "win_rate_percent": np.round(100 * (wins + ties / 2) / np.maximum(datasets, 1), 6),
    }
    return records(datasets > 0, columns)


def with_short_names(rates: Iterable[JsonMapping]) -> Records:
    """Return the lines of ``win_rates.csv``: names of the paper's table, others in lower case."""
    columns = ("row_algorithm", "column_algorithm")
    return [
        {**each, **{name: SHORT.get(each[name], each[name].lower()) for name in columns}}
        for each in rates
    ]


def rates_of(rates: Iterable[JsonMapping], epsilon: float) -> dict[str, list[float]]:
    """Return the win rates of each algorithm against the others at one level."""
    found: dict[str, list[float]] = {}
    for each in rates:
        if each["epsilon"] == epsilon:
            row = found.setdefault(each["row_algorithm"], [])
            if each["row_algorithm"] != each["column_algorithm"]:
                row.append(each["win_rate_percent"])
    return found


def first(rates: Iterable[JsonMapping], epsilon: float) -> str | None:
    """Return the algorithm that wins more than half against each other one, if there is one."""
    found = rates_of(rates, epsilon)
    winners = (name for name, won in found.items() if all(each > 50 for each in won))
    return next(winners, None) if len(found) > 1 else None
