"""A classifier in the shape of scikit-learn: a plan with full feedback, a learner, its releases.

The right class fixes the loss of every action, so each row has all losses, and the learner
behind it is the paper's Supervised. There is no other mechanism here than that of ``Learner``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.data.dataset import column_contexts
from discreet.errors import InvalidInput, NotReady
from discreet.features.frames import is_frame
from discreet.features.number import Number
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.learner import Learner
from discreet.oracles import Oracle, PooledRidge
from discreet.plan.plan import Plan
from discreet.policies import Greedy
from discreet.privacy.accounting import epsilon
from discreet.privacy.budget import Budget
from discreet.privacy.events import Event, compose
from discreet.privacy.noise import Noise, SecureNoise, SeededNoise
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.types import Array, Contexts, Floats


def on_the_simplex(scores: Floats) -> Floats:
    """Return the nearest rows with entries of at least 0 that sum to 1.

    [Duchi et al. 2008, Figure 1]

    >>> on_the_simplex(np.array([[0.5, 0.5], [1.5, 0.1], [0.2, -0.4]]))
    array([[0.5, 0.5],
           [1. , 0. ],
           [0.8, 0.2]])
    """
    falling = -np.sort(-scores, axis=-1)
    counts = np.arange(1, scores.shape[-1] + 1)
    shifts = (np.cumsum(falling, axis=-1) - 1.0) / counts
    positive = (falling > shifts).sum(axis=-1, keepdims=True)
    return np.asarray(np.maximum(scores - np.take_along_axis(shifts, positive - 1, axis=-1), 0.0))


FROM_LABELS = "from labels"
"""The value of ``classes`` where the set of occurring labels is public."""
NO_LABELS = "no_validation"
"""scikit-learn's word for rows without labels; None would be forgotten labels."""


class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear classification whose weights are (ε, δ)-private for one row.

    ``epsilon`` and ``delta`` are the budget, ``oracle`` how weights are fitted (None: the default).
    ``classes`` are declared: the labels that occur may reveal a person. If they are public,
    pass ``classes="from labels"``. Columns become features by a public rule: with ``bounds`` (low,
    high), numbers or one per column, values are clamped to the range; ``features`` may be a
    ``Schema`` or ``UnitBall`` instead; with neither, rows longer than 1 are shortened to 1.

    ``fit`` starts again and spends ε on its rows. Fitting again reveals more about rows that are in
    both fits, so ``spent_`` adds up all fits of this object; cross-validation is as many fits.
    ``partial_fit`` goes on: its rows must be new ones, and cost ε once. They wait until a batch is
    full, and predictions change with its release. A copy predicts, and cannot go on.

    An int as ``random_state`` makes runs repeatable and not private; ``spent_`` is then ∞.

    >>> x = np.random.default_rng(0).uniform(-1, 1, size=(2_000, 2))
    >>> y = np.where(x[:, 0] > 0, "yes", "no")
    >>> model = PrivateClassifier(epsilon=2.0, classes=["no", "yes"], bounds=(-1, 1)).fit(x, y)
    >>> bool(model.score(x, y) > 0.8), model.spent_ <= 2.0
    (True, True)
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        classes: Array = None,
        bounds: Array = None,
        features: UnitBall | Schema | None = None,
        oracle: Oracle | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.bounds = bounds
        self.features = features
        self.oracle = oracle
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on few rows noise is all there is
        return tags

    def fit(self, X: Contexts, y: Array) -> PrivateClassifier:
        """Learn from rows (n, d) and their labels, and forget them; ε for each of the rows."""
        contexts, labels = self._checked(X, y, reset=True)
        self.classes_ = self._declared(self.classes, labels)
        losses = self._losses(labels)
        learner = self._new_learner(len(labels))
        try:
            learner.import_log(contexts, None, losses)
        finally:
            if learner.ledger.entries:  # what is refused costs nothing, and the old model stays
                self._record(learner)
        return self

    def partial_fit(self, X: Contexts, y: Array, classes: Array = None) -> PrivateClassifier:
        """Learn from rows that were in no call before; they are released batch by batch."""
        learner = getattr(self, "_learner", None)
        contexts, labels = self._checked(X, y, reset=learner is None)
        if learner is None:
            if hasattr(self, "released_"):
                raise InvalidInput(
                    "partial_fit must go on with the object that was fitted; this is a copy. "
                    "Go on with the original, or call fit."
                )
            self.classes_ = self._declared(self.classes if classes is None else classes, labels)
        elif classes is not None and not np.array_equal(self._declared(classes), self.classes_):
            raise InvalidInput(
                f"classes must be those of the first call, {self.classes_.tolist()}; got others. "
                "Leave them out, or call fit to start again."
            )
        losses = self._losses(labels)
        learner = learner or self._new_learner(None)
        learner.observe(learner.decide(contexts).id, losses)
        try:
            with suppress(NotReady):
                while True:
                    learner.release()
        finally:
            self._record(learner)
        return self

    @property
    def spent_(self) -> float:
        """ε at ``delta`` of a row that was in every fit of this object."""
        check_is_fitted(self, "released_")
        events: list[Event] = self._events
        return epsilon(compose(*events), float(self.delta))

    @property
    def release_(self) -> Release | None:
        """The newest release, which predicts; None before the first batch is full."""
        check_is_fitted(self, "released_")
        released: Released = self.released_
        return released.latest

    def predict_proba(self, X: Contexts) -> Floats:
        """Return probabilities (n, classes): one minus predicted losses, on the simplex."""
        check_is_fitted(self, "released_")
        contexts, _ = self._checked(X, reset=False)
        features = self._features().map(contexts)
        if self.release_ is None:
            return np.full((len(features), len(self.classes_)), 1.0 / len(self.classes_))
        return on_the_simplex(1.0 - self.release_.predictor.losses(features))

    def predict(self, X: Contexts) -> Array:
        """Return the class with the largest probability."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __getstate__(self) -> dict[str, object]:
        # Rows that wait stay here, and two copies must not draw two noises for one batch.
        return {name: value for name, value in super().__getstate__().items() if name != "_learner"}

    def _checked(
        self, X: Contexts, y: Array = NO_LABELS, *, reset: bool
    ) -> tuple[Contexts, Floats]:
        """Return contexts as the plan reads them, and labels as an array."""
        by_name = isinstance(self.features, Schema) and is_frame(X)
        options = {"dtype": np.float64, "reset": reset, "skip_check_array": by_name}
        if y is NO_LABELS:
            rows, labels = validate_data(self, X, **options), np.empty(0)
        else:
            rows, labels = validate_data(self, X, y, **options)
            labels = np.asarray(labels)
            check_classification_targets(labels)
        columns = self._features()
        if by_name or not isinstance(columns, Schema):
            return rows, labels
        if rows.shape[1] != len(columns.fields):
            raise InvalidInput(
                f"X must have {len(columns.fields)} columns, one for each field of the schema; got "
                f"{rows.shape[1]}. Send them in the order of the fields, or as a frame."
            )
        names = [field.name for field in columns.fields]
        return column_contexts(columns, dict(zip(names, rows.T, strict=True))), labels

    def _features(self) -> UnitBall | Schema:
        """Return the public map from columns to features."""
        if self.features is not None:
            if self.bounds is not None:
                raise InvalidInput(
                    "bounds must be left out where features are declared; got both. "
                    "A schema has ranges already."
                )
            return self.features
        width = int(self.n_features_in_)
        if self.bounds is None:
            return UnitBall(width)
        try:
            low, high = (
                np.broadcast_to(np.asarray(end, dtype=np.float64), (width,)) for end in self.bounds
            )
        except (TypeError, ValueError):
            raise InvalidInput(
                f"bounds must be (low, high), each a number or {width} of them; got "
                f"{self.bounds!r}. Declare a public range: it must not come from the data."
            ) from None
        ends = enumerate(zip(low.tolist(), high.tolist(), strict=True))
        return Schema([Number(f"x{column}", *each, clip=True) for column, each in ends])

    def _declared(self, classes: Array, labels: Array = None) -> Array:
        if isinstance(classes, str) and classes == FROM_LABELS and labels is not None:
            classes = labels
        found = np.unique([] if classes is None or isinstance(classes, str) else classes)
        if len(found) < 2:
            raise InvalidInput(
                f"classes must be a list of all classes, two or more; got {len(found)} class. "
                f"Declare all, or write classes={FROM_LABELS!r} if it is public which labels occur."
            )
        return found

    def _losses(self, labels: Array) -> Floats:
        """Losses (n, classes): 0 for the class of a row, and 1 for the others."""
        if not np.isin(labels, self.classes_).all():
            raise InvalidInput(
                "y must hold declared classes only; some labels are others. Declare them too, or "
                "leave these rows out."
            )
        return np.asarray(labels[:, None] != self.classes_, dtype=np.float64)

    def _new_learner(self, imported: int | None) -> Learner:
        plan = Plan(
            n_actions=len(self.classes_),
            features=self._features(),
            budget=Budget(self.epsilon, self.delta),
            policy=Greedy(),
            oracle=PooledRidge() if self.oracle is None else self.oracle,
            feedback="full",
            losses="one_label",
            imported=imported,
        )
        seed = self.random_state
        noise: Noise = SecureNoise() if seed is None else SeededNoise(int(seed))
        return Learner(plan, window=None, noise=noise)

    def _record(self, learner: Learner) -> None:
        """Store the public parts: releases, and the charges for them."""
        events = [*getattr(self, "_events", [])]
        if getattr(self, "_learner", None) is not learner:
            self._learner = learner
            events.append(compose())
        if learner.ledger.entries:  # a row is in one batch, and all batches cost the same
            events[-1] = learner.ledger.entries[-1].event
        self._events, self.released_ = events, learner.released
