"""Gaussian releases, exactly: the largest move by one record, in standard deviations.

The noise of a release is a linear function of standard draws, so the shipped fit with one draw
at a time gives the covariance of what an attacker reads. Without noise it gives the mean.
An optimiser over neighbouring records then looks for the largest distance: both feedbacks, equal
and different actions, void slots, through the integers of a private release.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.audit.confidence_bounds import gaussian_epsilon
from discreet.audit.finding import FAILS, HOLDS, WEAK, Finding, exact_verdict, worst
from discreet.audit.noise_sources import Chosen
from discreet.audit.release_reading import GramReader, RidgeReader, reader_of
from discreet.audit.subjects import Subject
from discreet.batch import Batch
from discreet.batches.release_batch import release_batch
from discreet.design.control import Control
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget
from discreet.privacy.events import Composed, Event, Gaussian
from discreet.privacy.ledger import Ledger
from discreet.types import NumpyArray

Distance = Callable[[Batch, Batch], float]
TIGHT = 0.999
"""An optimiser that finds less than this share of the declared distance has failed."""
_STEP = 1e-4
"""Finite differences: far above the grid of 2^−20, far below the size of a context."""
SLOTS = 600
"""Slots of a batch after a past: so many that the bounds of rows depend on the signal."""
INSIDE = (0.25, 0.42, 0.5, 0.58, 0.75)
"""Losses inside [0, 1]: with small responses, squares of losses move most between 1 and 0.42."""
_UNNOISED = 1e-9
"""Movement, relative to the noise, that counts as a coordinate without noise."""


def shift_of(event: Event) -> float:
    """Standard deviations between the worlds that an event of Gaussian parts allows for."""
    parts = event.events if isinstance(event, Composed) else (event,)
    return math.sqrt(sum(part.multiplier**-2 for part in parts if isinstance(part, Gaussian)))


@dataclass(frozen=True)
class GaussianRelease:
    """A ridge mechanism as an attacker sees it: means and covariance of the statistics.

    ``gram_only`` looks at the Gram that another mechanism releases for radii.
    """

    subject: Subject
    records: int = 1
    gram_only: bool = False

    @property
    def mechanism(self) -> Any:
        return self.subject.calibrated_with_gram if self.gram_only else self.subject.calibrated

    @cached_property
    def read(self) -> RidgeReader:
        read = GramReader if self.gram_only else reader_of
        return read(
            self.mechanism, self.records, self.subject.n_actions, self.subject.dimension + 1
        )

    def mean(self, record: Batch) -> NumpyArray:
        """The statistics of a batch with this record, without noise.

        They are kept: a search moves one of two records at a time, and needs both.
        """
        key = (record.features.tobytes(), record.losses.tobytes(), record.observed.tobytes())
        if key not in self._means:
            batch = self.read.batch(record)
            self._means[key] = self.read(self.mechanism.fit(batch, Chosen(), self.subject.earlier))
        return self._means[key]

    @cached_property
    def _means(self) -> dict[tuple[bytes, ...], NumpyArray]:
        return {}

    @cached_property
    def covariance(self) -> NumpyArray:
        """Covariance of the statistics, by one draw at a time on an empty batch."""
        mechanism, empty, silence = self.mechanism, self.read.batch(), Chosen()
        still = self.read(mechanism.fit(empty, silence, self.subject.earlier))
        total = np.zeros((still.size, still.size))
        for name, shape in silence.requested.items():
            draws = np.eye(math.prod(shape)).reshape(-1, *shape)
            moved = (
                self.read(mechanism.fit(empty, Chosen({name: draws}), self.subject.earlier)) - still
            )
            total += moved.T @ moved
        return total

    @cached_property
    def _whitening(self) -> tuple[NumpyArray, NumpyArray]:
        values, vectors = np.linalg.eigh(self.covariance)
        noisy = values > 1e-9 * values[-1]
        return vectors[:, noisy] / np.sqrt(values[noisy]), vectors[:, ~noisy]

    def distance(self, first: Batch, second: Batch) -> float:
        """Standard deviations between two worlds; ∞ if they differ where there is no noise."""
        moved = self.mean(first) - self.mean(second)
        noisy, still = self._whitening
        if np.linalg.norm(moved @ still) > _UNNOISED * math.sqrt(np.trace(self.covariance)):
            return math.inf
        return float(np.linalg.norm(moved @ noisy))

    def direction(self, first: Batch, second: Batch) -> tuple[NumpyArray, float]:
        """The best linear statistic, in standard deviations, and the midpoint threshold."""
        one, two = self.mean(first), self.mean(second)
        noisy, _ = self._whitening
        whitened = (two - one) @ noisy
        best = noisy @ (whitened / np.linalg.norm(whitened))
        return best, float(best @ (one + two)) / 2


def largest_distance(subject: Subject, distance: Distance, starts: int = 3, seed: int = 0) -> float:
    """The largest distance between neighbouring records that an optimiser finds.

    Contexts are free numbers, which the features project. The ends of losses are tried in all
    combinations, and losses inside where their squares are released: there a squared distance is
    not convex in them.
    """
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    best, size = 0.0, subject.dimension
    actions = [(0, 0), (0, None)] if subject.feedback == "full" else [(0, 0), (0, 1), (0, None)]
    for (one, two), start in itertools.product(actions, range(starts)):
        contexts = rng.normal(size=2 * size)
        losses = _first_losses(subject, rng, start)

        def apart(x: Any, y: Any, one: Any = one, two: Any = two) -> float:
            found = distance(
                subject.record(x[:size], y[0], one), subject.record(x[size:], y[1], two)
            )
            return -min(found, 1e6)

        def furthest(x: Any, y: Any, steps: int, apart: Any = apart) -> Any:
            options = {"eps": _STEP, "maxiter": steps}
            return minimize(apart, x, (y,), "L-BFGS-B", options=options).x

        for _ in range(2):
            contexts, before = furthest(contexts, losses, 30), losses
            for each in _loss_choices(subject):
                if apart(contexts, each) < apart(contexts, losses):
                    losses = each
            if losses is before:
                break
        contexts = furthest(contexts, losses, 60)
        best = max(best, -apart(contexts, losses))
    return math.inf if best >= 1e6 else best


def _first_losses(subject: Subject, rng: Any, start: int) -> Any:
    if subject.losses == "one_label":
        return (1.0 - np.eye(subject.n_actions))[[0, start % 2]]
    if (
        start == 0
    ):  # opposite ones: equal ones are a local maximum where losses are published next to rows
        return np.repeat([[1.0], [0.0]], subject.n_actions, axis=1)
    return rng.random((2, subject.n_actions))


def _loss_choices(subject: Subject) -> list[Any]:
    """Losses of two records to be tried; general rows too where one label was declared.

    A mechanism that was promised one-label rows must enforce them, so it is tried with others.
    """
    A = subject.n_actions
    rows = [np.array(ends) for ends in itertools.product((0.0, 1.0), repeat=A)]
    if subject.feedback == "bandit":
        inside = INSIDE if subject.stretched else ()
        rows = [np.full(A, each) for each in (0.0, 1.0, *inside)]
    return [np.stack(pair) for pair in itertools.product(rows, repeat=2)]


def exact_gaussian(subject: Subject, starts: int = 3) -> Finding:
    """The largest distance compared with the declared one, and the ε that it implies."""
    declared = shift_of(subject.calibrated.event)
    release = GaussianRelease(subject, SLOTS if subject.earlier else 1)
    found = largest_distance(subject, release.distance, starts)
    exact = gaussian_epsilon(found, subject.budget.delta)
    verdict = worst([exact_verdict(exact, subject.epsilon), _verdict(found, declared)])
    return Finding(
        "exact",
        subject.name,
        "largest move by one record",
        verdict,
        _said(found, declared),
        claimed=subject.epsilon,
        exact=exact,
        level=subject.epsilon,
    )


def exact_gram(subject: Subject, starts: int = 3) -> Finding:
    """The largest distance of a perturbed objective's Gram, at its share of the budget."""
    release = GaussianRelease(subject, gram_only=True)
    declared = 1.0 / release.mechanism.event.events[-1].multiplier
    found = largest_distance(subject, release.distance, starts)
    return Finding(
        "exact",
        subject.name,
        "largest move of the Gram, with radii",
        _verdict(found, declared),
        _said(found, declared),
        level=subject.epsilon,
    )


def _verdict(found: float, declared: float) -> str:
    """Beyond the declared distance the claim fails; far below it the search has failed."""
    if exact_verdict(found, declared) == FAILS:
        return FAILS
    return WEAK if found < TIGHT * declared else HOLDS


def _said(found: float, declared: float) -> str:
    return (
        f"worlds lie {found:.5f} standard deviations apart at most, {declared:.5f} are declared: "
        f"a share of {found / declared:.5f}"
    )


ANSWERS = (0.0, 0.5, 1.0, None)
"""Losses, and silence; a squared distance is convex in losses, so its largest is at their ends."""
_DRAW = "part losses"


def exact_parts(subject: Subject) -> Finding:
    """The largest move of both parts' sums compared with the declared one, and the total ε."""
    plan = subject.plan(control=Control(0.5))
    assert plan.loss_sums is not None
    still = _part_sums(plan, None, None)
    columns = []
    for draw in np.eye(4).reshape(4, 2, 2):
        columns.append(_part_sums(plan, None, None, Chosen({_DRAW: draw})) - still)
    covariance = np.array(columns).T @ np.array(columns)
    worlds = {each: _part_sums(plan, *each) for each in itertools.product(ANSWERS, ANSWERS)}
    found = max(
        _distance(covariance, worlds[one] - worlds[two])
        for one, two in itertools.product(worlds, repeat=2)
        if (one[0] == two[0]) != (one[1] == two[1])  # one record is replaced, in its part
    )
    declared = shift_of(plan.loss_sums.event)
    fit = shift_of(plan.mechanism.event)
    exact = gaussian_epsilon(math.hypot(fit, found), plan.budget.delta)
    tight = WEAK if found < TIGHT * declared else HOLDS
    beyond = FAILS if exact_verdict(found, declared) == FAILS else tight
    return Finding(
        "exact",
        subject.name,
        "losses of policy and control",
        worst([beyond, exact_verdict(exact, subject.epsilon)]),
        f"one record moves them by {found:.5f} standard deviations at most, {declared:.5f} are "
        "declared; ε is that of fit and sums together",
        claimed=subject.epsilon,
        exact=exact,
        level=subject.epsilon,
    )


def _part_sums(plan: Plan, policy: Any, control: Any, noise: Chosen | None = None) -> Any:
    """The four numbers of a release of two records, who answer this."""
    answers = [policy, control]
    losses = np.array([[answer or 0.0] * plan.n_actions for answer in answers])
    observed = np.zeros(losses.shape, dtype=bool)
    observed[:, 0] = [answer is not None for answer in answers]
    features = plan.features.map(np.zeros((2, plan.features.p - 1)))
    batch = Batch(features, losses, observed, np.array([False, True]))
    unpaid = Ledger(Budget.none())
    made, _ = release_batch(plan, noise or Chosen(), batch, plan.nothing_released(), unpaid)
    assert made.part_losses is not None
    return made.part_losses.sums.reshape(4)


def _distance(covariance: Any, moved: Any) -> float:
    """Standard deviations; ∞ if something moves that has no noise."""
    if np.linalg.matrix_rank(covariance) < len(moved):
        return math.inf if np.any(moved) else 0.0
    return float(math.sqrt(moved @ np.linalg.solve(covariance, moved)))
