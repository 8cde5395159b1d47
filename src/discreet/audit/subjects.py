"""Subjects of the audit: every oracle and mechanism that ships, with each kind of feedback."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet.audit.finding import Published
from discreet.batch import Batch
from discreet.features.joint import Joint
from discreet.features.unit_ball import UnitBall
from discreet.oracles import FiniteClass, Logistic, Oracle, PooledRidge, Problem, Ridge
from discreet.oracles.mechanisms.geometry import publishable
from discreet.plan.plan import Plan
from discreet.policies import LinUCB, Policy, SquareCB
from discreet.privacy.budget import Budget
from discreet.privacy.noise import Noise
from discreet.releases.catalogue import Catalogue
from discreet.releases.statistics import Statistics
from discreet.types import Array, NumpyArray

DELTA = 1e-5
JOINT = "ridge-joint"
"""One block for all actions, whose rows and losses are shortened by the same factor."""
DEFAULT_PLAN = "default-plan"
"""``Plan(n_actions, features, budget)`` with the parts that it chooses."""
SHRUNK = 2.0**-6
"""The constant feature of a context after it was stretched, where there is a past."""
CLEAR = 0.5
"""The signal λ of the release before, where there is a past: bounds of rows lie in between."""
COPIES = 5
"""Copies of f = 1 next to one f = 0: this choice reveals most at 10,000 trials."""


def constants(values: Sequence[float], n_actions: int, p: int) -> NumpyArray:
    """Weights of functions that predict one constant; the bias feature is √½."""
    weights = np.zeros((len(values), n_actions, p))
    weights[..., 0] = np.asarray(values)[:, None] * math.sqrt(2.0)
    return weights


# Two context dimensions let ridge attain its sensitivity; one keeps densities on a plane grid.
_ORACLES: dict[str, tuple[Callable[[int], Oracle], int, float]] = {
    "ridge-structured": (lambda _: Ridge(), 2, DELTA),
    "ridge-paper": (lambda _: Ridge(mechanism="paper"), 2, DELTA),
    "ridge-pooled": (lambda _: PooledRidge(geometry="plain"), 2, DELTA),
    "ridge-stretched": (lambda _: PooledRidge(), 2, DELTA),
    JOINT: (lambda _: PooledRidge(), 2, DELTA),
    "logistic-gamma": (lambda _: Logistic(ridge=1e-4, noise="gamma"), 1, 0.0),
    "logistic-gaussian": (lambda _: Logistic(ridge=1e-4, noise="gaussian"), 1, DELTA),
    "logistic-paper": (lambda _: Logistic(ridge=1e-4, mechanism="paper"), 1, 0.0),
    "finite": (lambda A: FiniteClass(constants([0.0] + [1.0] * COPIES, A, 2)), 1, 0.0),
    DEFAULT_PLAN: (lambda _: PooledRidge(), 2, DELTA),
}
MECHANISMS = tuple(_ORACLES)
FEEDBACKS = (("bandit", "general"), ("full", "general"), ("full", "one_label"))


@dataclass(frozen=True)
class Subject:
    """One mechanism with one kind of feedback, calibrated for ε."""

    mechanism: str
    feedback: str
    losses: str
    epsilon: float
    actions: int = 0
    """Number of actions, for questions that need more than searches can afford; 0: the usual."""

    @property
    def name(self) -> str:
        feedback = {"bandit": "bandit", "full": "full information"}[self.feedback]
        return f"{self.mechanism}, {feedback}{', one label' * (self.losses == 'one_label')}"

    @property
    def ridge(self) -> bool:
        return self.pooled or self.mechanism.startswith("ridge")

    @property
    def pooled(self) -> bool:
        return self.stretched or self.mechanism == "ridge-pooled"

    @property
    def stretched(self) -> bool:
        """Return whether rows are stretched by the matrix of earlier releases, and shortened."""
        return self.mechanism in ("ridge-stretched", JOINT, DEFAULT_PLAN)

    @property
    def with_gram(self) -> bool:
        """Ridge releases its Gram too, as for a policy with radii, where rows are plain."""
        return self.ridge and not self.stretched

    @property
    def dimension(self) -> int:
        return _ORACLES[self.mechanism][1]

    @property
    def n_actions(self) -> int:
        if self.mechanism == JOINT:
            return 1
        return self.actions or (3 if self.ridge and self.feedback == "full" else 2)

    @cached_property
    def budget(self) -> Budget:
        return Budget(self.epsilon, _ORACLES[self.mechanism][2])

    @cached_property
    def calibrated(self) -> Any:
        """The mechanism as it ships."""
        if self.mechanism == DEFAULT_PLAN:
            return self.plan().mechanism
        return self.bare_oracle.calibrate(self.problem, self.budget)

    @cached_property
    def earlier(self) -> tuple[Statistics, ...]:
        """The earlier statistics: none, or a release whose matrix shrinks the constant feature.

        Without the constant, distant contexts have rows with v·v' < 0. A context of
        length one becomes a row of length one, which no bounds shorten.
        """
        if self.mechanism not in ("ridge-stretched", JOINT):
            return ()
        return self.past(publishable(np.diag([SHRUNK] + [_STRETCH] * self.dimension)))

    @property
    def signals(self) -> tuple[float | None, ...]:
        """Values of λ that a release before may have published; None where it publishes none."""
        published = self.stretched and self.feedback == "bandit" and self.mechanism != JOINT
        return (0.0, CLEAR, 1.0) if published else (None,)

    def past(self, following: NumpyArray, clear: float | None = CLEAR) -> tuple[Statistics, ...]:
        """One release with a matrix and a signal, which its own statistics do not give."""
        A, p = self.n_actions, self.dimension + 1
        bandit, variance = self.feedback == "bandit", self.calibrated.gram**2
        gram = np.tile(64.0 * np.eye(p), (A if bandit else 1, 1, 1))
        sums = gram, np.zeros((A, p)), 128, variance, np.eye(p), following
        outcomes = np.array([128.0, 64.0, *[0.0, 64.0 / A] * A]) if bandit else None
        signal = np.array([clear, *[0.5] * A]) if self.signals != (None,) else None
        return (Statistics(*sums, outcomes, signal),)

    def fit(self, batch: Batch, noise: Noise) -> Published:
        """A fit of the mechanism as it ships, after what was public before."""
        return self.calibrated.fit(batch, noise, self.earlier)

    @cached_property
    def calibrated_with_gram(self) -> Any:
        """The mechanism as it is for a policy with radii."""
        problem = replace(self.problem, radii=True)
        return self.bare_oracle.calibrate(problem, Budget(self.epsilon, DELTA))

    @property
    def problem(self) -> Problem:
        kind = self.feedback, self.losses, self.with_gram
        return Problem(self.n_actions, self.dimension + 1, *kind, joint=self.mechanism == JOINT)

    @property
    def policies(self) -> tuple[Policy | None, ...]:
        """A policy without radii and, where the mechanism has a Gram to offer, one with them."""
        if self.mechanism == DEFAULT_PLAN:
            return (None,)  # its own
        if self.mechanism in ("logistic-gamma", "finite", "ridge-stretched", JOINT):
            return (SquareCB(),)
        return SquareCB(), LinUCB()

    def plan(self, policy: Policy | None = None, **rest: Any) -> Plan:
        """A plan around this mechanism; the default plan has the parts that it chooses."""
        parts: dict[str, Any] = {"budget": self.budget}
        if policy is not None:
            parts = {"oracle": self.bare_oracle, "policy": policy}
            parts |= {"feedback": self.feedback, "losses": self.losses}
            delta = DELTA if policy.uses_radii else self.budget.delta
            parts["budget"] = Budget(self.epsilon, delta)
        if self.mechanism == JOINT:
            one = UnitBall(1)
            items = Catalogue(one, {"a": [-1.0], "b": [1.0]})
            parts |= {"actions": items, "features": Joint(one, one, "none")}
        else:
            parts |= {"n_actions": self.n_actions, "features": UnitBall(self.dimension)}
        return Plan(**parts | rest)

    @property
    def bare_oracle(self) -> Any:
        """Its configuration."""
        return _ORACLES[self.mechanism][0](self.n_actions)

    def record(self, context: Array, losses: Array, action: int | None = 0) -> Batch:
        """A batch of one record; ``action`` None is a void slot."""
        observed = np.zeros((1, self.n_actions), dtype=bool)
        if action is not None:
            block = min(action, self.n_actions - 1)
            observed[0, slice(None) if self.feedback == "full" else block] = True
        row = np.broadcast_to(np.asarray(losses, dtype=np.float64), (1, self.n_actions))
        return Batch(UnitBall(self.dimension).map(np.atleast_2d(context)), row, observed)

    def crowd(self, answered: Iterable[bool], seed: int) -> Batch:
        """One record for each flag: a random context, hard losses, an action; or silence."""
        rng, A, made = np.random.default_rng(seed), self.n_actions, []
        for observed in answered:
            losses, action = rng.integers(2, size=A), int(rng.integers(A))
            if self.losses == "one_label":
                losses = np.arange(A) != action
            context = rng.uniform(-0.7, 0.7, size=self.dimension)
            made.append(self.record(context, losses, action if observed else None))
        return joined(*made)

    def worst_pair(self) -> tuple[Batch, Batch]:
        """Neighbours at a distance of one sensitivity, or that an attack distinguishes best.

        Opposite losses attain the bound of rows with v·v' = ω²/8 for each observed loss, one
        label that of different labels at 1/(2A); of stretched rows at −(1 − 1/A)/2, equal labels.
        """
        if not self.ridge:
            if self.feedback == "full" or self.mechanism in ("finite", "logistic-gaussian"):
                return self.record([1.0], 1.0), self.record([1.0], 0.0)
            return self.record([1.0], 1.0, 0), self.record([1.0], 1.0, 1)
        A = self.n_actions
        label = 1.0 - np.eye(A)
        if self.mechanism == "ridge-paper":
            if self.feedback == "bandit":
                return self.record([1.0, 0.0], 1.0, 0), self.record([1.0, 0.0], 1.0, 1)
            rows = label[0] if self.losses == "one_label" else np.ones(A)
            return self.record([1.0, 0.0], rows), self.record([-1.0, 0.0], rows)
        weight = (self.calibrated.gram / self.calibrated.response) ** 2  # ω²
        constant = SHRUNK / _STRETCH if self.earlier else 1.0
        if self.losses == "one_label":
            t, other = (-(1 - 1 / A) / 2, 0) if self.stretched else (weight / (2 * A), 1)
            meeting = _at(t, constant)
            return self.record([1.0, 0.0], label[0]), self.record(meeting, label[other])
        t = weight / 8 if self.feedback == "bandit" else weight * A / 8
        return self.record([1.0, 0.0], 1.0), self.record(_at(t, constant), 0.0)


_STRETCH = math.sqrt(2.0 - SHRUNK**2)
"""Makes up for the half of its squared length that a row loses with the constant."""


def _at(t: float, constant: float) -> list[float]:
    """A unit context whose row meets that of (1, 0) at v·v' = t, or as near as can be.

    Rows are (``constant``, c) with their norm taken away.
    """
    cosine = min(t, 1.0) * (1.0 + constant**2) - constant**2
    return [cosine, math.sqrt(1.0 - cosine**2)]


def subjects(mechanisms: Iterable[str], epsilons: Iterable[float]) -> list[Subject]:
    """All subjects that ship, at each ε.

    One-label rows matter to ridge alone, and a plan with nothing else has bandit feedback.
    """
    listed = []
    for epsilon, mechanism in itertools.product(epsilons, mechanisms):
        kinds = 3 if mechanism.startswith("ridge") else 2
        kinds = 1 if mechanism in (DEFAULT_PLAN, JOINT) else kinds
        listed += [Subject(mechanism, *kind, float(epsilon)) for kind in FEEDBACKS[:kinds]]
    return listed


def joined(*batches: Batch) -> Batch:
    """Several batches of records as one."""
    parts = zip(*((each.features, each.losses, each.observed) for each in batches), strict=True)
    return Batch(*map(np.concatenate, parts))
