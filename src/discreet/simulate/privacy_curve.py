"""Privacy curve: loss of a plan at several ε on a public or simulated set.

It is for choosing ε before the first person comes. The set is read freely, so it must hold no
private data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from discreet.batches.observations import evaluation_data
from discreet.errors import InvalidInput
from discreet.features.frames import library_of, new_frame
from discreet.features.unit_ball import UnitBall
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget
from discreet.simulate import engine
from discreet.simulate.evaluation import refuse_groups_of_offers
from discreet.simulate.group_losses import (
    GroupLoss,
    GroupLosses,
    Groups,
    PlayedGroups,
    file_groups,
    lines_over_seeds,
    over_seeds,
)
from discreet.simulate.labelled_data import (
    advise_on_contexts,
    context_free_losses,
    given_losses,
    truth_of,
)
from discreet.simulate.played_batches import shuffle
from discreet.simulate.played_offers import context_free_offer_losses, played_offers
from discreet.text import epsilon_text, html_table
from discreet.types import Array, Axes, Contexts, Frame, NumpyArray, Values
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
    library: str | None = None
    """Library of the frame that was played: pandas, polars or pyarrow."""
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
        found = None
        for point in reversed(self.table):
            if not point.high < self.best_fixed:
                break
            found = point.epsilon
        return found

    @property
    def verdict(self) -> str:
        """Describe from which ε on the plan beats the best fixed action, and its cost."""
        first, rounds = self.helps_from, f"{self.rounds:,} rounds"
        if first is None:
            reason = "not even ε = ∞" if math.isinf(self.epsilons[-1]) else "not even the largest"
            return (
                f"The set is too small for any ε to help: on {rounds} no interval lies below the "
                f"best fixed action, {reason}. Take more rounds, fewer columns, or better scaled "
                "ones."
            )
        if math.isinf(first) and math.isfinite(self.epsilons[0]):
            return (
                f"The set is too small for any of these ε: on {rounds} only ε = ∞ beats the best "
                "fixed action, so there is something to learn, but not with this noise. Take more "
                "rounds or a larger ε."
            )
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
        return GroupLosses(self.group_lines, self.confidence, self.plan.outcome, self.library)

    def to_frame(self) -> Frame:
        """``table`` as a frame of the library that was played, else of the first installed."""
        columns = map(np.asarray, zip(*self.table, strict=True))
        return new_frame(dict(zip(PrivacyPoint._fields, columns, strict=True)), self.library)

    def plot(self, ax: Axes = None) -> Axes:
        """Draw the curve on matplotlib axes, new ones unless some are given; return them."""
        from discreet.simulate.evaluation_plots import draw_privacy_curve

        return draw_privacy_curve(self, ax)

    def __repr__(self) -> str:
        text = self.plan.outcome.text_of
        rows = [("ε", self.plan.outcome.word, f"{self.confidence:.0%} interval"), *self._cells]
        lines = [f"{first:>5}  {mean:>6}  {interval:>16}" for first, mean, interval in rows]
        lines.append(f"best fixed action {text(self.best_fixed)}, uniform {text(self.uniform)}")
        return "\n".join([*lines, self.verdict])

    def _repr_html_(self) -> str:
        interval, outcome = f"{self.confidence:.0%} interval", self.plan.outcome
        plain = {"best fixed action": self.best_fixed, "uniform": self.uniform}
        rows = [*self._cells, *((name, outcome.text_of(x), "") for name, x in plain.items())]
        return html_table(self.verdict, rows, ("ε", f"mean {outcome.word}", interval))

    @property
    def _cells(self) -> list[tuple[str, str, str]]:
        """ε, mean and interval of each line, in the units of the outcome."""
        value, text = self.plan.outcome.value_of, self.plan.outcome.text_of
        cells = []
        for point in self.table:
            interval = " … ".join(map(text, sorted((point.low, point.high), key=value)))
            cells.append((epsilon_text(point.epsilon), text(point.loss), interval))
        return cells


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

    ``contexts`` and ``labels``, or ``losses`` or ``rewards`` (n, A), are those of ``evaluate``;
    ``contexts`` may also be the name of a set, or a file. The plan is the default one for them, or
    ``plan``, whose budget is set aside. ``horizon`` ends runs earlier: as many rounds as you expect
    people. ``offers`` and a plan with a ``Catalogue`` are as in ``evaluate``. ``groups``, a public
    column as in ``evaluate``, also gives losses ``by_group()``.

    ``users`` are ids of people, one per context, or the name of their column; ε is then for all
    that one person contributes, as ``plan`` bounds it, or by default 1 record in each of 4 batches.

    Args:
        contexts: (n, d) numbers, dicts, a frame, or the name of a set.
        labels: (n,) right actions, or a series or column name.
        losses: (n, A) instead of labels.
        rewards: (n, A) instead of both, in the range that ``plan`` declares.
        offers: Actions that each context is offered.
        groups: A public column for losses by group.
        users: (n,) ids of people.
        plan: Instead of the default plan.
        epsilons: The ε to play; δ is the plan's, or 1e-5.
        seeds: Runs at each ε.
        horizon: Rounds of each run; by default all rows.
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
    reading = None if plan is None else plan.contexts
    given = evaluation_data(reading, contexts, groups, labels=labels, users=users)
    labels, users = given.columns["labels"], given.columns["users"]
    outcomes = {"labels": labels, "losses": losses, "rewards": rewards, "offers": offers}
    losses = given_losses(plan, contexts, len(given.contexts), **outcomes)
    plan = plan or _default(given.contexts, labels, losses, "decision" if users is None else "user")
    features: Array = plan.features.map(given.contexts)
    with_offers = offers is not None or plan.catalogue is not None
    if with_offers:
        refuse_groups_of_offers(groups)
        features, truth = played_offers(plan, features, offers, labels, losses)
    else:
        truth = truth_of(plan, len(features), labels, losses)
    rounds = min(whole("horizon", horizon or plan.horizon or len(features), 1), len(features))
    levels = sorted({float(Budget(epsilon).epsilon) for epsilon in epsilons})
    if not levels:
        raise InvalidInput("epsilons must name at least one ε; got none. Leave it out for six.")
    advise_on_contexts(plan.contexts, given.contexts, given.context_names)
    delta = plan.budget.delta or DELTA
    plans = [replace(plan, budget=_budget(epsilon, delta)) for epsilon in levels]
    found = None
    if groups is not None:
        found = Groups.of(given.columns["groups"], len(features), rounds)
    lost, _ = engine.summed_losses(
        *(plans, features, truth, list(range(seeds))),
        rounds=rounds,
        groups=None if found is None else found.places,
        users=users,
    )
    orders = [shuffle(seed, len(features))[0][:rounds] for seed in range(seeds)]
    if with_offers:
        plain = [context_free_offer_losses(features.part(order), truth[order]) for order in orders]
    else:
        plain = [context_free_losses(truth[order], plan.n_actions) for order in orders]
    lines: tuple[GroupLoss, ...] = ()
    if found is not None:
        by_seed = [PlayedGroups.of(found, order, truth, plan.n_actions) for order in orders]
        lines = lines_over_seeds(by_seed, lost[:, :, -1], levels, confidence)
    best_fixed, uniform = map(float, np.mean(plain, axis=0))
    return PrivacyCurve(
        epsilons=tuple(levels),
        losses=lost[:, :, -1].sum(axis=-1) / rounds,
        best_fixed=best_fixed,
        uniform=uniform,
        rounds=rounds,
        plan=plans[-1],
        confidence=confidence,
        library=library_of(contexts),
        group_lines=lines,
    )


def _default(contexts: Contexts, labels: Values, losses: Values, unit: str) -> Plan:
    """Return the default plan of a problem."""
    table = np.asarray(contexts)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise InvalidInput(
            "contexts must be a table of numbers unless a plan is given; got something else. Add "
            "plan=Plan(..., features=Schema([...])) to say what the columns mean."
        )
    if losses is not None:
        n_actions = np.shape(losses)[-1] if np.ndim(losses) == 2 else 2
    else:
        n_actions = _classes(labels)
    features = UnitBall(table.shape[1])
    return Plan(n_actions=n_actions, features=features, budget=Budget.none(), unit=unit)


def _classes(labels: Values) -> int:
    """Return the largest whole number plus one, or the number of words."""
    array = np.asarray(labels)
    if array.dtype.kind in "iuf" and array.size and np.isfinite(array).all():
        return max(2, int(array.max()) + 1)
    return max(2, len({str(each) for each in array.ravel()}))


def _budget(epsilon: float, delta: float) -> Budget:
    return Budget(epsilon, delta) if math.isfinite(epsilon) else Budget.none()
