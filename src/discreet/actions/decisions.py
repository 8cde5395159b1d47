"""Result of ``Learner.decide``, and the explanation of a decision.

An explanation is a function of what was published and of one context, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from discreet.actions.available_actions import available_actions
from discreet.actions.offers import Chances, read_offers
from discreet.design.action_names import ActionName
from discreet.design.outcome import UNIT_LOSS, Outcome
from discreet.errors import InvalidInput
from discreet.features.frames import frame_like, is_series, new_frame, series_like
from discreet.features.joint import Joint, feature_groups
from discreet.features.offered import Offered
from discreet.features.unit_ball import SQRT_HALF
from discreet.oracles.mechanisms.pooled_statistics import mean_row, weight_covariance
from discreet.plan.plan import Plan
from discreet.releases.released import Released
from discreet.types import Floats, Frame, NumpyArray, Values


@dataclass(frozen=True, eq=False)
class Decisions:
    """Result of ``Learner.decide``: scalars for one context, arrays for many.

    For a frame they are series of its library, with its index in pandas, so that
    ``frame["action"] = decisions.action`` adds each action to its row.

    ``action`` is the name of the chosen action where the plan has names, else its number, which
    ``action_index`` always is.
    ``id`` names the slot for ``observe``; it is −1 where nothing is stored (``stored`` False):
    the loss of such a decision is not needed, and reporting it changes nothing. Printing says how
    many were stored.
    """

    id: Values
    action: Values
    stored: Values
    action_index: Values
    _chances: Callable[[], Chances] = field(repr=False)
    """Probabilities of all that each request was offered, one row each."""
    _chosen: NumpyArray = field(repr=False)
    """Places (n,) of the chosen actions in these rows."""
    _order: Callable[[Chances], list[list[ActionName]]] = field(repr=False)
    """Orders of what was offered, from those rows."""

    def __repr__(self) -> str:
        stored = np.asarray(self.stored)
        count = f"{stored.sum()} of {stored.size} stored"
        if is_series(self.id):  # a series would fill the screen
            return f"Decisions({count}, as a {type(self.id).__name__} each: see to_frame())"
        return f"Decisions({count}, id={self.id!r}, action={self.action!r})"

    @cached_property
    def _rows(self) -> Chances:
        return self._chances()

    @cached_property
    def propensity(self) -> Values:
        """Probability with which the policy chose ``action``: for its owner's eyes only.

        Computed at the first access: the exact mixture of VanillaPO costs more than a draw.
        """
        chances, chosen = self._rows, self._chosen
        if isinstance(chances, np.ndarray):
            found = chances[np.arange(len(chosen)), chosen]
        else:
            found = np.array([row[place] for row, place in zip(chances, chosen, strict=True)])
        if np.ndim(self.id) == 0:
            return float(found[0])
        return series_like(self.id, "propensity", found) if is_series(self.id) else found

    @cached_property
    def ranking(self) -> list[ActionName] | list[list[ActionName]]:
        """The offered actions in a sampled order, the chosen one first; a list each for many.

        Only the loss of the first is learned from: report that of ``action``, whatever is shown
        below it. The order is drawn at the first access.
        """
        orders = self._order(self._rows)
        return list(orders[0]) if np.ndim(self.id) == 0 else orders

    def to_frame(self) -> Frame:
        """A row per decision; the frame is of the library of the contexts, with their index."""
        names = ("id", "action", "action_index", "stored", "propensity")
        columns = {name: np.atleast_1d(np.asarray(getattr(self, name))) for name in names}
        return frame_like(self.id, columns) if is_series(self.id) else new_frame(columns)


class Effect(NamedTuple):
    """Effect of one feature on the predicted loss of an action, less the mean over the offer."""

    feature: str
    loss: float
    error: float | None
    """The standard error by the public noise; None where an oracle publishes no statistics."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """Predicted losses of an offer, and what moved that of ``action`` away from their mean.

    ``effects`` add up to the predicted loss less the mean, before predictions are clipped; the
    largest come first. Errors are those of privacy noise alone; ``error`` is that of the predicted
    loss less the mean. All are losses in [0, 1]; text and frame have the units of ``outcome``. The
    text says "not known yet" where an error exceeds the range.
    """

    action: ActionName
    predicted: dict[ActionName, float]
    probabilities: dict[ActionName, float]
    effects: tuple[Effect, ...] = field(default=())
    error: float | None = None
    outcome: Outcome = UNIT_LOSS

    def to_frame(self) -> Frame:
        """A row per feature, in the units of ``outcome``."""
        columns = zip(*self.effects, strict=True) if self.effects else ((), (), ())
        names, losses, errors = (np.array(each, dtype=object) for each in columns)
        return new_frame(
            {
                "feature": names,
                self.outcome.word: self.outcome.difference_of(losses.astype(float)),
                "standard_error": self.outcome.error_of(errors.astype(float)),
            }
        )

    def __repr__(self) -> str:
        width = max([len(each.feature) for each in self.effects], default=0)
        lines = [f"  {each.feature:<{width}}  {self._text(each)}" for each in self.effects]
        return "\n".join([self._head, *lines])

    @property
    def _head(self) -> str:
        mean = float(np.mean(list(self.predicted.values())))
        values = map(self.outcome.value_of, (self.predicted[self.action], mean))
        value, usual = map(self.outcome.figure, values)
        known = f"{value}, mean over {len(self.predicted)} offered {usual}"
        if self.error is not None and self.error > 1:
            known = f"not known yet, since the noise exceeds the range {self.outcome.range}"
        return (
            f"{self.action}: predicted {self.outcome.word} {known}; chosen with probability "
            f"{self.probabilities[self.action]:.3f}"
        )

    def _text(self, effect: Effect) -> str:
        outcome = self.outcome
        change = outcome.figure(outcome.difference_of(effect.loss), "+")
        if effect.error is None:
            return change
        noise = f"± {outcome.figure(outcome.error_of(effect.error))}"
        return f"{change} {noise}" if effect.error <= 1 else f"not known yet ({noise})"


def explain_decision(
    source: object, context: object, action: object = None, *, actions: object = None
) -> Explanation:
    """Explain which features moved the predicted losses of the offered actions, for one context.

    ``source`` is a learner, an evaluation, their ``released``, or a board. ``action`` is the one to
    explain, by default the most probable; ``actions`` is the offer, as for ``decide``.

    Returns:
        ``predicted`` losses and ``probabilities`` by action, and ``effects`` by feature.

    Raises:
        InvalidInput: Nothing was released yet, or the plan does not know context or action.

    >>> from discreet import Budget, Learner, UnitBall
    >>> plan = Plan(actions=["a", "b"], features=UnitBall(2), budget=Budget.none(), first_batch=4)
    >>> learner = Learner(plan, draws=np.random.default_rng(0))
    >>> for _ in range(12):
    ...     decision = learner.decide([0.5, 0.1])
    ...     learner.observe(decision.id, loss=float(decision.action == "b"))
    >>> explain_decision(learner, [0.5, 0.1], "a").predicted["a"] < 0.5
    True
    """
    released = getattr(source, "released", source)
    if not isinstance(released, Released) or released.plan is None:
        raise InvalidInput(
            "source must be a learner, an evaluation, its releases or a board; got "
            f"{type(source).__name__}. Pass learner.released."
        )
    if released.latest is None:
        raise InvalidInput(
            "source must have a release to explain; there is none yet. All actions are equal: "
            "go on deciding."
        )
    plan = getattr(source, "plan", None)
    plan = plan if isinstance(plan, Plan) else Plan.from_config(released.plan)
    if not plan.features.is_single(context):
        raise InvalidInput("context must be one context; got many. Explain them one by one.")
    blocks = released.blocks(len(released.items) + 1)
    available = available_actions(plan, released.changes, blocks)
    features = plan.features.map(context)
    offers = read_offers(plan, available, features, actions, single=True)
    names = list(offers.offered_names()[0])
    chances = offers.chances(plan.played_policy, released, None)[0]
    if action is not None and action not in names:
        raise InvalidInput(
            "action must be one of those offered; got another. Offer it with actions=[…]."
        )
    place = int(np.argmax(chances)) if action is None else names.index(action)
    offered: Offered = offers.groups[0].offered
    losses = np.asarray(released.latest.predictor.losses(offered))[0]
    return Explanation(
        names[place],
        dict(zip(names, losses.tolist(), strict=True)),
        dict(zip(names, np.asarray(chances).tolist(), strict=True)),
        *_effects(plan, released, offered, place),
        plan.outcome,
    )


def _effects(
    plan: Plan, released: Released, offered: Offered, place: int
) -> tuple[tuple[Effect, ...], float | None]:
    """Return the effects, the largest first, and the error of their sum."""
    covariance, mean = _noise(plan, released)
    usual = replace(offered, contexts=_usual(plan, mean, offered.contexts))
    rows, blocks = _pairs(offered)
    latest: Any = released.latest
    weights = np.asarray(latest.predictor.weights)
    if (missing := int(blocks.max()) + 1 - len(weights)) > 0:
        weights = np.vstack([weights, *[weights.mean(axis=0)[None]] * missing])
    centred = ((np.arange(len(rows)) == place) - 1.0 / len(rows))[:, None]
    here, there = centred * rows, centred * _pairs(usual)[0]
    found = []
    for name, row in _parts(plan, here, there).items():
        value = float((row * weights[blocks]).sum())
        error = None if covariance is None else _error(covariance, blocks, row)
        if abs(value) > 1e-12 or (error or 0.0) > 1e-12:
            found.append(Effect(name, value, error))
    total = None if covariance is None else _error(covariance, blocks, here)
    return tuple(sorted(found, key=lambda each: -abs(each.loss))), total


def _pairs(offered: Offered) -> tuple[Floats, Floats]:
    """Return features (K, p) and blocks (K,) of all that is offered."""
    pairs = [offered.stored(np.array([place])) for place in range(offered.count)]
    return np.concatenate([row for row, _ in pairs]), np.concatenate([block for _, block in pairs])


def _parts(plan: Plan, here: Floats, there: Floats) -> dict[str, Floats]:
    """Rows (K, p) whose products with the weights are the effects; together they are ``here``.

    ``there`` are the rows of the usual person, so that the effect of an action on all people is
    separated from the effects of this person's features.
    """
    parts: dict[str, Floats] = {}

    def add(name: str, rows: Floats, columns: list[int]) -> None:
        parts.setdefault(name, np.zeros_like(rows))[:, columns] += rows[:, columns]

    for name, columns in feature_groups(plan.features).items():
        common, personal = "for everybody", name
        if isinstance(plan.features, Joint):
            common = name.rpartition(" × ")[2]
            if name.startswith("products "):
                common, personal = "the action", "person × action"
        add(common, there, columns)
        add(personal, here - there, columns)
    return parts


def _error(covariance: Floats, blocks: Floats, rows: Floats) -> float:
    """Return the standard deviation of Σ rows·θ; rows of one block share its noise."""
    variance = 0.0
    for block in set(blocks.tolist()):
        if block < len(covariance):
            total = rows[blocks == block].sum(axis=0)
            variance += float(total @ covariance[block] @ total)
    return float(np.sqrt(max(variance, 0.0)))


def _usual(plan: Plan, mean: Floats | None, like: Floats) -> Floats:
    """Return the context of the usual person by the releases, else one without features."""
    usual = np.zeros_like(like)
    usual[:, 0] = like[:, 0]
    if mean is not None:
        width = like.shape[1]
        scale = plan.features.share if isinstance(plan.features, Joint) else 1.0
        usual[0, 1:] = np.clip(mean[1:width] / scale, -SQRT_HALF, SQRT_HALF)
    return usual


def _noise(plan: Plan, released: Released) -> tuple[Floats | None, Floats | None]:
    """Return the covariance of the newest weights, and the mean row, if statistics are published.

    The newest release holds both, since a page explains several decisions by it.
    """
    pooling, latest = plan.pooling, released.latest
    if pooling is None or latest is None or latest.statistics is None:
        return None, None
    if "_noise" not in vars(latest):
        sums = released.statistics
        vars(latest)["_noise"] = weight_covariance(pooling, sums), mean_row(pooling, sums)
    covariance, mean = vars(latest)["_noise"]
    return covariance, mean
