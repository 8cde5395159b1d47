"""The regression oracles that a plan may have: their configurations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidInput
from discreet.oracles.contract import Mechanism, Problem
from discreet.oracles.mechanisms.finite_choice import FiniteChoice
from discreet.oracles.mechanisms.logistic import PaperLogistic, StructuredLogistic
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.oracles.mechanisms.ridge import PaperRidge, StructuredRidge
from discreet.privacy.budget import Budget
from discreet.releases.canonical import decode_array, encode_array
from discreet.types import Floats
from discreet.validate import in_range, one_of, positive

RIDGES: dict[str, type[StructuredRidge | PaperRidge]] = {
    "structured": StructuredRidge,
    "paper": PaperRidge,
}
LOGISTICS: dict[str, type[StructuredLogistic | PaperLogistic]] = {
    "structured": StructuredLogistic,
    "paper": PaperLogistic,
}


@dataclass(frozen=True)
class PooledRidge:
    """Linear loss predictors from everything that was released, clipped to [0, 1].

    A batch of n records is released with noise of standard deviation σ on its Gram blocks and
    σ/ω on its responses, jointly. With ``geometry`` "learned" its rows are stretched by a matrix
    that earlier releases give, and normalised, so that directions in which contexts differ little
    are not lost in the noise; "plain" takes the features as they are, as does a plan without a
    budget or with confidence radii.

    The pool adds all batches up with weights w = n/(n + ``clear``·p·σ²). Eigenvalues of its Gram
    below ``floor`` times its noise, plus ``ridge``·Σ w·n, are raised to it: what lies below the
    noise is not believed. ``response_weight`` ω shifts noise from the responses to the Grams; full
    information has ω = 1, since there the responses are many. Without a budget this is ridge
    regression on the whole past. [docs/privacy/ridge.md; docs/results/defaults.md]

    >>> PooledRidge()
    PooledRidge(floor=0.6, ridge=1e-08, clear=10.0, response_weight=2.0, geometry='learned')
    """

    floor: float = 0.6
    ridge: float = 1e-8
    clear: float = 10.0
    response_weight: float = 2.0
    geometry: str = "learned"

    bounded = True
    """Predictions lie in [0, 1]."""

    def __post_init__(self) -> None:
        one_of("geometry", self.geometry, ("learned", "plain"))
        positive("floor", self.floor)
        positive("ridge", self.ridge)
        in_range("clear", self.clear, 0.0, math.inf)
        in_range("response_weight", self.response_weight, 0.125, math.sqrt(8.0))

    def calibrate(self, problem: Problem, budget: Budget) -> PooledStatistics:
        """The mechanism with its noise fixed."""
        return PooledStatistics.of(self, problem, budget)


@dataclass(frozen=True)
class Ridge:
    """Linear loss predictors: θ_a = (G̃_a + Λ I)⁻¹ q̃_a, Λ = n·ridge + noise_ridge·σ√(2p).

    ``structured`` noises the A blocks and centred responses in one joint Gaussian release;
    ``paper`` noises the whole (Ap)² Gram and the response, with half of a zCDP budget each, and
    solves without a repair. Both are exact ridge regression for an infinite budget, except that
    ``structured`` shrinks predictions to the middle of the losses and ``paper`` to 0.
    [paper, "Private quadratic oracle"; docs/privacy/ridge.md]

    >>> Ridge(ridge=0.01)
    Ridge(ridge=0.01, mechanism='structured', noise_ridge=2.0)
    """

    ridge: float = 0.01
    mechanism: str = "structured"
    noise_ridge: float = 2.0

    bounded = False
    """Predictions may leave [0, 1]."""

    def __post_init__(self) -> None:
        positive("ridge", self.ridge)
        in_range("noise_ridge", self.noise_ridge, 0.0, math.inf)
        one_of("mechanism", self.mechanism, RIDGES)

    def calibrate(self, problem: Problem, budget: Budget) -> Mechanism:
        """The mechanism that ``mechanism`` names, with its noise fixed."""
        return RIDGES[self.mechanism].of(self, problem, budget)


@dataclass(frozen=True)
class Logistic:
    """Loss predictors σ(θ_a·b), θ = argmin Σ f(x·θ, y) + (Λ/2)‖θ‖² + noise·θ, Λ = n·ridge.

    ``structured`` separates by action: ``noise="gamma"`` is pure ε, ``"gaussian"`` is (ε, δ) by
    Rényi accounting, ``"auto"`` takes the smaller expected noise for the public p. ``paper`` is
    Algorithm 2 of Chaudhuri et al. [Chaudhuri et al. 2011; paper, "Private logistic oracle";
    docs/privacy/logistic.md]

    >>> Logistic(ridge=0.01)
    Logistic(ridge=0.01, mechanism='structured', noise='auto', least_ridge=5.0)
    """

    ridge: float = 0.01
    mechanism: str = "structured"
    noise: str = "auto"
    least_ridge: float = 5.0

    bounded = True
    """Predictions lie in [0, 1]."""

    def __post_init__(self) -> None:
        positive("ridge", self.ridge)
        positive("least_ridge", self.least_ridge)
        one_of("mechanism", self.mechanism, LOGISTICS)
        one_of("noise", self.noise, ("auto", "gamma", "gaussian"))

    def calibrate(self, problem: Problem, budget: Budget) -> Mechanism:
        """The mechanism that ``mechanism`` names, with its noise fixed."""
        return LOGISTICS[self.mechanism].of(self, problem, budget)


@dataclass(frozen=True, eq=False)
class FiniteClass:
    """Choose f from F public predictors with probability ∝ exp(−ε·L(f)/(2Δ)), pure ε-DP.

    L(f) = Σ (clip(θ_f,a·b) − y)² over the observed losses; each term lies in [0, 1], so Δ = 1,
    or A where a record has all A losses. ``weights`` are (F, A, p); predictions are clipped
    to [0, 1]. Without privacy: the first minimiser.
    [paper, Lemma "Privacy and accuracy of finite-class regression"; docs/privacy/finite.md]

    >>> import numpy as np
    >>> FiniteClass(np.zeros((2, 3, 4)))
    FiniteClass(2 functions, 3 actions, 4 features)
    """

    weights: Floats

    bounded = True

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if weights.ndim != 3 or weights.size == 0 or not np.isfinite(weights).all():
            raise InvalidInput(
                f"weights must be finite and of shape (F, A, p); got {np.shape(self.weights)}. "
                "Stack the weight matrices of the functions."
            )
        # Rounded exactly as a plan's configuration is read back, so that the digest is the same.
        weights = decode_array(encode_array(weights))
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        functions, actions, p = self.weights.shape
        return f"FiniteClass({functions} functions, {actions} actions, {p} features)"

    def calibrate(self, problem: Problem, budget: Budget) -> FiniteChoice:
        """The mechanism with its ε fixed; refuses radii, which a finite class cannot give."""
        return FiniteChoice.of(self, problem, budget)
