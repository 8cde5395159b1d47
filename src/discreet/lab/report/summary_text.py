"""Text of a report: best algorithms, missing runs, limits of the results."""

from __future__ import annotations

import numpy as np

from discreet.lab.report.algorithm_comparison import MeanLosses, WinRates, without_contexts
from discreet.lab.report.campaign_results import DATA, POOLED, REFERENCE, CampaignResults, listed
from discreet.lab.report.selection import Selection
from discreet.lab.report.tables import number
from discreet.text import epsilon_text
from discreet.types import JsonMapping

SHOWN = 6
"""Number of names that are listed; the others are counted."""


def summary(
    selection: Selection, rates: WinRates, means: MeanLosses, about: JsonMapping
) -> list[str]:
    """Return the first algorithm, then a line for each ε; one data set has no win rates."""
    several = len(selection.datasets) > 1
    each = [
        f"{level.text}: {_losses(selection, means, i)}{_wins(rates, i) if several else ''}."
        for i, level in enumerate(selection.levels)
    ]
    return [*(_headline(rates) if several else ()), *each, *_plain(selection, about)]


def _plain(selection: Selection, about: JsonMapping) -> list[str]:
    """Return the losses of policies without contexts."""
    known = {
        name: float(losses.mean())
        for name, losses in without_contexts(about, selection.datasets).items()
        if np.isfinite(losses).all()
    }
    if not known:
        return []
    words = " and ".join(f"{name} {loss:.3f}" for name, loss in known.items())
    sets = counted(len(selection.datasets), "data set")
    return [f"For comparison, without contexts: {words}, over {sets}."]


def _headline(rates: WinRates) -> list[str]:
    first = {rates.first(i) for i in range(len(rates.levels))}
    if len(first) > 1 or None in first:
        return []
    others = counted(len(rates.algorithms) - 1, "other bandit algorithm")
    return [f"{first.pop()} is first at every ε: it wins more than half against each of {others}."]


def _losses(selection: Selection, means: MeanLosses, i: int) -> str:
    best = int(means.best[i])
    if best < 0:
        return "no data set has every algorithm, so mean losses cannot be compared"
    text = f"least mean loss {selection.algorithms[best]}, {means.mean[best, i]:.3f}"
    others = {
        name: float(means.mean[a, i])
        for a, name in enumerate(selection.algorithms)
        if a != best and np.isfinite(means.mean[a, i])
    }
    reference = others.pop(REFERENCE, None)
    if others:
        second = min(others, key=others.__getitem__)
        text += f", then {second}, {others[second]:.3f}"
    if reference is not None:
        text += f" ({REFERENCE}, which sees every loss: {reference:.3f})"
    if len(selection.datasets) == 1:
        error = float(means.standard_error[best, i])
        spread = f" (± {error:.3f} for the first)" if np.isfinite(error) else ""
        return f"{text}, over {counted(int(selection.reporting.sum()), 'seed')}{spread}"
    return f"{text}, over {counted(int(means.datasets[i]), 'data set')}"


def _wins(rates: WinRates, i: int) -> str:
    average = rates.against_the_rest()[i]
    if len(rates.algorithms) < 2 or not np.isfinite(average).any():
        return ""
    first = rates.first(i)
    if first is None:
        leader = int(np.nanargmax(average))
        return (
            "; none wins more than half against each of the others, and the highest win rate on "
            f"average is that of {rates.algorithms[leader]}, {average[leader]:.0f} %"
        )
    row = rates.algorithms.index(first)
    against = {
        name: rates.percent[i, row, k] for k, name in enumerate(rates.algorithms) if k != row
    }
    low, high = min(against, key=against.__getitem__), max(against, key=against.__getitem__)
    if len(against) > 1 and against[low] == against[high]:
        return f"; {first} wins {against[low]:.0f} % against each of the others"
    span = f" to {against[high]:.0f} % (against {high})" if len(against) > 1 else ""
    return f"; {first} wins {against[low]:.0f} % (against {low}){span}"


def missing(selection: Selection, source: CampaignResults) -> list[str]:
    """Return sentences about runs of the grid that the folder lacks."""
    text = []
    absent = [name for name in source.algorithms if name not in selection.algorithms]
    if absent:
        text.append(f"No runs of {listed(absent)}.")
    epsilons = {level.epsilon for level in selection.levels}
    without = [epsilon for epsilon in source.epsilons if epsilon not in epsilons]
    if without:
        text.append(f"No runs at ε = {listed(epsilon_text(each) for each in without)}.")
    unplayed = [name for name in source.datasets if name not in selection.datasets]
    if unplayed:
        text.append(f"No runs on {_some(unplayed)}.")
    # Pairs of algorithm and ε that were never run are not gaps of a data set.
    gaps = np.argwhere(~selection.has & selection.has.any(axis=0))
    if len(gaps):
        named = [
            f"{selection.datasets[d]} × {selection.algorithms[a]} at {selection.levels[i].text}"
            for d, a, i in gaps[:SHOWN]
        ]
        more = f" and {len(gaps) - SHOWN} more" if len(gaps) > SHOWN else ""
        text.append(
            f"{len(gaps):,} of {selection.has.size:,} combinations of data set, algorithm and ε "
            f"have no result: {', '.join(named)}{more}."
        )
    return text + _seeds_missing(selection, source) + _left_out(selection) + _failed(source)


def _seeds_missing(selection: Selection, source: CampaignResults) -> list[str]:
    halves = 2 if selection.how == "split" else 1
    have = selection.reporting.sum(axis=1)
    due = source.seeds - source.seeds // 2 if halves == 2 else source.seeds
    few = [name for name, n in zip(selection.datasets, have, strict=True) if n < due]
    if not few:
        return []
    return [f"Fewer seeds than the {source.seeds} of the grid on {_some(few)}."]


def _left_out(selection: Selection) -> list[str]:
    text = []
    if selection.not_finite:
        text.append(
            f"{counted(selection.not_finite, 'run')} ended without a finite loss; their "
            "configurations do not compete."
        )
    if selection.unfinished:
        text.append(
            f"{counted(selection.unfinished, 'configuration')} lack a seed that others have; "
            "they do not compete."
        )
    if selection.idle_seeds:
        text.append(
            f"{counted(selection.idle_seeds, 'seed')} of a data set are left out, because only "
            "some configurations have them yet."
        )
    return text


def _failed(source: CampaignResults) -> list[str]:
    failed = [task for task in source.tasks if task.error]
    text = [
        f"{task.dataset} could not be read: {task.error}"
        if task.family == DATA
        else f"{task.dataset}, {task.family or task.name}, failed: {task.error}"
        for task in failed[:SHOWN]
    ]
    if len(failed) > SHOWN:
        text.append(f"{len(failed) - SHOWN} more tasks failed; campaign status names them.")
    return text


def _whose(source: CampaignResults) -> list[str]:
    often = source.participation
    if often is None:
        return []
    return [
        f"ε is for one user, who contributes {often.text}. Slots beyond that are played, count in "
        "the loss, and are not learned from."
    ]


def caveats(selection: Selection, source: CampaignResults) -> list[str]:
    """Return the limits that a reader must know before quoting a number."""
    mechanism = {
        "paper": "The mechanisms are the paper's: Gaussian noise on the whole Gram matrix, "
        "objective perturbation for the logistic oracle.",
        "structured": "The mechanisms are discreet's own: no noise where the Gram matrix is "
        "publicly zero, and tighter constants. They are not the paper's.",
    }.get(selection.mechanism, f"The mechanisms are of the kind {selection.mechanism}.")
    if selection.mechanism == "paper" and POOLED in selection.oracles:
        mechanism += " Only the default plan adds discreet's own noise."
    if POOLED in selection.oracles and len(selection.oracles) > 1:
        mechanism += " Its batches grow by half from 16 records; those of the others double from 1."
    sets = len(selection.datasets)
    text = [
        selection.statement,
        "ε is a noise scale here. Runs are seeded so that they can be paired and repeated; anyone "
        "with the seed can remove the noise, and nothing on this page is a private release.",
        "Choosing settings by their loss is itself a look at the data. Its privacy cost is not "
        "part of ε, neither here nor in the paper.",
        mechanism,
        *_whose(source),
        f"A win rate over {counted(sets, 'data set')} has a standard error of up to "
        f"{50 / max(1, sets) ** 0.5:.0f} points; data sets are a sample, not all there are."
        if sets > 1
        else "Standard errors are over seeds: they do not say how another data set would differ.",
        f"{REFERENCE} sees the loss of every action and is a reference, not a competitor.",
        "Algorithms share permutations, action draws and noise within a seed, so their "
        "differences are less noisy than the bands of the curves suggest.",
    ]
    if selection.how == "split":
        text.insert(1, _optimism(selection))
    if source.not_private:
        text.insert(1, f"NonPrivate: {source.not_private}.")
    if "shuttle2000" in selection.datasets:
        text.append(
            "shuttle2000 is a stratified rebuild of OpenML 44743, not the file the paper used."
        )
    return text


def _optimism(selection: Selection) -> str:
    """Return the optimism of selecting and reporting on the same seeds."""
    more = np.nanmean((selection.loss - selection.selecting_loss)[selection.has])
    return (
        "On the reporting half, the selected configurations have a mean loss that is "
        f"{number(float(more), '+.4f')} away from that on the half that chose them: so much is "
        "the luck of being chosen."
    )


def counted(n: int, noun: str) -> str:
    """Return ``1 run``, ``2 runs``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _some(names: list[str]) -> str:
    """Return a few names, and the number of the others."""
    if len(names) <= SHOWN:
        return listed(names)
    return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"
