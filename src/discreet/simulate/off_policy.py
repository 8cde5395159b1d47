"""Off-policy estimates: the loss of another policy, from logged propensities.

For consented or synthetic logs only: rows, actions and propensities are read one by one, so the
result is not private, and its ``event`` states that. Private releases leave no such logs behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from discreet.batch import Batch
from discreet.batches.observations import evaluation_data
from discreet.design.action_names import action_index
from discreet.errors import InvalidInput
from discreet.features.frames import new_frame
from discreet.features.unit_ball import SQRT_HALF
from discreet.learner import Learner
from discreet.oracles import Problem, Ridge
from discreet.plan.plan import Plan
from discreet.policies.allocation import Policy
from discreet.privacy.budget import Budget
from discreet.privacy.events import Event, NonPrivate
from discreet.privacy.noise import SeededNoise
from discreet.releases.released import Released
from discreet.simulate.labelled_data import declared_rewards
from discreet.simulate.played_batches import PlayedOffers, offers_alone
from discreet.types import Array, Contexts, Floats, Frame, Values
from discreet.validate import in_range, whole

Rule = Callable[[Floats], Array]
"""Features (n, p) to a number for each action (n, A): probabilities, or predicted losses."""


CALL = "Logs.of(plan, contexts, actions, losses, propensities)"
CHANCE = "All that was played had a chance above zero: log decision.propensity."


def _rule_of(target: object, released: Released | None, logs: Logs) -> Rule:
    """Return the rule of a learner, of releases or of a policy with ``released``; or a rule."""
    if isinstance(target, (Learner, Released)):
        released = target if isinstance(target, Released) else target.released
        if released.plan is None:
            raise InvalidInput(
                "policy must be known; these releases do not say which plan made them. Pass the "
                "policy itself, with released= for them."
            )
        policy = Plan.from_config(released.plan).played_policy
    elif isinstance(target, Policy):
        policy = target
    elif isinstance(target, type) or not callable(target):
        raise InvalidInput(
            f"policy must be a Learner, its releases, a policy with released=, or a function of "
            f"features; got {target!r}. Pass the learner whose decisions you want to judge."
        )
    else:
        return target
    if released is None:
        raise InvalidInput(
            f"released must be given with a policy; got {type(target).__name__} alone, which "
            "decides by releases. Add released=learner.released, or pass the learner."
        )
    if (offers := logs.offers) is not None:
        return lambda _: offers.probabilities(policy, released)
    width = None if released.latest is None else int(released.latest.predictor.weights.shape[-1])
    if released.plan is not None:
        width = Plan.from_config(released.plan).features.p
    mapped = bool(np.allclose(logs.features[:, 0], SQRT_HALF, rtol=0, atol=1e-12))
    if width is not None and (logs.features.shape[1] != width or not mapped):
        raise InvalidInput(
            f"logs must hold features of the plan, {width} numbers that begin with √½; got others, "
            f"of shape {logs.features.shape}. Make the logs of raw contexts with {CALL}."
        )
    return partial(policy.probabilities, released)


@dataclass(frozen=True, eq=False)
class Logs:
    """Logged decisions: features (n, p), actions, losses and propensities (n,) each.

    Features are mapped contexts, ``plan.features.map(contexts)``; ``Logs.of`` maps raw ones.
    A propensity is the probability with which the logging policy chose the action that it chose:
    ``decisions.propensity``. It is the policy's, not that of a sampled component.

    >>> Logs(np.ones((2, 1)), np.array([0, 1]), np.array([0.0, 1.0]), np.array([0.5, 0.5])).losses
    array([0., 1.])
    """

    features: Floats = field(repr=False)
    actions: Floats = field(repr=False)
    losses: Floats = field(repr=False)
    propensities: Floats = field(repr=False)
    offers: PlayedOffers | None = field(default=None, repr=False)
    """Offers of the rows, if not every row was offered every action; ``actions`` are then places in
    a row's offer."""

    def __post_init__(self) -> None:
        try:
            features = np.asarray(self.features, dtype=np.float64)
        except (TypeError, ValueError):
            features = np.empty(0)
        if features.ndim != 2:
            raise InvalidInput(
                "features must be rows of numbers, as the plan maps them; got something else. "
                f"Make logs of raw contexts with {CALL}."
            )
        object.__setattr__(self, "features", features)
        n = len(features)
        for name in ("actions", "losses", "propensities"):
            values = np.asarray(getattr(self, name))
            whole_numbers = name != "actions" or values.dtype.kind in "iu"
            if values.shape != (n,) or n < 2 or not whole_numbers or not (values >= 0).all():
                kind = "whole numbers from 0 on" if name == "actions" else "numbers of at least 0"
                raise InvalidInput(
                    f"{name} must be {kind}, one per row, for at least two rows; got others, or "
                    f"shape {values.shape} for {n} rows. Log one entry per decision."
                )
            object.__setattr__(self, name, values)
        in_range("losses", self.losses, 0.0, 1.0, "Rescale them with a fixed public range.")
        in_range("propensities", self.propensities, np.nextafter(0.0, 1.0), 1.0, CHANCE)

    @classmethod
    def of(
        cls,
        plan: Plan,
        contexts: Contexts,
        actions: Values,
        losses: Values = None,
        propensities: Values = None,
        offers: Values = None,
        *,
        rewards: Values = None,
    ) -> Logs:
        """Make logs of raw contexts, which the plan maps to features, and of actions by name.

        Args:
            plan: It maps contexts to features, and has the names of actions.
            contexts: (n, d) numbers, dicts or a frame; others may be names of its columns.
            actions: (n,) chosen actions.
            losses: (n,) losses in [0, 1].
            propensities: (n,) in (0, 1].
            offers: Offers of each row, as in ``evaluate``; with a catalogue all items by default.
            rewards: (n,) instead of losses, in the range that the plan declares.
        """
        if (losses is None) == (rewards is None) or propensities is None:
            raise InvalidInput(
                f"logs must have propensities, and either losses or rewards; got others. "
                f"Call {CALL}."
            )
        outcomes = {"losses": losses if rewards is None else rewards, "propensities": propensities}
        given = evaluation_data(plan.contexts, contexts, actions=actions, **outcomes)
        columns = given.columns
        if rewards is not None:
            shape = np.shape(columns["actions"])
            columns["losses"] = declared_rewards(plan).losses_of(columns["losses"], shape)
        features, played = plan.features.map(given.contexts), None
        if offers is not None or plan.catalogue is not None:
            played = offers_alone(plan, features, offers)
            columns["actions"] = played.places_of(columns["actions"])
        else:
            columns["actions"] = action_index(plan, columns["actions"], "actions")
        return cls(features, **columns, offers=played)


class Estimate(NamedTuple):
    """A mean loss with its standard error and confidence interval."""

    value: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class OfflineEvaluation:
    """Three estimates of a policy's mean loss.

    ``ips`` is unbiased; ``snips`` divides by the sum of the weights and is steadier; ``dr``
    corrects a model's predictions by weighted residuals. ``effective_rows`` is (Σw)²/Σw²: when it
    is small, believe none of them.

    ``event`` states that the estimates are not private: publish none of them.
    """

    ips: Estimate
    snips: Estimate
    dr: Estimate
    effective_rows: float
    event: Event = field(
        default_factory=lambda: NonPrivate("an off-policy estimate from individual logs")
    )

    def to_frame(self) -> Frame:
        """Return a row per estimate, in the first library of frames that is installed."""
        names = np.asarray(["ips", "snips", "dr"], dtype=object)
        values = np.asarray([self.ips, self.snips, self.dr]).T
        return new_frame({"estimate": names, **dict(zip(Estimate._fields, values, strict=True))})


def evaluate_offline(
    logs: Logs,
    policy: Rule | Policy | Learner | Released,
    *,
    released: Released | None = None,
    predictor: Rule | None = None,
    confidence: float = 0.95,
    folds: int = 5,
) -> OfflineEvaluation:
    """Estimate the mean loss of ``policy`` on the contexts of the logs.

    Intervals are normal approximations: they need many effective rows.
    [Horvitz and Thompson 1952; Swaminathan and Joachims 2015; Dudík et al. 2011]

    Args:
        logs: Earlier decisions, with propensities.
        policy: A ``Learner``, as it would decide now; its ``released``; a policy with ``released``;
            or a function from features to probabilities (n, A).
        released: Releases for a bare policy.
        predictor: Expected losses (n, A) of features for the doubly robust estimate; by default
            ridge regressions, each fitted without the fold that it predicts.
        confidence: Confidence of the intervals.
        folds: Parts of the logs for the ridge regressions.

    Returns:
        An ``OfflineEvaluation`` with ``ips``, ``snips`` and ``dr``; it is not private.

    Raises:
        InvalidInput: A policy without releases, or shapes that do not fit.

    >>> rng = np.random.default_rng(0)
    >>> x, actions = np.ones((4000, 1)), rng.integers(2, size=4000)
    >>> logs = Logs(x, actions, (actions == 0) * 1.0, np.full(4000, 0.5))
    >>> found = evaluate_offline(logs, lambda x: np.tile([0.2, 0.8], (len(x), 1)))
    >>> round(found.snips.value, 1), found.ips.low < 0.2 < found.ips.high
    (0.2, True)
    """
    in_range("confidence", confidence, 0.0, 1.0, open_high=True)
    n = len(logs.features)
    chances = np.asarray(_rule_of(policy, released, logs)(logs.features), dtype=np.float64)
    table = chances.ndim == 2 and len(chances) == n
    if not table or not np.allclose(chances.sum(axis=-1), 1.0, atol=1e-8) or chances.min() < 0:
        raise InvalidInput(
            f"policy must give {n} rows of probabilities; it gives something else of shape "
            f"{chances.shape}. Pass a function of features, or a learner."
        )
    if int(logs.actions.max()) >= chances.shape[1]:
        raise InvalidInput(
            f"policy must know all logged actions; it gives {chances.shape[1]} probabilities and "
            f"action {int(logs.actions.max())} was logged. Pass a policy of the same plan."
        )
    taken = logs.actions[:, None]
    weights = np.take_along_axis(chances, taken, axis=-1)[:, 0] / logs.propensities
    if predictor is None:
        predicted = _cross_fitted(logs, chances.shape[1], whole("folds", folds, 2))
    else:
        predicted = np.asarray(predictor(logs.features), dtype=np.float64)
    residual = logs.losses - np.take_along_axis(predicted, taken, axis=-1)[:, 0]
    total = weights.sum()
    ratio, spread, effective_rows = math.nan, np.full(n, math.nan), 0.0
    if total > 0:
        ratio = float(weights @ logs.losses / total)
        # The ratio's error to first order: that of the mean of w·(loss − ratio)/mean(w).
        spread = weights * (logs.losses - ratio) * (n / total)
        effective_rows = float(total**2 / (weights @ weights))
    from scipy.special import ndtri

    z = float(ndtri(0.5 + confidence / 2))
    return OfflineEvaluation(
        ips=_mean(weights * logs.losses, z),
        snips=_mean(ratio + spread, z),
        dr=_mean((chances * predicted).sum(axis=-1) + weights * residual, z),
        effective_rows=effective_rows,
    )


def _mean(values: Floats, z: float) -> Estimate:
    mean, error = float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
    return Estimate(mean, error, mean - z * error, mean + z * error)


def _cross_fitted(logs: Logs, actions: int, folds: int) -> Floats:
    """Expected losses (n, A) of every row, from a ridge regression on the other folds."""
    n, rows, blocks, width = len(logs.features), logs.features, logs.actions, actions
    if logs.offers is not None:  # the pairs that were played, and a prediction for all offered
        rows, blocks = logs.offers.offered.stored(logs.actions)
        width = int(blocks.max()) + 1
    mechanism = Ridge(ridge=1e-3).calibrate(Problem(width, rows.shape[1]), Budget.none())
    losses = np.repeat(logs.losses[:, None], width, axis=-1)
    observed = np.arange(width) == blocks[:, None]
    fold = np.arange(n) % folds
    predicted = np.empty((n, actions))
    for number in range(folds):
        inside, outside = np.flatnonzero(fold == number), fold != number
        batch = Batch(rows[outside], losses[outside], observed[outside])
        fit = mechanism.fit(batch, SeededNoise(0))
        left = logs.features[inside] if logs.offers is None else logs.offers.part(inside).offered
        predicted[inside] = np.clip(fit.predictor.losses(left), 0.0, 1.0)
    return predicted
