"""A decision for one row in plain numbers: for a few actions array calls cost more than the sums.

The rule of a policy is its array form. ``Policy.for_one_row`` may write the same rule on lists of
A floats; the contract tests compare the two for every policy.
"""

from __future__ import annotations

import math
import weakref
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from discreet.releases.policy_view import PolicyView
from discreet.types import Array, Numbers

if TYPE_CHECKING:
    from discreet.policies.allocation import Policy

FEW = 64
"""Actions up to which a loop in Python takes at most half as long as array calls, for every
policy. [docs/performance.md, "A decision row by row"]"""


@dataclass(frozen=True)
class OneRow:
    """A policy after certain releases, for features of one row: (1, p), or what it is offered.

    All that does not depend on the row was computed when this was made.
    """

    probabilities: Callable[[Array], list[float]]
    sample: Callable[[Array, float, float], int]
    """Features and two uniforms -> the action."""

    @classmethod
    def drawn(cls, probabilities: Callable[[Array], list[float]]) -> OneRow:
        """Draw with the first uniform, as ``Policy.sample`` does."""
        return cls(probabilities, lambda features, u, _: draw(probabilities(features), u))


def sample(policy: Policy, view: PolicyView, features: Array, u: Numbers) -> Numbers:
    """``policy.sample`` for u (n, 2), in plain numbers if n is one."""
    if len(u) != 1:
        return policy.sample(view, features, u)
    return np.array([prepared(policy, view).sample(features, *u[0].tolist())])


def probabilities(policy: Policy, view: PolicyView, features: Array) -> Numbers:
    """``policy.probabilities`` of features (n, p), in plain numbers if n is one."""
    if features.shape[-2] != 1:
        return policy.probabilities(view, features)
    return np.array([prepared(policy, view).probabilities(features)])


def prepared(policy: Policy, view: PolicyView) -> OneRow:
    """The policy for one row; made once for each view of the releases."""
    cached: tuple[Policy, OneRow] | None = view.__dict__.get("_one_row")
    if cached is None or cached[0] is not policy:
        # The view refers to the result, which must not refer to the view: old ones would pile up.
        view.__dict__["_one_row"] = cached = policy, made(policy, weakref.proxy(view))
    return cached[1]


def made(policy: Policy, view: PolicyView) -> OneRow:
    """The policy for one row, in plain numbers where it has such a form and actions are few."""
    # In a learner the weights are NumPy (A, p); a simulation stacks runs.
    weights = [item.predictor.weights for item in view.items[-1:]]
    single = all(isinstance(each, np.ndarray) and each.ndim == 2 for each in weights)
    plain = view.n_actions <= FEW and single and _writes_both(policy)
    return policy.for_one_row(view) if plain else by_arrays(policy, view)


def by_arrays(policy: Policy, view: PolicyView) -> OneRow:
    """The array form for one row."""
    return OneRow(
        lambda features: row(policy.probabilities(view, features)),
        lambda features, *u: int(policy.sample(view, features, np.array([u]))[0]),
    )


def _writes_both(policy: Policy) -> bool:
    """Return whether the class that wrote the rule wrote its form for one row too.

    A subclass with another rule must not inherit the plain numbers of its parent.
    """
    rule = {"for_one_row", "probabilities", "sample"}
    writer = next(kind for kind in type(policy).__mro__ if rule & vars(kind).keys())
    return "for_one_row" in vars(writer)


def uniform(view: PolicyView) -> OneRow:
    """1/A for every action."""
    even = [1.0 / view.n_actions] * view.n_actions
    return OneRow.drawn(lambda _: even.copy())


def row(values: Array) -> list[float]:
    """The numbers of an array (1, A)."""
    numbers: list[float] = values[0].tolist()
    return numbers


def draw(probabilities: Sequence[float], u: float) -> int:
    """``allocation.draw``: the first action whose cumulative probability exceeds u."""
    sums = list(accumulate(probabilities))
    return bisect_right(sums, u * sums.pop())


def softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(logit - top) for logit in logits]
    total = sum(weights)
    return [weight / total for weight in weights]
