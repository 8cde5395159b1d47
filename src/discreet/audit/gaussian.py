"""Gaussian releases, exactly: the largest move by one record, in standard deviations.

An attacker reads the noisy statistics of a ridge release. Weights solve (G̃ + ΛI + repair)θ = q̃
around a public offset, and G̃ is released, so the plan gives q̃ back; a shipped fit without noise
gives offset and Λ. A pooled mechanism publishes the noisy statistics of each batch.

The noise of a release is a linear function of standard draws, so the shipped fit with one draw
at a time gives the covariance of these statistics. Without noise it gives the mean.
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

from discreet.arrays.linear_algebra import triangle
from discreet.audit.attack import Published
from discreet.audit.finding import (
    FAILS,
    HOLDS,
    WEAK,
    Finding,
    computed,
    exact_verdict,
    gaussian_epsilon,
    worst,
)
from discreet.audit.noise_sources import Chosen
from discreet.audit.subjects import Subject, joined
from discreet.batch import Batch
from discreet.privacy.events import Composed, Event, Gaussian
from discreet.types import NumpyArray


@dataclass(frozen=True)
class RidgeReader:
    """(svec G̃, q̃) of releases of a ridge mechanism, for batches of ``records``."""

    mechanism: Any
    records: int
    n_actions: int
    p: int

    def batch(self, *records: Batch) -> Batch:
        """Some records, and void slots for the rest of the batch."""
        rest = self.records - sum(each.records for each in records)
        shape = (rest, self.n_actions)
        void = Batch(np.zeros((rest, self.p)), np.zeros(shape), np.zeros(shape, dtype=bool))
        return joined(*records, void)

    @cached_property
    def _public(self) -> tuple[NumpyArray, float]:
        """The weights of an empty batch without noise, and Λ.

        One record b with loss 1 or 0 for the first action moves its weights by b/(‖b‖² + Λ).
        """
        offset = self.mechanism.fit(self.batch(), Chosen()).predictor.weights
        full, p = self.mechanism.problem.feedback == "full", self.p
        row = np.full((1, p), math.sqrt(0.5))
        row[:, 2:] = 0.0
        observed = np.arange(self.n_actions)[None] < (self.n_actions if full else 1)
        one, zero = (
            self.mechanism.fit(self.batch(Batch(row, losses[None], observed)), Chosen())
            for losses in 1.0 - np.eye(self.n_actions)[[1, 0]]
        )
        square = float(
            np.trace(np.asarray(one.gram.values).reshape(-1, one.gram.values.shape[-1])[:p, :p])
        )
        moved = (one.predictor.weights - zero.predictor.weights)[0]
        return offset, math.sqrt(square) / float(np.linalg.norm(moved)) - square

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The places of Gram, responses and loss sums in what is read."""
        silent = self.mechanism.fit(self.batch(), Chosen())
        size, sums = self(silent).size, getattr(silent.statistics, "outcome_sums", None)
        rest = size if sums is None else size - sums.size
        gram = rest - self.n_actions * self.p
        ends = (0, gram, rest) if sums is None else (0, gram, rest, size)
        return tuple(map(slice, ends, ends[1:]))

    @cached_property
    def sigma(self) -> NumpyArray:
        """The declared standard deviation of each number that is read."""
        declared = np.full(self.parts[-1].stop, self.mechanism.gram)
        declared[self.parts[1]] = self.mechanism.response
        return declared

    def __call__(self, release: Published) -> NumpyArray:
        """Vectors (..., k), one per release."""
        offset, ridge = self._public
        gram, weights = release.gram, release.predictor.weights - offset
        lead = weights.shape[:-2]
        values, eye = np.asarray(gram.values), np.eye(gram.values.shape[-1])
        shifted, blocks = values + ridge * eye, values
        if gram.dense:
            weights = weights.reshape(*lead, -1)
            blocks = values[..., None, :, :]
        else:
            shifted = shifted + _repair(shifted, np.asarray(gram.step))[..., None, None] * eye
        response = (shifted @ weights[..., None])[..., 0]
        return _side_by_side(_svec(blocks), response.reshape(*lead, -1))


@dataclass(frozen=True)
class PoolReader(RidgeReader):
    """(svec G̃, q̃) of a batch, and its loss sums, as they were released."""

    def __call__(self, release: Published) -> NumpyArray:
        seen = release.statistics
        response = seen.response.reshape(*seen.response.shape[:-2], -1)
        sums = [] if seen.outcome_sums is None else [seen.outcome_sums]
        return _side_by_side(_svec(seen.gram), response, *sums)


@dataclass(frozen=True)
class GramReader(RidgeReader):
    """svec G̃ alone, of a mechanism that releases its Gram and something else."""

    def __call__(self, release: Published) -> NumpyArray:
        values = np.asarray(release.gram.values)
        return _svec(values[..., None, :, :] if release.gram.dense else values)


def reader_of(mechanism: Any, records: int, n_actions: int, p: int) -> RidgeReader:
    """The reader for releases of a ridge mechanism."""
    kind = RidgeReader if mechanism.pooling is None else PoolReader
    return kind(mechanism, records, n_actions, p)


def _repair(matrices: NumpyArray, step: NumpyArray) -> NumpyArray:
    """The smallest step·2^j, j ≥ 0, that makes a matrix definite; 0 where it is.

    The fit finds it by Cholesky factors; here eigenvalues decide, which is another computation.
    """
    least = -np.linalg.eigvalsh(matrices)[..., 0]
    doublings = np.floor(np.log2(np.maximum(least / step, 0.5))) + 1.0
    return np.where(least < 0.0, 0.0, step * 2.0**doublings)


def _side_by_side(*read: NumpyArray) -> NumpyArray:
    lead = np.broadcast_shapes(*(each.shape[:-1] for each in read))
    parts = [np.broadcast_to(each, (*lead, each.shape[-1])) for each in read]
    return np.concatenate(parts, axis=-1)


def _svec(blocks: NumpyArray) -> NumpyArray:
    """Upper triangles with √2 off the diagonal: (..., blocks, p, p) -> (..., k)."""
    rows, columns = triangle(blocks.shape[-1])
    packed = blocks[..., rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))
    return packed.reshape(*blocks.shape[:-3], -1)


Distance = Callable[[Batch, Batch], float]
Apart = Callable[[NumpyArray, NumpyArray], float]
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

        def apart(
            x: NumpyArray, y: NumpyArray, one: int | None = one, two: int | None = two
        ) -> float:
            found = distance(
                subject.record(x[:size], y[0], one), subject.record(x[size:], y[1], two)
            )
            return -min(found, 1e6)

        def furthest(x: NumpyArray, y: NumpyArray, steps: int, apart: Apart = apart) -> NumpyArray:
            options = {"eps": _STEP, "maxiter": steps}
            return np.asarray(minimize(apart, x, (y,), "L-BFGS-B", options=options).x)

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


def _first_losses(subject: Subject, rng: np.random.Generator, start: int) -> NumpyArray:
    if subject.losses == "one_label":
        return (1.0 - np.eye(subject.n_actions))[[0, start % 2]]
    if (
        start == 0
    ):  # opposite ones: equal ones are a local maximum where losses are published next to rows
        return np.repeat([[1.0], [0.0]], subject.n_actions, axis=1)
    return rng.random((2, subject.n_actions))


def _loss_choices(subject: Subject) -> list[NumpyArray]:
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
    verdict = worst([exact_verdict(exact, subject.epsilon), distance_verdict(found, declared)])
    said = _said(found, declared)
    return computed(subject, "largest move by one record", verdict, said, exact=exact)


def exact_gram(subject: Subject, starts: int = 3) -> Finding:
    """The largest distance of a perturbed objective's Gram, at its share of the budget."""
    release = GaussianRelease(subject, gram_only=True)
    declared = 1.0 / release.mechanism.event.events[-1].multiplier
    found = largest_distance(subject, release.distance, starts)
    verdict, said = distance_verdict(found, declared), _said(found, declared)
    return computed(subject, "largest move of the Gram, with radii", verdict, said)


def distance_verdict(found: float, declared: float) -> str:
    """Beyond the declared distance the claim fails; far below it the search has failed."""
    if exact_verdict(found, declared) == FAILS:
        return FAILS
    return WEAK if found < TIGHT * declared else HOLDS


def _said(found: float, declared: float) -> str:
    return (
        f"worlds lie {found:.5f} standard deviations apart at most, {declared:.5f} are declared: "
        f"a share of {found / declared:.5f}"
    )
