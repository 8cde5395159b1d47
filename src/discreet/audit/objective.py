"""Objective perturbation, exactly: the density of a perturbed minimiser, world against world.

The noise b and the minimiser θ determine each other, b = −Σ f'(x·θ; y)x − Λθ, so θ has density
ν(b(θ))·det ∇²J(θ) and the log-likelihood ratio of two worlds can be written down. Λ and the scale
of the noise are read off the shipped fit.
[docs/privacy/logistic.md, "The density of the minimiser"]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from discreet.audit.finding import Finding, computed, exact_verdict
from discreet.audit.noise_sources import Chosen
from discreet.audit.subjects import Subject, joined
from discreet.batch import Batch
from discreet.oracles.mechanisms.newton import TOLERANCE
from discreet.text import guarantee_text
from discreet.types import Floats


@dataclass(frozen=True)
class Objective:
    """The perturbed objective of a logistic subject, for batches of ``records``.

    ``mechanism`` is the subject's own unless another one of its kind is given.
    """

    subject: Subject
    records: int
    mechanism: Any = None

    def fit(
        self, batch: Batch, draws: Mapping[str, Floats] | None = None, noise: Chosen | None = None
    ) -> Floats:
        """Weights (..., A, p) of a batch for chosen draws; void slots fill it up."""
        filled = joined(batch, *[self._nothing] * (self.records - batch.records))
        mechanism = self.mechanism or self.subject.calibrated
        fitted = mechanism.fit(filled, noise or Chosen(draws or {}))
        return np.asarray(fitted.predictor.weights)

    @property
    def _nothing(self) -> Batch:
        return self.subject.record([0.0], 0.0, None)

    @cached_property
    def names(self) -> dict[str, tuple[int, ...]]:
        """The draws that a fit requests, with their shapes."""
        silence = Chosen()
        self.fit(self._nothing, noise=silence)
        return silence.requested

    @property
    def tilt(self) -> str:
        return next(name for name in self.names if name.startswith("objective"))

    @cached_property
    def ridge(self) -> float:
        """Λ from one record without noise: Λθ = (y − μ)x."""
        theta = self.fit(self.subject.record([1.0], 1.0))[0]
        x = np.full(2, math.sqrt(0.5))
        return float((1.0 - expit(x @ theta)) * np.linalg.norm(x) / np.linalg.norm(theta))

    @cached_property
    def scale(self) -> float:
        """The noise of one standard draw, from an empty batch: Λθ = −scale·draw."""
        return self.ridge * self._moved_by(self.tilt)

    @cached_property
    def output(self) -> float:
        """Scale of the output noise; 0 where there is none."""
        return self._moved_by("output") if "output" in self.names else 0.0

    def _moved_by(self, name: str) -> float:
        """The length of the weights of an empty batch after one standard draw."""
        draw = np.zeros(self.names[name])
        draw.reshape(-1)[0] = 1.0
        return float(np.linalg.norm(self.fit(self._nothing, {name: draw})))

    @property
    def solver_share(self) -> float:
        """ε that hides the solver's error of 2τ/Λ; 0 where an exact minimiser is assumed."""
        return 2.0 * TOLERANCE / self.ridge / self.output if self.output else 0.0

    @property
    def gaussian(self) -> bool:
        return self.subject.mechanism == "logistic-gaussian"

    @property
    def joint(self) -> bool:
        """Return whether one norm runs over all actions, as in the paper's mechanism."""
        return self.subject.mechanism == "logistic-paper"

    def log_density(self, theta: Floats, batch: Batch) -> Floats:
        """log p(θ) up to a constant that all worlds share, (..., A, p) -> (...)."""
        if self.joint:
            b, volume = self.noise_and_volume(theta, batch)
            return np.asarray(volume.sum(axis=-1) - np.linalg.norm(b, axis=(-2, -1)) / self.scale)
        return np.asarray(self.log_densities(theta, batch).sum(axis=-1))

    def log_densities(self, theta: Floats, batch: Batch) -> Floats:
        """The same of each action (..., A), where actions are independent."""
        b, volume = self.noise_and_volume(theta, batch)
        norms = np.linalg.norm(b, axis=-1) / self.scale
        return np.asarray(volume - (norms**2 / 2 if self.gaussian else norms))

    def block_law(self, plane: Floats, batch: Batch) -> Floats:
        """log p of the first action's weights over the points (k, 2) of a plane."""
        theta = np.zeros((len(plane), self.subject.n_actions, 2))
        theta[:, 0] = plane
        return self.log_densities(theta, batch)[:, 0]

    def law_of_two(self, plane: Floats, batch: Batch) -> Floats:
        """log p of two actions' weights over all pairs of points (k, 2) of a plane, (k, k)."""
        b, volume = self.noise_and_volume(np.repeat(plane[:, None], 2, axis=1), batch)
        square = (b**2).sum(axis=-1)
        if self.joint:
            norm = np.sqrt(square[:, None, 0] + square[None, :, 1])
        else:
            norm = np.sqrt(square[:, None, 0]) + np.sqrt(square[None, :, 1])
        return np.asarray(volume[:, None, 0] + volume[None, :, 1] - norm / self.scale)

    def noise_and_volume(self, theta: Floats, batch: Batch) -> tuple[Floats, Floats]:
        """b(θ) (..., A, p) and log det of the Hessian of each action (..., A), for p = 2."""
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


_ANGLES = np.exp(2j * math.pi * np.arange(16) / 16)
_RADII = np.concatenate([[0.0], np.geomspace(0.01, 500.0, 40)])
PLANE = np.outer(_RADII, _ANGLES).reshape(-1, 1).view(np.float64)
"""Weights of one action at which densities are compared."""
_OTHERS: list[list[tuple[float, float]]] = [[], [(1.0, 0.0)], [(-1.0, 1.0), (0.5, 0.3)]]
"""Records (context, loss) that both worlds share."""


def exact_pure(subject: Subject) -> Finding:
    """The largest log-likelihood ratio over pairs of weights, and over all pairs of records."""
    worst = share = 0.0
    contents = itertools.product((-1.0, 0.0, 1.0), (0.0, 0.4, 1.0), (0, 1))
    records = [subject.record([c], y, action) for c, y, action in contents]
    records.append(subject.record([0.0], 0.0, None))
    for others in _OTHERS:
        objective = Objective(subject, len(others) + 1)
        shared = [subject.record([context], loss, 0) for context, loss in others]
        laws = [objective.law_of_two(PLANE, joined(*shared, record)) for record in records]
        worst = max(worst, float(np.ptp(laws, axis=0).max()))
        share = max(share, objective.solver_share)
    exact = worst + share
    verdict = exact_verdict(exact, subject.epsilon)
    text = f"the objective shows at most {worst:.4f}, the solver's error {share:.4f}"
    return computed(subject, "largest likelihood ratio", verdict, text, exact=exact)


def exact_gaussian_objective(subject: Subject) -> Finding:
    """The smallest ε with ∫(p − e^ε q)₊ ≤ δ over pairs of records, by the privacy loss itself."""
    laws = _privacy_losses(Objective(subject, 1))
    exact = max(_smallest_epsilon(law, subject.budget.delta) for law in laws)
    verdict = exact_verdict(exact, subject.epsilon)
    text = f"the worst pair of records needs {guarantee_text(exact, subject.budget.delta)}"
    return computed(subject, "hockey-stick integral", verdict, text, exact=exact)


_LOSSES = np.linspace(-40.0, 40.0, 8001)
"""Privacy losses of a block, each rounded up to one of these."""


def _privacy_losses(objective: Objective) -> list[Floats]:
    """Laws of the privacy loss of two blocks for pairs that keep or change the action."""
    subject = objective.subject
    reach = (8.0 * objective.scale + 2.0) / objective.ridge
    axis = np.linspace(-reach, reach, 241)
    plane = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)

    def law(one: Floats, two: Floats) -> Floats:
        weight = np.exp(one - one.max())
        shift = math.log(np.exp(two - one.max()).sum() / weight.sum())  # both are normalised
        places = np.searchsorted(_LOSSES, np.minimum(one - two + shift, _LOSSES[-1]) - 1e-9)
        return np.bincount(places, weight / weight.sum(), minlength=len(_LOSSES))

    corners = itertools.product((-1.0, 1.0), (0.0, 1.0))
    logs = [objective.block_law(plane, subject.record([c], y, 0)) for c, y in corners]
    empty = objective.block_law(plane, subject.record([0.0], 0.0, None))
    pairs = [(one, two) for one in logs for two in logs]
    if subject.feedback == "full":
        return [np.convolve(law(*pair), law(*pair)) for pair in pairs]
    moved = [np.convolve(law(one, empty), law(empty, two)) for one, two in pairs]
    return moved + [np.convolve(law(*pair), law(empty, empty)) for pair in pairs]


def _smallest_epsilon(law: Floats, delta: float) -> float:
    """The smallest of these losses ε with Σ P(loss)·(1 − e^(ε − loss))₊ ≤ δ."""
    losses = np.linspace(2 * _LOSSES[0], 2 * _LOSSES[-1], len(law))
    above, scaled = (np.cumsum(each[::-1])[::-1] for each in (law, law * np.exp(-losses)))
    enough = above - np.exp(losses) * scaled <= delta
    return max(0.0, float(losses[enough].min()))


def certificate(subject: Subject, count: int = 2000) -> Finding:
    """Every minimiser must be one: its gradient is within the public tolerance, for any noise."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for others in _OTHERS:
        objective = Objective(subject, len(others) + 1)
        shape = (count, *objective.names[objective.tilt])
        sizes = rng.choice([0.1, 1.0, 3.0, 10.0], size=count)
        draws = rng.normal(size=shape) * sizes.reshape(count, *[1] * (len(shape) - 1))
        batch = joined(*(subject.record([c], y, 0) for c, y in (*others, (1.0, 1.0))))
        theta = objective.fit(batch, {objective.tilt: draws})
        b, _ = objective.noise_and_volume(theta, batch)
        gradient = (b - objective.scale * draws.reshape(b.shape)).reshape(count, -1)
        worst = max(worst, float(np.linalg.norm(gradient, axis=-1).max()))
    # Λ and the scale were read off fits that are themselves within the tolerance.
    text = f"{3 * count:,} fits with chosen noise; gradient norm at most {worst:.1e}"
    return computed(subject, "every fit is a minimiser", worst <= 10 * TOLERANCE, text)
