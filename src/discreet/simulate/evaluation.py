"""Evaluation of a plan on a labelled set: loss 0 for the right label, else 1, or given losses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.batch import Batch
from discreet.batches.release_batch import release_batch
from discreet.batches.users import numbered, slots_that_count, user_ids
from discreet.design.outcome import Outcome
from discreet.errors import InvalidInput
from discreet.features.frames import new_frame
from discreet.plan.noise_forecast import warn_if_too_noisy
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise import Noise, SeededNoise
from discreet.releases.canonical import digest_of
from discreet.releases.lift import Lift, lift_of, next_sizes
from discreet.releases.plots import COLOUR, axes_for, finish, level
from discreet.releases.release import Release, publishable
from discreet.releases.released import Released
from discreet.simulate.group_losses import GroupLosses, Groups, PlayedGroups
from discreet.simulate.labelled_data import LabelledSet
from discreet.simulate.played_batches import play, played_control, shuffle
from discreet.text import html_table
from discreet.types import Axes, Contexts, Frame, NumpyArray, Values
from discreet.validate import in_range, instance

MOST_POINTS = 2_000
"""Most points of a curve that a screen can show."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Result of one run: losses round by round, releases and ledger.

    ``losses`` and ``actions`` (T,) are those of the rounds, in the order of play. ``best_fixed`` is
    the mean loss of the best action that ignores the context, and ``uniform`` that of actions drawn
    at random, both on the rounds that were played: a policy that learns stays below both.
    ``ledger`` has the guarantee, and ``released`` the releases, of a plan whose horizon is the
    number of rounds: they can be saved, explained (``explain_decision``), and used as a prior if
    their noise was ``SecureNoise()``.

    >>> from discreet import Budget, UnitBall
    >>> x = np.random.default_rng(0).uniform(-0.7, 0.7, size=(200, 2))
    >>> plan = Plan(n_actions=2, features=UnitBall(2), budget=Budget.none())
    >>> run = evaluate(plan, x, (x[:, 0] > 0).astype(int))
    >>> run.losses.shape, run.loss < run.uniform
    ((200,), True)
    """

    losses: NumpyArray
    played: Released
    """Releases as they were played, not rounded and without digests."""
    plan: Plan
    ledger: Ledger
    actions: NumpyArray
    best_fixed: float
    uniform: float
    groups: PlayedGroups | None = None
    """Groups of the rounds for ``by_group``, if ``evaluate`` got groups."""
    lift: Lift | None = None
    """Policy compared with control by the releases, if the plan has a control share."""

    @cached_property
    def released(self) -> Released:
        """Releases as documents of the plan, rounded and linked by digests."""
        config = {**self.plan.to_config(), "horizon": self.played.schedule.horizon}
        made, items = digest_of(config), list[Release]()
        for item in self.played.items:
            previous = items[-1].digest if items else made
            items.append(publishable(replace(item, plan_digest=made, previous=previous)))
        return replace(self.played, items=tuple(items), plan=config)

    @cached_property
    def curve(self) -> NumpyArray:
        """Progressive-validation loss L(t) = (1/t) Σ_{s≤t} ℓ_s, for t = 1 … T."""
        rounds = np.arange(1, self.losses.shape[-1] + 1)
        return np.asarray(np.cumsum(self.losses, axis=-1) / rounds)

    @property
    def outcome(self) -> Outcome:
        """Units in which people would report; ``losses`` are in [0, 1] for all outcomes."""
        return self.plan.outcome

    @property
    def loss(self) -> float:
        """Mean loss over the run: the last value of the curve."""
        return float(self.losses.mean())

    @cached_property
    def table(self) -> dict[str, NumpyArray]:
        """Rounds, mean so far, best fixed action and uniform, at the end of each batch.

        The means have the units of the plan's outcome, and its name: loss or reward.
        """
        ends = np.cumsum(self.played.schedule.lengths())
        value, same = self.outcome.value_of, np.ones(len(ends))
        return {
            "rounds": ends,
            f"{self.outcome.word}_so_far": value(self.curve[ends - 1]),
            "best_fixed": value(self.best_fixed * same),
            "uniform": value(self.uniform * same),
        }

    def to_frame(self) -> Frame:
        """Return ``table`` as a frame of the first library of frames that is installed."""
        return new_frame(self.table)

    def by_group(self, confidence: float = 0.95) -> GroupLosses:
        """Return each group's rounds, mean loss with an interval, best fixed action and uniform.

        Intervals are over the rounds of this run: another run has other noise, and
        ``privacy_curve(…, groups=…)`` has intervals over seeds.
        """
        in_range("confidence", confidence, 0.0, 1.0, open_high=True)
        if self.groups is None:
            raise InvalidInput(
                "groups must be given to evaluate for losses by group; got none. "
                "Call evaluate(…, groups=…) with a public column."
            )
        lines = self.groups.lines(self.losses, self.plan.budget.epsilon, confidence)
        return GroupLosses(lines, confidence, self.outcome)

    def plot(self, ax: Axes = None) -> Axes:
        """Draw the mean so far on matplotlib axes, new ones unless some are given; return them."""
        ax, outcome, budget = axes_for(ax), self.outcome, self.plan.budget
        first, last = int(self.table["rounds"][0]), len(self.losses)
        shown = np.unique(np.geomspace(first, last, MOST_POINTS).astype(int))
        means = outcome.value_of(self.curve[shown - 1])
        label = f"the plan, {outcome.text_of(self.loss)}"
        ax.plot(shown, means, color=COLOUR, lw=2.2, label=label)
        plain = {
            "uniform actions": (self.uniform, ":"),
            "best fixed action": (self.best_fixed, "--"),
        }
        for name, (loss, dash) in plain.items():
            level(ax, outcome.value_of(loss), f"{name}, {outcome.text_of(loss)}", dash)
        ends = self.table["rounds"][:-1]
        heights = outcome.value_of(self.curve[ends - 1])
        ax.plot(ends, heights, ls="", marker="|", ms=9, color=COLOUR, label="releases")
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.xaxis.set_minor_formatter("")
        ax.set_xlim(first, last)
        ax.set_xlabel(f"rounds ({f'noise of {budget.text}' if budget.private else 'no noise'})")
        ax.set_ylabel(f"mean {outcome.word} so far, in {outcome.range}")
        return finish(ax)

    def __repr__(self) -> str:
        return f"Evaluation({'; '.join(f'{name} {value}' for name, value in self._facts)})"

    def _repr_html_(self) -> str:
        return html_table("Evaluation", self._facts)

    @property
    def _facts(self) -> list[tuple[str, str]]:
        text, budget = self.outcome.text_of, self.plan.budget
        return [
            (f"mean {self.outcome.word}", text(self.loss)),
            ("best fixed action", text(self.best_fixed)),
            ("uniform", text(self.uniform)),
            ("rounds", f"{len(self.losses):,}"),
            ("releases", f"{len(self.played.items)}"),
            ("noise", f"of {budget.text}" if budget.private else "none"),
            *([] if self.lift is None else [("lift", self.lift.text)]),
        ]


def evaluate(
    plan: Plan,
    contexts: Contexts,
    labels: Values = None,
    *,
    losses: Values = None,
    rewards: Values = None,
    offers: Values = None,
    groups: Values = None,
    seed: int = 0,
    noise: Noise | None = None,
    users: Values = None,
) -> Evaluation:
    """Play a labelled set once, in an order that the seed shuffles, until the plan's horizon.

    All that is played must be public: losses of a group reveal something about each member. The
    seed gives permutation, action draws and noise, so runs of different plans are paired and
    repeatable; seeded noise has the scale of the budget but protects no one, and the ledger has
    ``NonPrivate``. Pass ``noise=SecureNoise()`` for private releases.

    Args:
        plan: The plan; its budget sets the noise.
        contexts: (n, d) numbers, a list of dicts, or a frame.
        labels: (n,) right actions, which have loss 0 and all others 1: numbers 0 … A−1, words, a
            series or the name of a column; ids of actions with offers.
        losses: (n, A) in [0, 1] instead of labels, or a frame with a column for each action; with
            bandit feedback the learner observes only that of the chosen action.
        rewards: (n, A) instead of both, in the units of a plan with ``outcome=Reward(low, high)``.
        offers: Actions that each context is offered, a list of ids each, or one list for all; all
            by default. ``losses`` or ``rewards`` are then a list for each offer, in its order, and
            ``best_fixed`` is the loss of the offered item that is best on average.
        groups: One value per context, or the name of a column, for ``by_group()``. The plan does
            not see it, unless its schema has that column too.
        seed: Fixes order, draws and noise.
        noise: Another source of noise than the seed.
        users: (n,) ids of people, where the plan has the unit "user": slots beyond what a person
            may contribute are played and not learned from, as in a ``Learner``.

    Returns:
        An ``Evaluation``, whose ``loss`` is the mean over the rounds.

    Raises:
        InvalidInput: Shapes, labels or names do not fit the plan.

    >>> from discreet import Budget, UnitBall, Ridge, SquareCB
    >>> x = np.random.default_rng(0).uniform(-0.7, 0.7, size=(500, 2))
    >>> plan = Plan(n_actions=2, features=UnitBall(2), budget=Budget.none(),
    ...             policy=SquareCB(scale=16.0), oracle=Ridge())
    >>> evaluate(plan, x, (x[:, 0] > 0).astype(int), seed=0).loss < 0.25
    True
    """
    instance("plan", plan, (Plan,), "Make a Plan; that of a learner is learner.plan.")
    refuse_imported(plan)
    options = {"losses": losses, "rewards": rewards, "offers": offers}
    given = LabelledSet.read(plan, contexts, labels, **options, groups=groups, users=users)
    truth, total = given.truth, len(given)
    warn_if_too_noisy(plan, float(np.nanstd(truth)) if truth.ndim == 2 else None)
    rounds = min(total, plan.horizon or total)
    order, u = (drawn[:rounds] for drawn in shuffle(seed, total))
    by_group = None
    if groups is not None:
        found = Groups.of(given.groups, total, rounds)
        by_group = PlayedGroups.of(found, order, truth, plan.n_actions)
    noise = noise or SeededNoise(seed)
    schedule, often = replace(plan.schedule, horizon=rounds), plan.participation
    owners = user_ids("users", given.users, total, needed=bool(often), single=False)
    counts = control = None
    if owners is not None and often is not None:
        counts = slots_that_count(numbered(owners)[order], schedule.lengths(), often)
    if plan.control is not None:
        people = owners and [owners[row] for row in order]
        control = played_control(plan.control, plan.schedule, rounds, people)
    ledger = plan.empty_ledger(plan.budget if noise.exact else Budget.none())
    prior = None if plan.prior is None else plan.prior.statistics
    released = Released(plan.n_actions, schedule, prior=prior)

    def release(batch: Batch, released: Released) -> Release:
        nonlocal ledger
        made, ledger = release_batch(plan, noise, batch, released, ledger)
        return made

    batches = list(play(plan, released, *given.in_order(order), u, release, counts, control))
    for made in (batch.release for batch in batches if batch.release is not None):
        released = released.add(made)
    best_fixed, uniform = given.context_free(order)
    lift = None
    if plan.control is not None and released.items:
        parts = plan.control.share, often, plan.outcome
        lift = lift_of(released.items, *parts, coming=next_sizes(plan.schedule, released))
    return Evaluation(
        losses=np.concatenate([batch.incurred for batch in batches]).astype(float),
        played=released,
        plan=plan,
        ledger=ledger,
        actions=np.concatenate([batch.chosen for batch in batches]),
        best_fixed=best_fixed,
        uniform=uniform,
        groups=by_group,
        lift=lift,
    )


def refuse_imported(plan: Plan) -> None:
    """Refuse a plan with an imported log: a set has none."""
    if plan.imported is not None:
        raise InvalidInput(
            f"plan must have no imported log to be evaluated; got imported={plan.imported}. "
            "Leave it out, or play the plan with a Learner, which imports."
        )
