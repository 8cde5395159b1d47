"""Objective perturbation, exactly: the density of a perturbed minimiser, world against world.

The noise b and the minimiser θ determine each other, b = −Σ f'(x·θ; y)x − Λθ, so θ has density
ν(b(θ))·det ∇²J(θ) and the log-likelihood ratio of two worlds can be written down. Λ and the scale
of the noise are read off the shipped fit.
[docs/privacy/logistic.md, "The density of the minimiser"]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.audit.noise_sources import Chosen
from discreet.audit.subjects import Subject, joined
from discreet.oracles.mechanisms.perturbed_objective import TOLERANCE
from discreet.rows.batch import Batch
from discreet.types import Floats


@dataclass(frozen=True)
class Objective:
    """The perturbed objective of a logistic subject, for batches of ``records``.

    ``mechanism`` is the subject's own unless another one of its kind is given.
    """

    subject: Subject
    records: int
    mechanism: Any = None

    @property
    def _mechanism(self) -> Any:
        return self.mechanism or self.subject.calibrated

    def fit(self, batch: Batch, draws: Any = None) -> Floats:
        """Weights (..., A, p) of a batch for chosen draws; void slots fill it up."""
        return np.asarray(
            self._mechanism.fit(self._filled(batch), Chosen(draws or {})).predictor.weights
        )

    def _filled(self, batch: Batch) -> Batch:
        void = [self.subject.record([0.0], 0.0, None)] * (self.records - batch.records)
        return joined(batch, *void)

    @property
    def _nothing(self) -> Batch:
        return self.subject.record([0.0], 0.0, None)

    @cached_property
    def names(self) -> dict[str, tuple[int, ...]]:
        """The draws that a fit asks for, with their shapes."""
        silence = Chosen()
        self._mechanism.fit(self._filled(self._nothing), silence)
        return silence.asked

    @property
    def tilt(self) -> str:
        return next(name for name in self.names if name.startswith("objective"))

    @cached_property
    def ridge(self) -> float:
        """Λ from one record without noise: Λθ = (y − μ)x."""
        from scipy.special import expit

        theta = self.fit(self.subject.record([1.0], 1.0))[0]
        x = np.full(2, math.sqrt(0.5))
        return float((1.0 - expit(x @ theta)) * np.linalg.norm(x) / np.linalg.norm(theta))

    @cached_property
    def scale(self) -> float:
        """The noise of one standard draw, from an empty batch: Λθ = −scale·draw."""
        draw = np.zeros(self.names[self.tilt])
        draw.reshape(-1)[0] = 1.0
        return float(self.ridge * np.linalg.norm(self.fit(self._nothing, {self.tilt: draw})))

    @cached_property
    def output(self) -> float:
        """Scale of the output noise; 0 where there is none."""
        if "output" not in self.names:
            return 0.0
        draw = np.zeros(self.names["output"])
        draw.reshape(-1)[0] = 1.0
        return float(np.linalg.norm(self.fit(self._nothing, {"output": draw})))

    @property
    def solver_share(self) -> float:
        """ε that hides the solver's error of 2τ/Λ; 0 where an exact minimiser is assumed."""
        return 2.0 * TOLERANCE / self.ridge / self.output if self.output else 0.0

    @property
    def gaussian(self) -> bool:
        return self.subject.mechanism == "logistic-gaussian"

    @property
    def joint(self) -> bool:
        """Whether one norm runs over all actions, as in the paper's mechanism."""
        return self.subject.mechanism == "logistic-paper"

    def log_density(self, theta: Floats, batch: Batch) -> Floats:
        """log p(θ) up to a constant that all worlds share, (..., A, p) -> (...)."""
        b, volume = self.noise_and_volume(theta, batch)
        norms = np.linalg.norm(b, axis=-1)
        if self.gaussian:
            cost = (norms**2).sum(axis=-1) / (2 * self.scale**2)
        elif self.joint:
            cost = np.sqrt((norms**2).sum(axis=-1)) / self.scale
        else:
            cost = norms.sum(axis=-1) / self.scale
        return np.asarray(volume.sum(axis=-1) - cost)

    def noise_and_volume(self, theta: Floats, batch: Batch) -> tuple[Floats, Floats]:
        """b(θ) (..., A, p) and log det of the Hessian of each action (..., A), for p = 2."""
        from scipy.special import expit

        x, weights = batch.features, np.asarray(batch.observed, dtype=float)
        mean = expit(theta @ x.T)
        slope = (mean - batch.losses.T) * weights.T
        b = -slope @ x - self.ridge * theta
        curve = mean * (1.0 - mean) * weights.T
        left, across, right = (curve @ (x[:, i] * x[:, j]) for i, j in ((0, 0), (0, 1), (1, 1)))
        left, right = left + self.ridge, right + self.ridge
        return b, np.log(left) + np.log(right - across**2 / left)

    def log_ratio(self, theta: Floats, first: Batch, second: Batch) -> Floats:
        """log p₂(θ)/p₁(θ)."""
        return self.log_density(theta, second) - self.log_density(theta, first)
