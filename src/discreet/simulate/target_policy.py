"""Whose loss is estimated: a function of features, or an object that decides by its releases."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.unit_ball import SQRT_HALF
from discreet.learner import Learner
from discreet.plan.plan import Plan
from discreet.policies.allocation import Policy
from discreet.releases.released import Released
from discreet.simulate.played_offers import PlayedOffers
from discreet.types import Floats

Rule = Callable[[Floats], Any]
"""Features (n, p) to a number for each action (n, A): probabilities, or predicted losses."""


def rule_of(
    target: Any, released: Released | None, features: Floats, offers: PlayedOffers | None = None
) -> Rule:
    """Probabilities of a learner, of releases, of a policy that reads ``released``, or a rule."""
    if offers is not None and isinstance(target, (Learner, Released, Policy)):
        return _reading_offers(target, released, offers)
    if isinstance(target, Learner):
        return _reading(
            target.plan.played_policy, target.released, features, target.plan.features.p
        )
    if isinstance(target, Released):
        if target.plan is None:
            raise InvalidInput(
                "policy must be known; these releases do not say which plan made them. Pass the "
                "policy itself, with released= for them."
            )
        plan = Plan.from_config(target.plan)
        return _reading(plan.played_policy, target, features, plan.features.p)
    if isinstance(target, Policy):
        if released is None:
            raise InvalidInput(
                f"released must be given with a policy; got {type(target).__name__} alone, which "
                "decides by releases. Add released=learner.released, or pass the learner."
            )
        return _reading(target, released, features, _width(released))
    if isinstance(target, type) or not callable(target):
        raise InvalidInput(
            f"policy must be a Learner, its releases, a policy with released=, or a function of "
            f"features; got {target!r}. Pass the learner whose decisions you want to judge."
        )
    return target  # type: ignore[no-any-return]


def _reading_offers(target: Any, released: Released | None, offers: PlayedOffers) -> Rule:
    """The same for logs whose rows were offered different actions."""
    seen = target if isinstance(target, Released) else getattr(target, "released", released)
    policy = target
    if not isinstance(target, Policy):
        plan = target.plan if isinstance(target, Learner) else Plan.from_config(target.plan or {})
        policy = plan.played_policy
    if seen is None:
        raise InvalidInput(
            f"released must be given with a policy; got {type(target).__name__} alone, which "
            "decides by releases. Add released=learner.released, or pass the learner."
        )
    return lambda _: offers.probabilities(policy, seen)


def _reading(policy: Policy, released: Released, features: Floats, p: int | None) -> Rule:
    """The policy with its releases, once the features are seen to be mapped ones."""
    mapped = bool(np.allclose(features[:, 0], SQRT_HALF, rtol=0, atol=1e-12))
    if p is not None and (features.shape[1] != p or not mapped):
        raise InvalidInput(
            f"logs must hold features of the plan, {p} numbers that begin with √½; got others, of "
            f"shape {features.shape}. Make the logs of raw contexts with "
            "Logs.of(plan, contexts, actions, losses, propensities)."
        )
    return partial(policy.probabilities, released)


def _width(released: Released) -> int | None:
    """Features that the releases are about; None before the first."""
    if released.plan is not None:
        return Plan.from_config(released.plan).features.p
    latest = released.latest
    return None if latest is None else int(latest.predictor.weights.shape[-1])
