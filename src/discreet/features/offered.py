"""Features of offered actions, for requests that offer different actions.

A predictor gives one loss for each action that is offered, (..., n, K), for every K; policies do
not see the difference. All rows here are offered the same number of actions: ``offers.py`` puts
requests of one length together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays.backend import apply_rows, as_like, namespace
from discreet.arrays.linear_algebra import quadratic_forms
from discreet.features.joint import Joint
from discreet.types import Array


class OfferedRows(ABC):
    """Features of the offered actions, with the shape, type and device of their contexts."""

    contexts: Array

    @abstractmethod
    def scores(self, weights: Array) -> Array:
        """Weights (..., A or 1, p) -> scores (..., n, K)."""

    @abstractmethod
    def scores_of_each(self, weights: list[Array]) -> Iterator[Array]:
        """``scores`` of several predictors."""

    @abstractmethod
    def squares(self, blocks: Array) -> Array:
        """Quadratic forms of the pairs that are offered: (..., A or 1, p, p) -> (..., n, K)."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.contexts.shape)

    @property
    def dtype(self) -> Any:
        return self.contexts.dtype

    @property
    def device(self) -> Any:
        return self.contexts.device

    def __array_namespace__(self) -> Any:
        """Return the array library of the contexts. [Array API, "array_namespace"]"""
        return namespace(self.contexts)


@dataclass(frozen=True, eq=False, repr=False)
class OfferedBlocks(OfferedRows):
    """Actions that have a block of weights each: contexts (..., n, p), actions (..., n, K).

    ``actions`` are numbers of blocks. A release from before an action was added predicts for it the
    mean over the actions that it knows.
    """

    contexts: Array
    actions: Array

    @property
    def count(self) -> int:
        """K: how many actions each row is offered."""
        return int(self.actions.shape[-1])

    def scores(self, weights: Array) -> Array:
        return self._taken(apply_rows(self.contexts, self._for_all(weights)))

    def scores_of_each(self, weights: list[Array]) -> Iterator[Array]:
        return map(self.scores, weights)

    def squares(self, blocks: Array) -> Array:
        forms = quadratic_forms(self.contexts, as_like(blocks, self.contexts))
        if blocks.shape[-3] == 1:
            return namespace(forms).concat([forms] * self.count, axis=-1)
        missing = int(self.actions.max()) + 1 - blocks.shape[-3]
        if missing > 0:  # nothing is known of them: M = I
            own = (self.contexts * self.contexts).sum(-1)[..., None]
            forms = namespace(forms).concat([forms, *[own] * missing], axis=-1)
        return self._taken(forms)

    def errors(self, errors: Array) -> Array:
        """Errors of predictions (..., A) of the actions that are offered (..., n, K).

        An action that a release does not know has the largest of its errors.
        """
        xp = namespace(errors)
        missing = int(self.actions.max()) + 1 - errors.shape[-1]
        if missing > 0:
            largest = xp.max(errors, axis=-1, keepdims=True)
            errors = xp.concat([errors, *[largest] * missing], axis=-1)
        return self._taken(errors[..., None, :])

    def stored(self, chosen: Array) -> tuple[Array, Array]:
        """Rows (..., n, p) and blocks (..., n) of the chosen places, as a batch keeps them."""
        return self.contexts, _at(self.actions, chosen)

    def part(self, rows: object) -> OfferedBlocks:
        """Some of the rows."""
        return OfferedBlocks(self.contexts[..., rows, :], self.actions[..., rows, :])

    def _for_all(self, weights: Array) -> Array:
        missing = int(self.actions.max()) + 1 - weights.shape[-2]
        if missing <= 0:
            return weights
        xp = namespace(weights)
        mean = xp.mean(weights, axis=-2, keepdims=True)
        return xp.concat([weights, *[mean] * missing], axis=-2)

    def _taken(self, values: Array) -> Array:
        xp = namespace(values)
        shape = np.broadcast_shapes(values.shape[:-1], self.actions.shape[:-1])
        values = xp.broadcast_to(values, (*shape, values.shape[-1]))
        places = xp.broadcast_to(self.actions, (*shape, self.count))
        return xp.take_along_axis(values, places, axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class OfferedPairs(OfferedRows):
    """Actions with features: contexts (..., n, dc + 1), items (I, da + 1), actions (..., n, K).

    ``actions`` are places among the items; None offers all of them to everybody.
    """

    joint: Joint
    contexts: Array
    items: Array
    actions: Array | None = None

    @property
    def count(self) -> int:
        return int(self.items.shape[-2] if self.actions is None else self.actions.shape[-1])

    def scores(self, weights: Array) -> Array:
        return self._scores(weights)[..., 0]

    def scores_of_each(self, weights: list[Array]) -> Iterator[Array]:
        together = self._scores(namespace(weights[0]).concat(weights, axis=-2))
        return (together[..., place] for place in range(len(weights)))

    def _scores(self, weights: Array) -> Array:
        """(..., m, p) -> (..., n, K, m), without a row for each pair."""
        constant, context, action, products = self.joint.spread(weights)
        x, z = self.contexts[..., 1:], self._rows[..., 1:]
        base = apply_rows(x, context) + constant[..., None, :]  # (..., n, m)
        slopes = action[..., None, :, :]  # (..., 1, m, da)
        if products is not None:
            m, dc, da = products.shape[-3:]
            flat = namespace(x).moveaxis(products, -3, -2).reshape(*products.shape[:-3], dc, m * da)
            moved = x @ flat
            slopes = slopes + moved.reshape(*moved.shape[:-1], m, da)
        return z @ slopes.mT + base[..., None, :]

    def squares(self, blocks: Array) -> Array:
        rows = self.joint.rows(self.contexts[..., None, :], self._rows)
        flat = rows.reshape(*rows.shape[:-3], rows.shape[-3] * rows.shape[-2], rows.shape[-1])
        forms = quadratic_forms(flat, as_like(blocks, flat))[..., 0]
        return forms.reshape(*forms.shape[:-1], *rows.shape[-3:-1])

    def stored(self, chosen: Array) -> tuple[Array, Array]:
        """Joint features (..., n, p) of the chosen places; all are in block 0."""
        places = chosen if self.actions is None else _at(self.actions, chosen)
        return self.joint.rows(self.contexts, self.items[places]), 0 * chosen

    def part(self, rows: object) -> OfferedPairs:
        """Some of the rows."""
        some = None if self.actions is None else self.actions[..., rows, :]
        return replace(self, contexts=self.contexts[..., rows, :], actions=some)

    @cached_property
    def _rows(self) -> Array:
        """Features of the items that are offered: (..., n or 1, K, da + 1)."""
        return self.items[None] if self.actions is None else self.items[self.actions]


def _at(values: Array, places: Array) -> Array:
    """One of the values (..., n, K) of each row, by its place (..., n)."""
    xp = namespace(values)
    shape = np.broadcast_shapes(values.shape[:-1], places.shape)
    values = xp.broadcast_to(values, (*shape, values.shape[-1]))
    return xp.take_along_axis(values, xp.broadcast_to(places, shape)[..., None], axis=-1)[..., 0]


Offered = OfferedBlocks | OfferedPairs
