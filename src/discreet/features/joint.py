"""Features of a context and an action together, by a public rule: one block for all actions.

φ(c, a) = (1, ψ)/√2 with ‖ψ‖ ≤ 1, as rows of contexts alone are, so every sensitivity is that of
one block, however many actions there are. [docs/privacy/joint.md]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from discreet.arrays.backend import as_like, namespace
from discreet.errors import InvalidInput
from discreet.features.category import Category
from discreet.features.hashed import scrambled
from discreet.features.schema import MOST_FEATURES, Schema
from discreet.features.unit_ball import SQRT_HALF, UnitBall
from discreet.types import Array, Floats
from discreet.validate import instance, nearest, whole

KINDS = (UnitBall, Schema)
EVERYTHING, NOTHING = "all", "none"
FEW_PRODUCTS = 32
"""Up to so many products are taken as they are by default."""


@dataclass(frozen=True)
class Joint:
    """``context`` and ``action`` say how each becomes numbers; ``interactions`` what is multiplied.

    "all" are all products of the numbers of a context with those of an action; a whole number is
    the width to which a public projection with signs ±1 folds them; a list names pairs of fields,
    [("age", "genre")]; "none" leaves products out. None means all up to 32, and more folded to 32:
    each product costs noise, and without any everybody has the same order of actions. Parts of
    equal weight share the unit ball. An effect of one action alone comes with a field for its id:
    Hashed("id", 64) in ``action``, whose products with the context are a small block for each.

    >>> joint = Joint(UnitBall(2), UnitBall(1))
    >>> joint.p
    6
    >>> x, z = joint.context.map([[0.6, 0.8]]), joint.action.map([[0.5]])
    >>> (joint.rows(x, z) * 6**0.5).round(3)
    array([[1.732, 0.6  , 0.8  , 0.5  , 0.3  , 0.4  ]])
    """

    context: UnitBall | Schema
    action: UnitBall | Schema
    interactions: Any = None

    def __post_init__(self) -> None:
        for name in ("context", "action"):
            instance(name, getattr(self, name), KINDS, "Pass a Schema, or UnitBall(dimension).")
        if self.interactions is None:
            few = self._all <= FEW_PRODUCTS
            object.__setattr__(self, "interactions", EVERYTHING if few else FEW_PRODUCTS)
        given = self.interactions
        if isinstance(given, str) and given not in (EVERYTHING, NOTHING):
            raise InvalidInput(
                f"interactions must be 'all', 'none', a width or pairs of fields; got {given!r}. "
                f"{nearest(given, (EVERYTHING, NOTHING))}"
            )
        if isinstance(given, (int, np.integer)):
            step = "Give a width for a projection, or 'all' for every product."
            object.__setattr__(self, "interactions", whole("interactions", given, 1, step))
            if self.interactions >= self._all:
                raise InvalidInput(
                    f"interactions must be below {self._all}, the number of products; "
                    f"got {self.interactions}. Write interactions='all'."
                )
        elif not isinstance(given, str):
            object.__setattr__(self, "interactions", self._pairs(given))
        if self.p > MOST_FEATURES:
            raise InvalidInput(
                f"joint features must be at most {MOST_FEATURES}; got {self.p}. "
                "Give interactions= a width, or pairs of fields."
            )

    def _pairs(self, given: Any) -> tuple[tuple[Any, Any], ...]:
        """Pairs of a field of the context and one of the action, each once."""
        pairs = list(given) if isinstance(given, Sequence) else [given]
        listed = [isinstance(each, Sequence) and not isinstance(each, str) for each in pairs]
        named = tuple(tuple(each) for each in pairs) if all(listed) else ()
        if not named or len(set(named)) != len(named) or {*map(len, named)} != {2}:
            raise InvalidInput(
                "interactions must be one or more distinct pairs of a context's field and an "
                f"action's; got {given!r}. Write [('age', 'genre')] with names of yours, or 'none'."
            )
        for kind, names in zip(("context", "action"), zip(*named, strict=True), strict=True):
            known = columns_of(getattr(self, kind))
            unknown = next((name for name in names if name not in known), None)
            if unknown is not None:
                raise InvalidInput(
                    f"interactions must name fields of the {kind}; got {unknown!r}. "
                    f"{nearest(str(unknown), map(str, known))}"
                )
        return tuple((left, right) for left, right in named)

    @property
    def _all(self) -> int:
        return (self.context.p - 1) * (self.action.p - 1)

    @cached_property
    def products(self) -> int:
        """The number of features that are products."""
        if self.interactions == NOTHING:
            return 0
        if self.interactions == EVERYTHING:
            return self._all
        if isinstance(self.interactions, int):
            return self.interactions
        return len(self.chosen)

    @property
    def p(self) -> int:
        """Number of features, bias included."""
        return self.context.p + self.action.p - 1 + self.products

    def map(self, contexts: object) -> Floats:
        """Contexts as numbers (n, dc + 1); ``rows`` joins them with actions."""
        return self.context.map(contexts)

    def is_single(self, contexts: object) -> bool:
        """Return whether this is one context rather than many."""
        return self.context.is_single(contexts)

    def rows(self, contexts: Array, actions: Array) -> Array:
        """φ of pairs: (..., dc + 1) and (..., da + 1) -> (..., p).

        Privacy: the first entry is √½, and the squares of the rest add up to at most ½.
        [docs/privacy/joint.md, "Claim"]
        """
        xp = namespace(contexts)
        x, z = contexts[..., 1:], as_like(actions, contexts)[..., 1:]
        shape = np.broadcast_shapes(x.shape[:-1], z.shape[:-1])
        x, z = xp.broadcast_to(x, (*shape, x.shape[-1])), xp.broadcast_to(z, (*shape, z.shape[-1]))
        first = xp.full_like(x[..., :1], SQRT_HALF)
        parts = [first, self.share * x, self.share * z]
        if self.products:
            each = (x[..., :, None] * z[..., None, :]).reshape(*shape, self._all)
            parts.append(self.share * math.sqrt(2.0) * self._folded(each))
        return xp.concat(parts, axis=-1)

    def spread(self, weights: Array) -> tuple[Array, Array, Array, Array | None]:
        """Weights (..., m, p) in parts: a score is a few products with contexts and actions.

        They are those of the constant (..., m), of contexts (..., m, dc), of actions (..., m, da)
        and of products (..., m, dc, da), if there are any.
        """
        dc, da = self.context.p - 1, self.action.p - 1
        ends = 1 + dc, 1 + dc + da
        products = None
        if self.products:
            flat = self._unfolded(weights[..., ends[1] :]) * (self.share * math.sqrt(2.0))
            products = flat.reshape(*flat.shape[:-1], dc, da)
        return (
            weights[..., 0] * SQRT_HALF,
            weights[..., 1 : ends[0]] * self.share,
            weights[..., ends[0] : ends[1]] * self.share,
            products,
        )

    @property
    def share(self) -> float:
        """Each of two or three parts, of length at most one, takes the same share of the ball."""
        return math.sqrt(1.0 / (3.0 if self.products else 2.0))

    @cached_property
    def chosen(self) -> Floats:
        """Places of the products of named pairs among all products."""
        da, places = self.action.p - 1, []
        for left, right in self.interactions:
            rows, columns = columns_of(self.context)[left], columns_of(self.action)[right]
            places += [row * da + column for row in rows for column in columns]
        return np.asarray(places)

    @cached_property
    def _fold(self) -> tuple[Floats, Floats]:
        """The folded product of each product, and its factor.

        Products are dealt out in the order of a public hash, so each sum has as many as the others,
        give or take one; signs come from the same hash. Sums of n products are divided by √n, so
        that the rows of the projection are orthonormal and no vector becomes longer.
        """
        hashes = scrambled(np.arange(self._all, dtype=np.uint32))
        order = np.argsort(hashes, kind="stable")
        place = np.empty(self._all, dtype=np.int64)
        place[order] = np.arange(self._all) % self.interactions
        signs = np.where(hashes & 1, 1.0, -1.0)
        return place, signs / np.sqrt(np.bincount(place)[place])

    @cached_property
    def _matrix(self) -> Floats:
        """The projection (all products, width)."""
        place, factor = self._fold
        matrix = np.zeros((self._all, self.products))
        matrix[np.arange(self._all), place] = factor
        return matrix

    def _folded(self, products: Array) -> Array:
        if self.interactions == EVERYTHING:
            return products
        if isinstance(self.interactions, int):
            return products @ as_like(self._matrix, products)
        return products[..., self.chosen]

    def _unfolded(self, weights: Array) -> Array:
        if self.interactions == EVERYTHING:
            return weights
        if isinstance(self.interactions, int):
            place, factor = self._fold
            return weights[..., place] * as_like(factor, weights)
        xp = namespace(weights)
        whole_row = xp.zeros_like(weights[..., :1]) + as_like(np.zeros(self._all), weights)
        whole_row[..., self.chosen] = weights
        return whole_row


def columns_of(features: UnitBall | Schema) -> dict[Any, range]:
    """The place of each field among the numbers, the constant left out."""
    if isinstance(features, UnitBall):
        return {column: range(column, column + 1) for column in range(features.dimension)}
    return features.spans


def feature_names(features: UnitBall | Schema | Joint) -> list[str]:
    """A word for each of the p features, the constant first.

    >>> from discreet.features.number import Number
    >>> feature_names(Schema([Number("age", 0, 100), Category("device", ["phone", "desk"])]))
    ['constant', 'age', 'age²', 'device = phone', 'device = desk']
    """
    if isinstance(features, Joint):
        context, action = _numbers(features.context), _numbers(features.action)
        action = [f"action's {name}" for name in action]
        return ["constant", *context, *action, *_products(features, context, action)]
    return ["constant", *_numbers(features)]


def feature_groups(features: UnitBall | Schema | Joint) -> dict[str, list[int]]:
    """The features of each field, or product of fields.

    >>> from discreet.features.number import Number
    >>> feature_groups(Schema([Number("age", 0, 100), Category("device", ["phone", "desk"])]))
    {'constant': [0], 'age': [1, 2], 'device': [3, 4]}
    """
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(feature_names(features)):
        parts = [part.split(" = ")[0].removesuffix("²") for part in name.split(" × ")]
        parts = [part.removesuffix(" missing").split("[")[0] or part for part in parts]
        groups.setdefault(" × ".join(parts), []).append(place)
    return groups


def _numbers(features: UnitBall | Schema) -> list[str]:
    if isinstance(features, UnitBall):
        return [f"[{column}]" for column in range(features.dimension)]
    names: dict[str, list[str]] = {}
    for field, span in zip(features.fields, features.spans.values(), strict=True):
        parts = [field.name]
        if isinstance(field, Category):
            parts = [f"{field.name} = {value}" for value in field.values]
        elif field.width > 1:
            parts = [f"{field.name}[{place}]" for place in range(field.width)]
        if field.indicator:
            parts.append(f"{field.name} missing")
        if len(parts) < len(span):
            parts.append(f"{field.name}²")
        names[field.name] = parts
    single = [name for parts in names.values() for name in parts]
    plain = {
        name: [each for each in parts if not each.endswith("²")] for name, parts in names.items()
    }
    chosen = (product(*(plain[name] for name in fields)) for fields in features.products)
    return single + [" × ".join(each) for some in chosen for each in some]


def _products(joint: Joint, context: list[str], action: list[str]) -> list[str]:
    names = [f"{left} × {right}" for left in context for right in action]
    if joint.interactions == EVERYTHING:
        return names
    if joint.interactions == NOTHING:
        return []
    if isinstance(joint.interactions, int):
        return [f"products {number}" for number in range(joint.interactions)]
    return [names[place] for place in joint.chosen]
