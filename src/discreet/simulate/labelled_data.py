"""Labelled sets before they are played: labels or losses of every action, advice on contexts.

Advice looks at all rows, so it is for public or simulated sets: a learner, whose rows are private,
never gives any. [docs/warnings.md]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.batches.observations import action_columns, evaluation_data
from discreet.design.outcome import UNIT_LOSS, Outcome, Reward
from discreet.errors import InvalidInput
from discreet.features.schema_file import is_identifier
from discreet.features.unit_ball import UnitBall
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget
from discreet.simulate.played_batches import (
    PlayedOffers,
    context_free_offer_losses,
    offers_alone,
)
from discreet.text import advise, listed
from discreet.types import Array, Contexts, NumpyArray, Values
from discreet.validate import nearest

LONG = 0.5
"""Share of rows longer than 1 from which on their length is worth a warning."""
DOMINANT = 0.95
"""Share of all squares in one column from which on the other columns hardly count."""


@dataclass(frozen=True, eq=False, repr=False)
class LabelledSet:
    """A set for a plan: mapped features or offers, and the truth for ``play``, row by row."""

    plan: Plan
    features: NumpyArray | PlayedOffers
    truth: NumpyArray
    groups: Values
    users: Values

    @classmethod
    def read(
        cls,
        plan: Plan | None,
        contexts: Contexts,
        labels: Values,
        *,
        losses: Values = None,
        rewards: Values = None,
        offers: Values = None,
        groups: Values = None,
        users: Values = None,
    ) -> LabelledSet:
        """Check and convert what ``evaluate`` is given; without a plan, for the default one.

        Without a plan actions have no names, and rewards no declared range.
        """
        reading = None if plan is None else plan.contexts
        given = evaluation_data(reading, contexts, groups, labels=labels, users=users)
        labels, users = given.columns["labels"], given.columns["users"]
        outcomes = {"labels": labels, "losses": losses, "rewards": rewards}
        losses = _given_losses(plan, contexts, len(given.contexts), offers, **outcomes)
        if plan is None:
            plan = _default_plan(given.contexts, labels, losses, users)
        features: Array = plan.features.map(given.contexts)
        if offers is not None or plan.catalogue is not None:
            if groups is not None:
                raise InvalidInput(
                    "groups must be left out where rounds offer different actions; got some. "
                    "Evaluate each group alone."
                )
            features, truth = played_offers(plan, features, offers, labels, losses)
        else:
            truth = _truth_of(plan, len(features), labels, losses)
        if isinstance(plan.contexts, UnitBall):  # a schema scales by declared ranges
            rows = np.atleast_2d(np.asarray(given.contexts, dtype=np.float64))
            for topic, words in findings(rows, given.context_names):
                advise(topic, words, stacklevel=4)
        by = given.columns.get("groups")
        return cls(plan, features, truth, by, users)

    def __len__(self) -> int:
        return len(self.truth)

    def in_order(self, order: NumpyArray) -> tuple[NumpyArray | PlayedOffers, NumpyArray]:
        """Return features and truth of some rows."""
        features = self.features
        some = features.part(order) if isinstance(features, PlayedOffers) else features[order]
        return some, self.truth[order]

    def context_free(self, order: NumpyArray) -> tuple[float, float]:
        """Return mean losses of the best fixed action and of uniform actions on some rows."""
        features, truth = self.in_order(order)
        if isinstance(features, PlayedOffers):
            return context_free_offer_losses(features, truth)
        return context_free_losses(truth, self.plan.n_actions)


def context_free_losses(truth: NumpyArray, n_actions: int) -> tuple[float, float]:
    """Return mean losses of the best fixed action and of uniform actions."""
    if truth.ndim == 2:
        means = truth.mean(axis=0)
    else:
        means = 1.0 - np.bincount(truth, minlength=n_actions) / len(truth)
    return float(means.min()), float(means.mean())


def played_offers(
    plan: Plan, features: NumpyArray, offers: Values, labels: Values, losses: Values
) -> tuple[PlayedOffers, NumpyArray]:
    """Return the offers of all rounds and their losses (T, K), NaN beyond a round's size."""
    played = offers_alone(plan, features, offers)
    if offers is not None:
        return played, _offered_table(played, labels, losses)
    truth = _truth_of(plan, len(features), labels, losses)
    if truth.ndim == 1:
        truth = np.asarray(np.arange(plan.n_actions) != truth[:, None], dtype=np.float64)
    return played, truth


def _truth_of(plan: Plan, rows: int, labels: Values, losses: Values) -> NumpyArray:
    """Return labels (rows,) as actions, or losses (rows, A)."""
    if losses is not None:
        return _loss_table(losses, rows, plan.n_actions, plan.losses)
    return label_actions(labels, rows, plan.n_actions, plan.actions)


def _given_losses(
    plan: Plan | None, contexts: Contexts, rows: int, offers: Values, **given: Values
) -> Values:
    """Return the losses of all actions, converted where rewards were given; None for labels."""
    names = [name for name, values in given.items() if values is not None]
    if len(names) != 1:
        raise InvalidInput(
            f"labels, losses or rewards must be given, and only one of them; got "
            f"{' and '.join(names) or 'none'}. Pass labels for the right action of each context, "
            "losses= for what each action costs, or rewards= for what it earns."
        )
    values = given["losses"] if given["rewards"] is None else given["rewards"]
    if offers is None:
        values = action_columns(values, None if plan is None else plan.actions, contexts)
    if given["rewards"] is None:
        return values
    outcome = declared_rewards(plan)
    if offers is not None:
        return [outcome.losses_of(each, np.shape(each)) for each in values]
    assert plan is not None
    table = _action_table("rewards", values, rows, plan.n_actions)
    return outcome.losses_of(table, table.shape)


def declared_rewards(plan: Plan | None) -> Outcome:
    """Return the range of rewards that a plan declares."""
    outcome = UNIT_LOSS if plan is None else plan.outcome
    if not isinstance(outcome, Reward):
        raise InvalidInput(
            f"rewards must be of a plan that declares a range of rewards; got {outcome!r}. "
            "Make it with Plan(…, outcome=Reward(low, high)), or pass losses=."
        )
    return outcome


def _default_plan(contexts: Contexts, labels: Values, losses: Values, users: Values) -> Plan:
    table = np.asarray(contexts)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise InvalidInput(
            "contexts must be a table of numbers unless a plan is given; got something else. Add "
            "plan=Plan(..., features=Schema([...])) to say what the columns mean."
        )
    array = np.asarray(labels)
    if losses is not None:
        n_actions = np.shape(losses)[-1] if np.ndim(losses) == 2 else 2
    elif array.dtype.kind in "iuf" and array.size and np.isfinite(array).all():
        n_actions = int(array.max()) + 1
    else:
        n_actions = len(set(map(str, array.ravel())))
    unit, features = "decision" if users is None else "user", UnitBall(table.shape[1])
    return Plan(n_actions=max(2, n_actions), features=features, budget=Budget.none(), unit=unit)


def label_actions(
    labels: Values, rows: int, n_actions: int, names: Sequence[str] | None = None
) -> NumpyArray:
    """Return labels (rows,) as actions 0 … A−1.

    Whole numbers are actions already. Words and other classes become actions in sorted order, so
    there must be A of them; where the plan has names for its actions, words are these names.

    >>> label_actions(["no", "yes", "no"], 3, 2)
    array([0, 1, 0])
    >>> label_actions(["call", "mail"], 2, 3, names=["none", "mail", "call"])
    array([2, 1])
    """
    try:
        array = np.asarray(labels)
        if array.dtype.kind == "U" and not isinstance(labels, np.ndarray):
            array = np.asarray(labels, dtype=object)  # in a list NaN would become a word
    except ValueError:  # lists of different lengths
        array = np.empty((0, 0))
    if array.shape != (rows,) or not rows:
        raise InvalidInput(
            f"labels must be one class per context, {rows} of them; got shape {array.shape}. "
            f"Pass a one-dimensional array of 0 … {n_actions - 1} or of words; for a loss of each "
            "action, pass losses=."
        )
    if array.dtype.kind in "iufb":  # False is 0 and True is 1, also in sorted order
        return _numbered(array, n_actions)
    words = [each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in array]
    numbers = [each for each in words if each is None or isinstance(each, (int, float, np.number))]
    if len(numbers) == rows or any(each is None or each != each for each in numbers):
        return _numbered(np.asarray(numbers, dtype=np.float64), n_actions)
    return _named(list(map(str, words)), n_actions, names)


def _named(words: list[str], n_actions: int, names: Sequence[str] | None) -> NumpyArray:
    from discreet.data.dataset import in_order  # discreet alone needs no data

    found = list(names) if names is not None else in_order(set(words))
    actions = {word: action for action, word in enumerate(found)}
    for word in words:
        if word not in actions:
            raise InvalidInput(
                f"labels must be names of actions, {', '.join(map(repr, found))}; got {word!r}. "
                f"{nearest(word, found)}"
            )
    if len(found) != n_actions:
        # With too few words the absent action is unknown.
        step = f"Encode the classes as 0 … {n_actions - 1} yourself"
        if len(found) > n_actions:
            step = f"Make the plan with n_actions={len(found)}"
        raise InvalidInput(
            f"labels must be of {n_actions} classes, one for each action; got {len(found)}: "
            f"{listed(found)}. {step}."
        )
    return np.asarray([actions[word] for word in words], dtype=np.int64)


def _numbered(array: NumpyArray, n_actions: int) -> NumpyArray:
    if np.isnan(array).any():
        raise InvalidInput(
            "labels must be given for every context; some are missing. Drop those rows first."
        )
    if not (array % 1 == 0).all():  # infinity has no remainder
        raise InvalidInput(
            "labels must be classes; got fractions or infinity. Cut a target into classes "
            "first, for example with np.digitize(labels, borders)."
        )
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= n_actions:
        step = "Set n_actions of the plan to the number of classes, and number them from 0."
        if len(np.unique(array)) <= n_actions:
            step = "Number the classes: pass np.unique(labels, return_inverse=True)[1]."
        raise InvalidInput(
            f"labels must be actions 0 … {n_actions - 1}; got {low} … {high}. {step}"
        )
    return array.astype(np.int64)


def _loss_table(losses: Values, rows: int, n_actions: int, structure: str) -> NumpyArray:
    """Return losses (rows, A) in [0, 1], of the structure that the plan declares."""
    array = _action_table("losses", losses, rows, n_actions)
    _check_losses(array)
    ones = (array == 0.0).sum(axis=1) == 1
    if structure == "one_label" and not bool((ones & (array.sum(axis=1) == n_actions - 1)).all()):
        raise InvalidInput(
            "losses must be 0 for one action of a row and 1 for the others, as the plan's "
            "losses='one_label' says; some rows are not. Make the plan with losses='general'."
        )
    return array


def _check_losses(array: NumpyArray) -> None:
    if not bool(((array >= 0.0) & (array <= 1.0)).all()):
        raise InvalidInput(
            "losses must be numbers in [0, 1]; some are not. Rescale them with a fixed public "
            "range: (losses - low) / (high - low). Rewards go into rewards=, in their own units."
        )


def _action_table(name: str, values: Values, rows: int, n_actions: int) -> NumpyArray:
    """Return numbers (rows, A), or refuse another shape."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (rows, n_actions) or not rows:
        raise InvalidInput(
            f"{name} must be numbers of shape ({rows}, {n_actions}), a row per context and a "
            f"column per action; got shape {array.shape}. With one class per context, pass labels "
            "instead."
        )
    return array


def _offered_table(played: PlayedOffers, labels: Values, losses: Values) -> NumpyArray:
    """Return losses (T, K) of the offered actions, NaN beyond a round's size."""
    inside = played.inside
    if losses is None:
        wrong = np.arange(inside.shape[1]) != played.places_of(labels)[:, None]
        return np.where(inside, wrong.astype(np.float64), np.nan)
    given = [np.asarray(row, dtype=np.float64).reshape(-1) for row in losses]
    if list(map(len, given)) != inside.sum(axis=1).tolist():
        raise InvalidInput(
            "losses must have a number for each action that a context is offered; some rows have "
            "more or fewer. Give as many losses as actions in each offer, in the same order."
        )
    table = np.full(inside.shape, np.nan)
    table[inside] = np.concatenate(given)
    _check_losses(table[inside])
    return table


def findings(contexts: NumpyArray, columns: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield topic and words of everything that is odd about contexts (n, d)."""
    rows, width = contexts.shape
    names = list(map(repr, columns)) or list(map(str, range(1, width + 1)))
    both = zip(names, contexts.T, strict=True)
    ids = [name for name, column in both if is_identifier(column, name.strip("'"))]
    if ids:
        yield (
            "identifiers",
            f"column {', '.join(ids)} looks like an identifier: it has another whole number in "
            "each row. Leave it out: nothing that is learned from it holds for the next person.",
        )
    largest = max(float(np.abs(contexts).max(initial=0.0)), 1.0)
    squares = (contexts / largest) ** 2  # so that none overflows
    long = float((squares.sum(axis=1) > largest**-2).mean())
    shares = squares.sum(axis=0) / max(float(squares.sum()), np.finfo(float).tiny)
    if width > 1 and shares.max() > DOMINANT and not ids:
        yield (
            "a-column-that-dominates",
            f"column {names[int(shares.argmax())]} makes up {shares.max():.0%} of the squared "
            "length of all rows, so the others hardly count. Declare ranges with a Schema.",
        )
    if long > LONG:
        yield (
            "long-rows",
            f"{long:.0%} of {rows:,} rows are longer than 1 and are shortened to 1, so their "
            "length is lost. Scale columns by public ranges: declare a Schema.",
        )
