"""Code that several policies share: predictions to probabilities, these to actions or an order."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from discreet.arrays.backend import namespace, or_infinite, per_run, row_min, row_sum
from discreet.policies import one_row
from discreet.releases.policy_view import PolicyView
from discreet.types import Array, Floats, Numbers
from discreet.validate import in_range, positive

MANY = 64
"""Actions up to which a loop over columns is faster than one call over all of them."""


class Policy(ABC):
    """A frozen dataclass of public parameters with a rule that broadcasts.

    Inputs are only releases and features. Privacy holds for every fixed ``u``. Floats are
    parameters: in a stack of R runs each is an array of shape (R,), which ``per_run`` reshapes to
    broadcast with features. ``register`` adds your own class. [docs/extending.md]

    >>> from discreet.releases.released import Released
    >>> import discreet
    >>> discreet.Uniform().probabilities(Released(2), np.ones((1, 3)))
    array([[0.5, 0.5]])
    """

    uses_radii: ClassVar[bool] = False
    """Whether releases must carry Grams."""
    needs_bounded_losses: ClassVar[bool] = False
    """Whether predictions must lie in [0, 1]."""
    _gpu_rule: ClassVar[str | None] = None
    # The rule of a kernel that predicts and draws; a class without its own has none.

    @abstractmethod
    def probabilities(self, view: PolicyView, features: Array) -> Array:
        """(..., n, p) -> (..., n, A), rows on the simplex; uniform without any release.

        Args:
            view: What was published so far.
            features: (..., n, p), mapped contexts.
        """

    @classmethod
    def campaign_settings(cls) -> Sequence[Policy]:
        """The settings that a campaign plays for your own policy; override to add some."""
        return [cls()]

    def sample(self, view: PolicyView, features: Array, u: Array) -> Array:
        """Actions (..., n) from uniforms u (..., n, 2).

        Args:
            view: What was published so far.
            features: (..., n, p), mapped contexts.
            u: Uniforms in [0, 1); the same u gives the same actions.
        """
        if (drawn := self._drawn_on_gpu(view, features, u)) is not None:
            return drawn
        return draw(self.probabilities(view, features), u[..., 0])

    def _drawn_on_gpu(self, view: PolicyView, features: Array, u: Array) -> Array | None:
        """The actions that a kernel draws, where it has this policy's rule."""
        if view.latest is None or not getattr(features, "is_cuda", False):
            return None
        from discreet.policies import kernels

        rule = kernels.rule_of(self, view.n_actions)
        if rule is None or not kernels.suits(view, features, u):
            return None
        if rule == "replay":
            parameters = self._gpu_parameters(view)[:2]
            return kernels.replayed(view, features, u[..., 0], *map(np.atleast_1d, parameters))
        return kernels.ruled(rule, view, features, u, *self._gpu_parameters(view))

    def _gpu_parameters(self, view: PolicyView) -> tuple[Numbers, Numbers, int]:  # noqa: ARG002
        """Slope, width (or bonus) and length for a kernel, the first two of one run or of each."""
        return 0.0, 0.0, 1

    def for_one_row(self, view: PolicyView) -> one_row.OneRow:
        """The same rule for one row in plain numbers; override it if single decisions must be fast,
        else arrays are used."""
        return one_row.by_arrays(self, view)


def uniform(view: PolicyView, features: Array) -> Array:
    """1/A for every action."""
    xp = namespace(features)
    *lead, rows, _ = features.shape
    shape = (*lead, view.n_actions, rows)  # stored as predictions are, rows contiguous
    extra = {} if xp is np else {"device": features.device}
    return xp.full(shape, 1.0 / view.n_actions, dtype=features.dtype, **extra).mT


def draw(probabilities: Array, u: Array) -> Array:
    """Inverse-CDF draw: the first action whose cumulative probability exceeds u."""
    if getattr(probabilities, "is_cuda", False):
        from discreet.policies import kernels

        if kernels.suits_draws(probabilities, u):
            return kernels.drawn(probabilities, u)
    # The goal is u times the total, so that rounding cannot push it past the last action.
    if probabilities.shape[-1] > MANY:
        sums = namespace(probabilities).cumulative_sum(probabilities, axis=-1)
        return 1 * (sums[..., :-1] <= (u * sums[..., -1])[..., None]).sum(-1)
    # Column by column: a scan over a short last axis is slow, most of all on a GPU.
    running = [probabilities[..., 0]]
    for action in range(1, probabilities.shape[-1]):
        running.append(running[-1] + probabilities[..., action])
    goal = u * running.pop()
    passed = 1 * (running[0] <= goal)
    for column in running[1:]:
        passed += column <= goal
    return passed


def is_first_minimum(losses: Array) -> Array:
    """Mask of the first minimiser of each row."""
    if losses.shape[-1] > MANY or getattr(losses, "is_cuda", False):
        xp = namespace(losses)
        extra = {} if xp is np else {"device": losses.device}
        return xp.arange(losses.shape[-1], **extra) == xp.argmin(losses, axis=-1)[..., None]
    first = losses == row_min(losses)
    found = first[..., 0]
    for action in range(1, losses.shape[-1]):
        first[..., action] &= ~found
        found = found | first[..., action]
    return first


def even_split(values: Array) -> Array:
    """Equal probabilities for all minimisers, up to a relative difference of 1e-12."""
    xp = namespace(values)
    least = row_min(values)
    tied = xp.astype(values - least <= 1e-12 * (1.0 + abs(least)), values.dtype)
    return tied / row_sum(tied)


def inverse_gap(losses: Array, gamma: Numbers, survivors: Array | None = None) -> Array:
    """p(a) = 1/(|S| + γ·gap_a) for a ≠ b in S, the rest on b; b the first minimiser in S.

    [SquareCB: Foster and Rakhlin 2020; inside a survivor set S: AdaCB, Foster et al. 2021]
    """
    count: Numbers = float(losses.shape[-1])
    if survivors is not None:
        losses = or_infinite(survivors, losses)
        count = row_sum(namespace(losses).astype(survivors, losses.dtype))
    shares = gamma * (losses - row_min(losses))
    shares += count
    return rest_on_best(1.0 / shares, losses)


def rest_on_best(shares: Array, losses: Array) -> Array:
    """Give the first minimiser the probability that the shares leave over."""
    return shares + is_first_minimum(losses) * (1.0 - row_sum(shares))


def surviving(scores: Array, widths: Array) -> Array:
    """{a : g_a − w_a ≤ min_b (g_b + w_b)}. [RegCB: Foster et al. 2018]"""
    return scores - widths <= row_min(scores + widths)


@dataclass(frozen=True)
class GapWeight(Policy):
    """``scale`` γ0 and ``exponent`` ρ give the weight γ_m of a predicted gap in batch m."""

    scale: float = 1.0
    exponent: float = 0.5

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        in_range("exponent", self.exponent, 0.0, 10.0)

    def gap_weight(self, view: PolicyView, features: Array) -> Numbers:
        """γ_m = γ0 · max(1, Σ_{j<m} s_j·B_j)^ρ, frozen inside a batch; s_j is what release j
        still counts."""
        return per_run(self._gpu_parameters(view)[0], features)

    def _gpu_parameters(self, view: PolicyView) -> tuple[Numbers, Numbers, int]:
        clock = float(max(1, view.remembered_rounds))
        return self.scale * clock**self.exponent, getattr(self, "width", 0.0), 1


@dataclass(frozen=True)
class ConfidenceWidth(Policy):
    """``width`` β gives the confidence widths β·r_a, with the released radii r_a."""

    width: float = 1.0
    uses_radii: ClassVar[bool] = True

    def __post_init__(self) -> None:
        in_range("width", self.width, 0.0, 1e12)

    def widths(self, view: PolicyView, features: Array) -> Array:
        """β·r_a: (..., n, p) -> (..., n, A)."""
        return per_run(self.width, features) * view.radii(features)

    def _gpu_parameters(self, view: PolicyView) -> tuple[Numbers, Numbers, int]:  # noqa: ARG002
        return 0.0, self.width, 1


Uniforms = Callable[[int, int], Floats]
"""Uniforms for a request's ranking, from its place in a call and how many actions it is offered."""
_APART = 0x72616E6B
"""Separates these streams from others of the same seed."""


class RankingDraws:
    """Uniforms for rankings, from the seed of ``draws`` where that has one, and never from its
    stream; each request has a separate stream.

    Privacy: an offer is content of a record. Were as many numbers as it has items drawn from the
    generator of the actions, it would shift the draws of all later people.
    [docs/privacy/transcript.md, "Action draws"]

    >>> first, second = (RankingDraws(np.random.default_rng(0)) for _ in range(2))
    >>> _ = first.next_call()(0, 5)
    >>> _ = second.next_call()
    >>> bool((first.next_call()(0, 3) == second.next_call()(0, 3)).all())
    True
    """

    def __init__(self, draws: object = None) -> None:
        seed = getattr(getattr(draws, "bit_generator", None), "seed_seq", None)
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence()
        self._seed: np.random.SeedSequence = seed
        self._calls = itertools.count()

    def next_call(self) -> Uniforms:
        """Return the uniforms of one more call, used or not."""
        return partial(self._uniforms, next(self._calls))

    def _uniforms(self, call: int, request: int, offered: int) -> Floats:
        key = (*self._seed.spawn_key, _APART, call, request)
        stream = np.random.SeedSequence(self._seed.entropy, spawn_key=key)
        return np.random.default_rng(stream).random(offered)


def sampled_order(probabilities: Floats, first: int, u: Floats) -> Floats:
    """The chosen action first, the others drawn one by one without replacement from u (K,).

    Keys log p − log(−log u) sort as draws in proportion to p do, each from what is left.
    [Gumbel-max: Yellott 1977]

    >>> sampled_order(np.array([0.1, 0.9, 0.0]), 0, np.array([0.5, 0.5, 0.5])).tolist()
    [0, 1, 2]
    """
    with np.errstate(divide="ignore"):
        keys = np.log(probabilities) - np.log(-np.log(u))
    keys[first] = np.inf
    return np.argsort(-keys, kind="stable")
