"""Privacy curve: loss of a plan at several ε on a public or simulated set.

It is for choosing ε before the first person comes. The set is read freely, so it must hold no
private data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.frames import new_frame
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget
from discreet.releases.plots import COLOUR, INK, axes_for, finish, level
from discreet.simulate import engine
from discreet.simulate.group_losses import (
    GroupLoss,
    GroupLosses,
    Groups,
    PlayedGroups,
    file_groups,
    lines_over_seeds,
    over_seeds,
)
from discreet.simulate.labelled_data import LabelledSet
from discreet.simulate.played_batches import shuffle
from discreet.text import epsilon_text
from discreet.types import Axes, Contexts, Frame, NumpyArray, Values
from discreet.validate import in_range, whole

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, math.inf)
DELTA = 1e-5


class PrivacyPoint(NamedTuple):
    """One ε: mean loss over seeds, its standard error and its interval."""

    epsilon: float
    loss: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class PrivacyCurve:
    """Loss against ε. ``losses`` (epsilons, seeds) are mean losses of whole runs.

    ``best_fixed`` and ``uniform`` need no contexts: the mean losses of the best single action and
    of random actions on the same rounds. Intervals cover the order of rows, the
    draws and the noise; they do not cover another set.

    They have the given ``confidence``. Numbers are losses in [0, 1]; what is printed and drawn has
    the units of the plan's outcome.

    >>> curve = privacy_curve("linear", epsilons=[8], seeds=2, horizon=500)
    >>> curve.losses.shape, curve.table[0].epsilon
    ((1, 2), 8.0)
    """

    epsilons: tuple[float, ...]
    losses: NumpyArray = field(repr=False)
    best_fixed: float
    uniform: float
    rounds: int
    plan: Plan = field(repr=False)
    """The plan that was played, at the largest ε."""
    confidence: float = 0.95
    group_lines: tuple[GroupLoss, ...] = field(default=(), repr=False)
    """One per group and ε, where groups were given."""

    @property
    def seeds(self) -> int:
        return int(self.losses.shape[1])

    @cached_property
    def table(self) -> tuple[PrivacyPoint, ...]:
        """One line per ε, the smallest first; Student's t over seeds gives the intervals."""
        return tuple(
            PrivacyPoint(epsilon, *over_seeds(losses, self.confidence))
            for epsilon, losses in zip(self.epsilons, self.losses, strict=True)
        )

    @property
    def helps_from(self) -> float | None:
        """The least ε from which on every interval lies below the best fixed action, or None."""
        helpful = list(takewhile(lambda point: point.high < self.best_fixed, self.table[::-1]))
        return helpful[-1].epsilon if helpful else None

    @property
    def verdict(self) -> str:
        """Describe from which ε on the plan beats the best fixed action, and its cost."""
        first, rounds = self.helps_from, f"{self.rounds:,} rounds"
        too_small = "The set is too small for any of these ε to help: on"
        step = "Take more rounds, a larger ε, or fewer or better scaled columns."
        if first is None:
            return f"{too_small} {rounds} no interval lies below the best fixed action. {step}"
        if math.isinf(first) and math.isfinite(self.epsilons[0]):
            reason = "only ε = ∞ beats the best fixed action, so there is something to learn"
            return f"{too_small} {rounds} {reason}. {step}"
        least = f"ε = {epsilon_text(first)}"
        text = f"From {least} on, the plan beats the best fixed action on {rounds}"
        if math.isinf(self.epsilons[-1]) and math.isfinite(first):
            losses, outcome = {each.epsilon: each.loss for each in self.table}, self.plan.outcome
            change = outcome.difference_of(losses[first] - losses[math.inf])
            compared = f"{abs(change):.2g} {'more' if change > 0 else 'less'} {outcome.word}"
            text += f"; {least} has {compared} than no privacy"
        return f"{text}."

    def by_group(self) -> GroupLosses:
        """Return each group's loss at each ε, with intervals over seeds."""
        if not self.group_lines:
            raise InvalidInput(
                "groups must be given to privacy_curve for losses by group; got none. "
                "Call privacy_curve(…, groups=…) with a public column."
            )
        return GroupLosses(self.group_lines, self.confidence, self.plan.outcome)

    def to_frame(self) -> Frame:
        """Return ``table`` as a frame of the first library of frames that is installed."""
        columns = map(np.asarray, zip(*self.table, strict=True))
        return new_frame(dict(zip(PrivacyPoint._fields, columns, strict=True)))

    def plot(self, ax: Axes = None, ink: str = INK) -> Axes:
        """Draw the curve on matplotlib axes, new ones unless some are given; return them."""
        ax, points, outcome = axes_for(ax), self.table, self.plan.outcome
        places = np.arange(len(points), dtype=float)
        means = outcome.value_of(np.asarray([point.loss for point in points]))
        ends = outcome.value_of(np.asarray([(point.low, point.high) for point in points]))
        low, high = ends.min(axis=-1), ends.max(axis=-1)
        private = np.asarray([math.isfinite(point.epsilon) for point in points])
        ax.fill_between(
            places[private], low[private], high[private], color=COLOUR, alpha=0.15, lw=0
        )
        ax.plot(places[private], means[private], color=COLOUR, lw=2.2)
        ax.errorbar(
            *(places, means, [means - low, high - means]),
            label=f"the plan, {self.confidence:.0%} interval over {self.seeds} seeds",
            **{"fmt": "o", "ms": 5.5, "color": COLOUR, "elinewidth": 1.4, "capsize": 3},
        )
        levels = [
            ("uniform actions", self.uniform, ":", ink),
            ("best fixed action", self.best_fixed, "--", ink),
        ]
        if not private[-1]:
            levels.append(("no privacy", points[-1].loss, "-", COLOUR))
        for name, loss, dash, colour in levels:
            level(ax, outcome.value_of(loss), f"{name}, {outcome.text_of(loss)}", dash, colour)
        ax.set_xlim(-0.35, places[-1] + 0.35)
        ax.set_xticks(places, [epsilon_text(point.epsilon) for point in points])
        ax.set_xlabel("ε (more privacy to the left)")
        ax.set_ylabel(f"mean {outcome.word} over {self.rounds:,} rounds")
        return finish(ax, ink)

    def __repr__(self) -> str:
        value, text = self.plan.outcome.value_of, self.plan.outcome.text_of
        rows = [("ε", self.plan.outcome.word, f"{self.confidence:.0%} interval")]
        for point in self.table:
            low, high = sorted((point.low, point.high), key=value)
            rows.append(
                (epsilon_text(point.epsilon), text(point.loss), f"{text(low)} … {text(high)}")
            )
        lines = [f"{first:>5}  {mean:>6}  {interval:>16}" for first, mean, interval in rows]
        lines.append(f"best fixed action {text(self.best_fixed)}, uniform {text(self.uniform)}")
        return "\n".join([*lines, self.verdict])


def privacy_curve(
    contexts: Contexts,
    labels: Values = None,
    *,
    losses: Values = None,
    rewards: Values = None,
    offers: Values = None,
    groups: Values = None,
    users: Values = None,
    plan: Plan | None = None,
    epsilons: Sequence[float] = EPSILONS,
    seeds: int = 10,
    horizon: int | None = None,
    confidence: float = 0.95,
) -> PrivacyCurve:
    """Play a *public* set at several ε, all seeds at once.

    The data are those of ``evaluate``; a set or a file may also be given by its name.

    Args:
        contexts: (n, d) numbers, dicts, a frame, or the name of a set, or a file.
        labels: (n,) right actions, or a series or column name.
        losses: (n, A) instead of labels.
        rewards: (n, A) instead of both, in the range that ``plan`` declares.
        offers: Actions that each context is offered.
        groups: A public column for losses ``by_group()``.
        users: (n,) ids of people, or the name of their column; ε is then for all that one person
            contributes, as ``plan`` bounds it, or by default 1 record in each of 4 batches.
        plan: Instead of the default plan; its budget is set aside.
        epsilons: The ε to play; δ is the plan's, or 1e-5.
        seeds: Runs at each ε.
        horizon: Rounds of each run, as many as you expect people; by default all rows.
        confidence: Confidence of the intervals over seeds.

    Returns:
        A ``PrivacyCurve``: ``table``, ``verdict``, ``plot()``, ``to_frame()``.

    Raises:
        InvalidInput: Data that do not fit, or no ε.

    >>> curve = privacy_curve("linear", epsilons=[1, math.inf], seeds=3, horizon=2000)
    >>> curve.epsilons, curve.rounds
    ((1.0, inf), 2000)
    """
    in_range("confidence", confidence, 0.0, 1.0, open_high=True)
    whole("seeds", seeds, 2, "Take at least 2: intervals are over seeds.")
    if isinstance(contexts, Plan):
        raise InvalidInput(
            "contexts must come first; got a Plan. Call privacy_curve(contexts, labels, plan=plan)."
        )
    if isinstance(contexts, (str, Path)):
        from discreet.data import load

        data = load(contexts, user=users if isinstance(users, str) else None)
        users = data.users if isinstance(users, str) else users
        contexts, labels = data.contexts, data.labels
        groups = file_groups(data, groups) if isinstance(groups, str) else groups
    options = {"losses": losses, "rewards": rewards, "offers": offers}
    given = LabelledSet.read(plan, contexts, labels, **options, groups=groups, users=users)
    plan, rows = given.plan, len(given)
    rounds = min(whole("horizon", horizon or plan.horizon or rows, 1), rows)
    levels = sorted({float(Budget(epsilon).epsilon) for epsilon in epsilons})
    if not levels:
        raise InvalidInput("epsilons must name at least one ε; got none. Leave it out for six.")
    delta = plan.budget.delta or DELTA
    budgets = [Budget(each, delta) if math.isfinite(each) else Budget.none() for each in levels]
    plans = [replace(plan, budget=budget) for budget in budgets]
    found = None if groups is None else Groups.of(given.groups, rows, rounds)
    lost, _ = engine.summed_losses(
        *(plans, given.features, given.truth, list(range(seeds))),
        rounds=rounds,
        groups=None if found is None else found.numbers,
        users=given.users,
    )
    orders = [shuffle(seed, rows)[0][:rounds] for seed in range(seeds)]
    lines: tuple[GroupLoss, ...] = ()
    if found is not None:
        by_seed = [PlayedGroups.of(found, order, given.truth, plan.n_actions) for order in orders]
        lines = lines_over_seeds(by_seed, lost[:, :, -1], levels, confidence)
    best_fixed, uniform = map(float, np.mean([given.context_free(each) for each in orders], axis=0))
    return PrivacyCurve(
        epsilons=tuple(levels),
        losses=lost[:, :, -1].sum(axis=-1) / rounds,
        best_fixed=best_fixed,
        uniform=uniform,
        rounds=rounds,
        plan=plans[-1],
        confidence=confidence,
        group_lines=lines,
    )
