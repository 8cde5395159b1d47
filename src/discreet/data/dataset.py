"""A labelled set as a bandit problem: contexts, labels, and the truth where it is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Dataset:
    """Contexts (n, d) of finite numbers and labels (n,) in 0 … A−1.

    Action a has loss 0 where the label is a, and 1 otherwise. Generated sets know more:
    ``expected`` (n, A) is the expected loss of each action in each context, and ``weights``
    (A, d + 1) the θ_a behind it, for features (1, c̄)/√2.
    """

    name: str
    contexts: np.ndarray[Any, Any] = field(repr=False)
    labels: np.ndarray[Any, Any] = field(repr=False)
    n_actions: int
    expected: np.ndarray[Any, Any] | None = field(default=None, repr=False)
    weights: np.ndarray[Any, Any] | None = field(default=None, repr=False)

    @property
    def rows(self) -> int:
        return int(self.contexts.shape[0])

    @property
    def dimension(self) -> int:
        return int(self.contexts.shape[1])

    @property
    def best_loss(self) -> float | None:
        """Mean loss of the best policy that sees the context; None where nobody knows it."""
        return None if self.expected is None else float(self.expected.min(axis=-1).mean())


def labelled(name: str, contexts: Any, labels: Any) -> Dataset:
    """A checked ``Dataset``; classes become 0 … A−1 in sorted order."""
    contexts, labels = np.asarray(contexts), np.asarray(labels)
    if contexts.ndim != 2 or contexts.dtype.kind not in "fiub" or 0 in contexts.shape:
        raise InvalidInput(
            f"contexts of {name} must be a table of numbers with rows and columns; got shape "
            f"{contexts.shape} of {contexts.dtype}. Encode categories as numbers first."
        )
    contexts = contexts.astype(np.float64)
    if not np.isfinite(contexts).all():
        raise InvalidInput(
            f"contexts of {name} must be finite; got NaN or infinity. "
            "Fill or drop the missing entries first."
        )
    if labels.shape != contexts.shape[:1] or labels.dtype.kind not in "fiubUS":
        raise InvalidInput(
            f"labels of {name} must be one class per row; got shape {labels.shape} of "
            f"{labels.dtype} for {contexts.shape[0]} rows. Store them as a one-dimensional array."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InvalidInput(
            f"labels of {name} must be finite; got NaN or infinity. Drop rows without a label."
        )
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInput(
            f"labels of {name} must name at least 2 classes; got {len(classes)}. "
            "A bandit needs two actions to choose from."
        )
    if labels.dtype.kind == "f" and not (classes == np.floor(classes)).all():
        raise InvalidInput(
            f"labels of {name} must be classes, words or whole numbers; got fractions. "
            "Put the class in the last column, or cut a target into classes first."
        )
    return Dataset(name, contexts, codes.reshape(-1).astype(np.int64), len(classes))
