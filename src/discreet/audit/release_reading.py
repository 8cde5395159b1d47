"""The attacker's view of a ridge release: the noisy statistics themselves.

Weights solve (G̃ + ΛI + repair)θ = q̃ around a public offset, and G̃ is released, so anyone who knows
the plan gets q̃ back. The offset and Λ are found by asking the shipped fit without noise. A pooled
mechanism publishes the noisy statistics of each batch as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays.linear_algebra import inverse_repaired, triangle
from discreet.audit.noise_sources import Chosen
from discreet.audit.subjects import joined
from discreet.batch import Batch
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
    def _public(self) -> tuple[Any, float]:
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
        size, told = self(silent).size, getattr(silent.statistics, "outcome_sums", None)
        rest = size if told is None else size - told.size
        gram = rest - self.n_actions * self.p
        ends = (0, gram, rest) if told is None else (0, gram, rest, size)
        return tuple(map(slice, ends, ends[1:]))

    @cached_property
    def sigma(self) -> NumpyArray:
        """The declared standard deviation of each number that is read."""
        declared = np.full(self.parts[-1].stop, self.mechanism.gram)
        declared[self.parts[1]] = self.mechanism.response
        return declared

    def __call__(self, release: Any) -> NumpyArray:
        """Vectors (..., k), one per release."""
        offset, ridge = self._public
        gram, weights = release.gram, release.predictor.weights - offset
        values = np.asarray(gram.values)
        shifted = values + ridge * np.eye(values.shape[-1])
        if gram.dense:
            theta = weights.reshape(*weights.shape[:-2], -1)
            response = (shifted @ theta[..., None])[..., 0]
            blocks = values[..., None, :, :]
        else:
            step = np.broadcast_to(np.asarray(gram.step), values.shape[:-2])
            inverse = inverse_repaired(shifted, step)
            response = np.linalg.solve(inverse + 0.0 * weights[..., None], weights[..., None])
            response = response[..., 0].reshape(*weights.shape[:-2], -1)
            blocks = values
        return _side_by_side(_svec(blocks), response)


@dataclass(frozen=True)
class PoolReader(RidgeReader):
    """(svec G̃, q̃) of a batch, and its loss sums, as they were released."""

    def __call__(self, release: Any) -> NumpyArray:
        seen = release.statistics
        response = seen.response.reshape(*seen.response.shape[:-2], -1)
        told = [] if seen.outcome_sums is None else [seen.outcome_sums]
        return _side_by_side(_svec(seen.gram), response, *told)


@dataclass(frozen=True)
class GramReader(RidgeReader):
    """svec G̃ alone, of a mechanism that releases its Gram and something else."""

    def __call__(self, release: Any) -> NumpyArray:
        values = np.asarray(release.gram.values)
        return _svec(values[..., None, :, :] if release.gram.dense else values)


def reader_of(mechanism: Any, records: int, n_actions: int, p: int) -> RidgeReader:
    """The reader for releases of a ridge mechanism."""
    kind = RidgeReader if mechanism.pooling is None else PoolReader
    return kind(mechanism, records, n_actions, p)


def _side_by_side(*read: Any) -> NumpyArray:
    lead = np.broadcast_shapes(*(each.shape[:-1] for each in read))
    parts = [np.broadcast_to(each, (*lead, each.shape[-1])) for each in read]
    return np.concatenate(parts, axis=-1)


def _svec(blocks: NumpyArray) -> NumpyArray:
    """Upper triangles with √2 off the diagonal: (..., blocks, p, p) -> (..., k)."""
    rows, columns = triangle(blocks.shape[-1])
    packed = blocks[..., rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))
    return packed.reshape(*blocks.shape[:-3], -1)
