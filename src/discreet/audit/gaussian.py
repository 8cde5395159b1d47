"""Gaussian releases, exactly: the largest move by one record, in standard deviations.

An attacker reads the noisy statistics of a ridge release. Weights solve (G̃ + ΛI + repair)θ = q̃
around a public offset, and G̃ is released, so the plan gives q̃ back; a shipped fit without noise
gives offset and Λ. A pooled mechanism publishes the noisy statistics of each batch.

The noise of a release is a linear function of standard draws, so the shipped fit with one draw
at a time gives the covariance of these statistics. Without noise it gives the mean.
A search over neighbouring records then looks for the largest distance: both feedbacks, equal
and different actions, void slots, through the integers of a private release.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from discreet.arrays.linear_algebra import triangle
from discreet.audit import finding
from discreet.audit.noise_sources import Chosen
from discreet.audit.subjects import Subject, joined
from discreet.batch import Batch
from discreet.privacy.events import Composed, Event, Gaussian
from discreet.releases.release import Fit, Release
from discreet.releases.statistics import Statistics
from discreet.types import NumpyArray

TIGHT = 0.999
"""A search that finds less than this share of the declared distance has failed."""
ANGLES = 64
"""Of contexts on a circle: 0.1 apart, so that the grid finds 0.9994 of any distance."""
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
    """The noisy statistics in releases of a mechanism, as an attacker reads them.

    They are (svec G̃, q̃) and loss sums of a ridge mechanism, and the Gram alone of a perturbed
    objective. Batches have ``records`` slots, and ``earlier`` are the statistics of the releases
    before.
    """

    mechanism: Any
    records: int = 1
    earlier: Sequence[Statistics] = ()

    def batch(self, *records: Batch) -> Batch:
        """Some records, and void slots for the rest of the batch."""
        A, p = self.mechanism.problem.n_actions, self.mechanism.problem.p
        rest = self.records - sum(each.records for each in records)
        void = Batch(np.zeros((rest, p)), np.zeros((rest, A)), np.zeros((rest, A), dtype=bool))
        return joined(*records, void)

    def fit(self, batch: Batch, draws: Mapping[str, NumpyArray] | None = None) -> Fit:
        """The release of a batch with chosen draws, or without noise."""
        fitted: Fit = self.mechanism.fit(batch, Chosen(draws or {}), self.earlier)
        return fitted

    def read(self, release: Fit | Release) -> NumpyArray:
        """Vectors (..., k), one per release."""
        seen, gram = release.statistics, release.gram
        if seen is not None:
            return _side_by_side(seen.gram, seen.response, seen.outcome_sums)
        assert gram is not None
        values = np.asarray(gram.values)
        blocks = values[..., None, :, :] if gram.dense else values
        if release.predictor.link == "logistic":
            return _side_by_side(blocks)
        # Weights solve (G̃ + ΛI + repair)θ = q̃ around a public offset.
        offset, ridge = self._offset_and_ridge
        weights = release.predictor.weights - offset
        eye = np.eye(values.shape[-1])
        shifted = values + ridge * eye
        if gram.dense:
            weights = weights.reshape(*weights.shape[:-2], 1, -1)
            shifted = shifted[..., None, :, :]
        else:
            shifted = shifted + _repair(shifted, np.asarray(gram.step))[..., None, None] * eye
        return _side_by_side(blocks, (shifted @ weights[..., None])[..., 0])

    @cached_property
    def _offset_and_ridge(self) -> tuple[NumpyArray, float]:
        """The weights of an empty batch without noise, and Λ: a draw z moves them by σz/Λ."""
        silence = Chosen()
        offset = self.mechanism.fit(self.batch(), silence, self.earlier).predictor.weights
        name = next(each for each in silence.requested if each.endswith("response"))
        draw = np.zeros(silence.requested[name])
        draw.flat[0] = 1.0
        moved = self.fit(self.batch(), {name: draw}).predictor.weights - offset
        return offset, self.mechanism.response / float(np.linalg.norm(moved))

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The positions of Gram, responses and loss sums in what is read."""
        silent = self.fit(self.batch())
        size, sums = self.read(silent).size, getattr(silent.statistics, "outcome_sums", None)
        rest = size - (0 if sums is None else sums.size)
        responses = self.mechanism.problem.n_actions * self.mechanism.problem.p
        ends = sorted({0, rest - responses, rest, size})
        return tuple(map(slice, ends, ends[1:]))

    @cached_property
    def sigma(self) -> NumpyArray:
        """The declared standard deviation of each number that is read."""
        declared = np.full(self.parts[-1].stop, self.mechanism.gram)
        declared[self.parts[1]] = self.mechanism.response
        return declared

    def mean(self, record: Batch) -> NumpyArray:
        """The statistics of a batch with this record, without noise."""
        return self.read(self.fit(self.batch(record)))

    @cached_property
    def covariance(self) -> NumpyArray:
        """Covariance of the statistics, by one draw at a time on an empty batch."""
        empty, silence = self.batch(), Chosen()
        still = self.read(self.mechanism.fit(empty, silence, self.earlier))
        total = np.zeros((still.size, still.size))
        for name, shape in silence.requested.items():
            draws = np.eye(math.prod(shape)).reshape(-1, *shape)
            moved = self.read(self.fit(empty, {name: draws})) - still
            total += moved.T @ moved
        return total

    def distance(self, first: Batch, second: Batch) -> float:
        """Standard deviations between two worlds."""
        return diameter([self.mean(first), self.mean(second)], self.covariance)


def diameter(means: Sequence[NumpyArray], covariance: NumpyArray) -> float:
    """The largest distance between two worlds; ∞ if some differ where there is no noise."""
    values, vectors = np.linalg.eigh(covariance)
    noisy = values > 1e-9 * values[-1]
    along = np.stack(means) @ vectors
    if np.linalg.norm(np.ptp(along[:, ~noisy], axis=0)) > _UNNOISED * math.sqrt(values.sum()):
        return math.inf
    return float(pdist(along[:, noisy] / np.sqrt(values[noisy])).max())


def releases_of(subject: Subject, records: int = 1) -> GaussianRelease:
    """The releases of a subject, after what was public before."""
    return GaussianRelease(subject.calibrated, records, subject.earlier)


def _repair(matrices: NumpyArray, step: NumpyArray) -> NumpyArray:
    """The smallest step·2^j, j ≥ 0, that makes a matrix definite; 0 where it is.

    The fit finds it by Cholesky factors; here eigenvalues decide, which is another computation.
    """
    least = -np.linalg.eigvalsh(matrices)[..., 0]
    doublings = np.floor(np.log2(np.maximum(least / step, 0.5))) + 1.0
    return np.where(least < 0.0, 0.0, step * 2.0**doublings)


def _side_by_side(
    blocks: NumpyArray, response: NumpyArray | None = None, sums: NumpyArray | None = None
) -> NumpyArray:
    """svec of Gram blocks (..., k, p, p), responses (..., A, p) and loss sums as one vector."""
    rows, columns = triangle(blocks.shape[-1])
    packed = blocks[..., rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))
    parts = [packed.reshape(*packed.shape[:-2], -1)]
    if response is not None:
        parts.append(response.reshape(*response.shape[:-2], -1))
    if sums is not None:
        parts.append(sums)
    lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in parts], axis=-1)


def largest_distance(subject: Subject, release: GaussianRelease) -> float:
    """The largest distance between neighbouring records: the known pair, and a fine grid of others.

    Contexts lie on two circles, or on a line; losses are the ends of [0, 1] in all combinations,
    also where one label was declared, since a mechanism that was promised such rows must enforce
    them. Where squares of losses are released a squared distance is not convex in losses, so losses
    inside are tried too.
    """
    angles = np.linspace(0.0, 2.0 * math.pi, ANGLES, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    contexts = np.concatenate([circle, 0.5 * circle])[:, : subject.dimension]
    losses: Any = itertools.product((0.0, 1.0), repeat=subject.n_actions)
    actions: tuple[int | None, ...] = (0, None)
    if subject.feedback == "bandit":
        losses, actions = (0.0, 1.0, *(INSIDE if subject.stretched else ())), (0, 1, None)
    tried = [subject.record(*each) for each in itertools.product(contexts, losses, actions)]
    means = [release.mean(record) for record in (*subject.worst_pair(), *tried)]
    return diameter(means, release.covariance)


def exact_gaussian(subject: Subject) -> finding.Finding:
    """The largest distance compared with the declared one, and the ε that it implies."""
    release = releases_of(subject, SLOTS if subject.earlier else 1)
    found = largest_distance(subject, release)
    exact = finding.gaussian_epsilon(found, subject.budget.delta)
    verdict, text = _compared(found, shift_of(subject.calibrated.event))
    verdict = finding.worst([finding.exact_verdict(exact, subject.epsilon), verdict])
    return finding.computed(subject, "largest move by one record", verdict, text, exact=exact)


def exact_gram(subject: Subject) -> finding.Finding:
    """The largest distance of a perturbed objective's Gram, at its share of the budget."""
    release = GaussianRelease(subject.calibrated_with_gram)
    found = largest_distance(subject, release)
    compared = _compared(found, 1.0 / release.mechanism.event.events[-1].multiplier)
    return finding.computed(subject, "largest move of the Gram, with radii", *compared)


def distance_verdict(found: float, declared: float) -> str:
    """Beyond the declared distance the claim fails; far below it the search has failed."""
    if finding.exact_verdict(found, declared) == finding.FAILS:
        return finding.FAILS
    return finding.WEAK if found < TIGHT * declared else finding.HOLDS


def _compared(found: float, declared: float) -> tuple[str, str]:
    text = (
        f"worlds lie {found:.5f} standard deviations apart at most, {declared:.5f} are declared: "
        f"a share of {found / declared:.5f}"
    )
    return distance_verdict(found, declared), text
