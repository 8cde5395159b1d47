"""Products of named columns: the outer product of their vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidInput
from discreet.types import NumpyArray
from discreet.validate import nearest


@dataclass(frozen=True)
class Span:
    """The place of a field among the features, its indicator included and its square left out."""

    start: int
    width: int
    units: int


@dataclass(frozen=True)
class Product:
    """The outer product of some fields, and where it stands."""

    spans: tuple[Span, ...]
    start: int

    @property
    def width(self) -> int:
        return math.prod(span.width for span in self.spans)

    @property
    def units(self) -> int:
        """A bound on its squared length: that of each field is at most its number of units."""
        return math.prod(span.units for span in self.spans)

    def write(self, rows: NumpyArray) -> None:
        """Multiply the fields of rows (n, width of all), in place."""
        vectors = [rows[:, span.start : span.start + span.width] for span in self.spans]
        made = vectors[0]
        for vector in vectors[1:]:
            width = made.shape[1] * vector.shape[1]
            made = (made[:, :, None] * vector[:, None, :]).reshape(len(rows), width)
        rows[:, self.start : self.start + self.width] = made


def checked_products(products: Any, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Tuples of two or more distinct names each, none twice."""
    listed = isinstance(products, Sequence) and not isinstance(products, str)
    rows = list(products) if listed else [products]
    seen: set[frozenset[str]] = set()
    for each in rows:
        several = isinstance(each, Sequence) and not isinstance(each, str)
        if not several or len(each) < 2 or len(set(map(str, each))) != len(each):
            raise InvalidInput(
                "products must be a list of products of two or more distinct fields; "
                f"got {each!r}. Write [('age', 'device')] with names of yours."
            )
        for name in each:
            if name not in names:
                raise InvalidInput(
                    f"products must name fields of the schema; got {name!r}. {nearest(name, names)}"
                )
        if frozenset(each) in seen:
            raise InvalidInput(
                f"products must be distinct; got {tuple(each)!r} twice. Leave one of them out."
            )
        seen.add(frozenset(each))
    return tuple(tuple(each) for each in rows)


def placed_products(
    products: Sequence[Sequence[str]], spans: Mapping[str, Span], start: int
) -> list[Product]:
    """The products one after the other, from the place where the fields end."""
    placed = []
    for names in products:
        placed.append(Product(tuple(spans[name] for name in names), start))
        start += placed[-1].width
    return placed
