"""A public description of a context: names, ranges, categories -> features.

The schema is fixed before the first person arrives and scales by declared ranges, never by
data: a scale that is learned from data would itself be a release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet.errors import InvalidInput
from discreet.features import frames
from discreet.features.category import Category
from discreet.features.column_values import Field, is_missing
from discreet.features.date import Date
from discreet.features.flag import Flag
from discreet.features.hashed import Hashed
from discreet.features.number import Number
from discreet.features.unit_ball import with_bias
from discreet.text import listed
from discreet.types import Frame, NumpyArray, added_later
from discreet.validate import instance, nearest

KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Number, Flag, Category, Hashed, Date)
}
"""Kinds of fields by the names that files give them."""
FEW_NUMBERS = 12
"""Up to so many numbers their squares are worth their noise: docs/results/defaults.md."""
MOST_FEATURES = 4096
"""A release holds p² numbers for each action: with so many features, 128 MB."""


class _Span(NamedTuple):
    """Coordinates of a field, of its indicator and of its square, if it has them."""

    field: Field
    start: int
    gap: int | None
    square: int | None
    end: int

    @property
    def vector(self) -> slice:
        """Its coordinates without the square."""
        return slice(self.start, self.start + self.field.width + self.field.indicator)


class _Product(NamedTuple):
    """The outer product of some fields, and its first coordinate."""

    spans: list[_Span]
    start: int

    @property
    def width(self) -> int:
        vectors = [span.vector for span in self.spans]
        return math.prod(each.stop - each.start for each in vectors)

    def write(self, rows: NumpyArray) -> None:
        """Multiply the fields of rows (n, width of all), in place."""
        made, *vectors = (rows[:, span.vector] for span in self.spans)
        for vector in vectors:
            width = made.shape[1] * vector.shape[1]
            made = (made[:, :, None] * vector[:, None, :]).reshape(len(rows), width)
        rows[:, self.start : self.start + self.width] = made


@dataclass(frozen=True)
class Schema:
    """Contexts are dicts with these fields, or the rows of a frame with these columns.

    Every field contributes a vector of length at most 1 (a ``Date`` one per part). With ``squares``
    each number contributes (3x² − 1)/2 as well, so that the best value may lie in the middle of a
    range; None means: for up to 12 numbers. ``products`` names fields whose outer product is added:
    [("age", "device")] lets the effect of the age differ between devices. Dividing by √(all of
    these) puts the context into the unit ball without a projection that depends on the person.

    Args:
        fields: Columns, each a ``Number``, ``Flag``, ``Category``, ``Hashed`` or ``Date``.
        squares: Whether numbers are squared as well.
        products: Pairs of names of fields.

    >>> schema = Schema([Number("age", 0, 100), Category("device", ["phone", "desk"])])
    >>> schema.p
    5
    >>> (schema.map({"age": 75, "device": "desk"}) * 6**0.5).round(6)
    array([[ 1.732051,  0.5     , -0.125   ,  0.      ,  1.      ]])
    """

    fields: tuple[Field, ...]
    squares: bool | None = None
    products: tuple[tuple[str, ...], ...] = added_later(())

    def __init__(
        self,
        fields: Sequence[Field],
        squares: bool | None = None,
        products: Sequence[Sequence[str]] = (),
    ) -> None:
        if not isinstance(fields, Iterable):
            raise InvalidInput(
                f"fields must be a list; got {type(fields).__name__}. Put it in brackets."
            )
        object.__setattr__(self, "fields", tuple(fields))
        for place, field in enumerate(self.fields):
            instance(f"fields[{place}]", field, tuple(KINDS.values()))
        if squares is None:
            numbers = [field for field in self.fields if isinstance(field, Number)]
            squares = len(numbers) <= FEW_NUMBERS
        object.__setattr__(self, "squares", instance("squares", squares, (bool,)))
        names = [field.name for field in self.fields]
        if not names or len(set(names)) != len(names):
            raise InvalidInput(
                f"fields must be one or more, with distinct names; got {names}. "
                "Give every column one field."
            )
        object.__setattr__(self, "products", _checked_products(products, names))
        if self.p > MOST_FEATURES:
            raise InvalidInput(
                f"schema must have at most {MOST_FEATURES} features; got {self.p}. "
                "Hash wide categories into fewer slots, or leave out products of wide fields."
            )

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Return the schema of a TOML file, as ``to_toml`` writes it."""
        from discreet.features.schema_file import read_schema

        return read_schema(path)

    @classmethod
    def draft(
        cls, sample: Frame, *, without: Iterable[str] = (), path: str | Path | None = None
    ) -> Schema:
        """Suggest a schema from a frame that is PUBLIC, never from people of the experiment.

        ``without`` names columns that are no part of a context. Columns that identify people, and
        constants, are left out. ``path`` is a new file for the schema as TOML, where comments give
        the reason for each column. Correct it by what you know, and read it with ``from_toml``.
        """
        from discreet.features.schema_file import draft_schema

        return draft_schema(sample, without, path)

    def to_toml(self, path: str | Path | None = None) -> str:
        """Return the schema as TOML with comments, and write it to a file if a path is given."""
        from discreet.features.schema_file import schema_text

        text = schema_text(self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @cached_property
    def p(self) -> int:
        """Number of features, bias included."""
        return 1 + self._spans[-1].end + sum(product.width for product in self._products)

    def map(self, contexts: object) -> NumpyArray:
        """Return features (n, p) of one dict, a sequence of dicts, or a frame.

        Raises:
            InvalidInput: A field is unknown, missing or out of its range; the row is named.
        """
        if self.is_single(contexts):
            encoded = np.zeros((1, self.p - 1))
            self._write(contexts, encoded[0])
        elif frames.is_frame(contexts):
            encoded = self._of_frame(contexts)
        else:
            encoded = self._of_rows(contexts)
        for product in self._products:
            product.write(encoded)
        encoded /= self._length
        return with_bias(encoded)

    def is_single(self, contexts: object) -> bool:
        """Return whether this is one context rather than many."""
        return type(contexts) is dict or isinstance(contexts, Mapping)

    @cached_property
    def _spans(self) -> list[_Span]:
        spans, end = [], 0
        for field in self.fields:
            start, end = end, end + field.width
            gap = end if field.indicator else None
            end += field.indicator
            square = end if self.squares and isinstance(field, Number) else None
            end += square is not None
            spans.append(_Span(field, start, gap, square, end))
        return spans

    @cached_property
    def spans(self) -> dict[str, range]:
        """The coordinates of each field after the constant, its square included."""
        return {each.field.name: range(each.start, each.end) for each in self._spans}

    @cached_property
    def _products(self) -> list[_Product]:
        by_name = {span.field.name: span for span in self._spans}
        made, start = [], self._spans[-1].end
        for names in self.products:
            made.append(_Product([by_name[name] for name in names], start))
            start += made[-1].width
        return made

    @cached_property
    def _length(self) -> float:
        """No context is longer than this before the division."""
        units = sum(span.field.units + (span.square is not None) for span in self._spans)
        for product in self._products:  # each is at most as long as its fields together
            units += math.prod(span.field.units for span in product.spans)
        return math.sqrt(units)

    def _of_rows(self, contexts: object) -> NumpyArray:
        words = isinstance(contexts, (str, bytes))
        if words or frames.is_series(contexts) or not isinstance(contexts, Iterable):
            raise _no_dict(contexts)
        rows = list(contexts)
        encoded = np.zeros((len(rows), self.p - 1))
        for number, (row, out) in enumerate(zip(rows, encoded, strict=True)):
            try:
                self._write(row, out)
            except InvalidInput as error:
                raise InvalidInput(f"row {number}: {error}") from None
        return encoded

    def _write(self, row: Any, out: NumpyArray) -> None:
        """The fields of one context, without products."""
        if not self.is_single(row):
            raise _no_dict(row)
        if not row.keys() <= self.spans.keys():
            raise self._unknown(row)
        for field, start, gap, square, _ in self._spans:
            value = row.get(field.name)
            if is_missing(value):
                if gap is not None:
                    out[gap] = 1.0
                    continue
                value = field.filled()
            field.write(value, out, start)
            if square is not None:
                out[square] = 1.5 * out[start] ** 2 - 0.5

    def _unknown(self, row: Mapping[str, object]) -> InvalidInput:
        """The error for keys that are not in the schema, which may be private themselves."""
        absent = [repr(field.name) for field in self.fields if field.name not in row]
        step = f"Is a name misspelt? Missing here: {listed(absent)}." if absent else "Leave it out."
        count = len(row.keys() - self.spans.keys())
        return InvalidInput(
            "context must have the features of the schema and no others; "
            f"got {count} of another name. {step}"
        )

    def _of_frame(self, contexts: object) -> NumpyArray:
        frame = frames.opened(contexts)
        columns = [frames.column(frame, field.name) for field in self.fields]
        encoded = np.zeros((len(frame), self.p - 1))
        try:
            for span, column in zip(self._spans, columns, strict=True):
                self._write_column(span, column, encoded)
        except InvalidInput:
            rows = zip(*(column.filled("") for column in columns), strict=True)
            self._of_rows(dict(zip(self.spans, row, strict=True)) for row in rows)  # names the row
            raise
        return encoded

    def _write_column(self, span: _Span, column: frames.Column, encoded: NumpyArray) -> None:
        """Write one field of every row, without products."""
        field, missing = span.field, column.missing
        values = column.values[~missing]
        written, known = np.zeros((len(missing), field.width)), np.zeros((len(values), field.width))
        field.write_column(values, known)
        written[~missing] = known
        if span.gap is not None:
            encoded[missing, span.gap] = 1.0
        elif missing.any():
            filled = np.zeros(field.width)
            field.write(field.filled(), filled, 0)
            written[missing] = filled
        encoded[:, span.start : span.start + field.width] = written
        if span.square is not None:
            rows = slice(None) if span.gap is None else ~missing
            encoded[rows, span.square] = 1.5 * encoded[rows, span.start] ** 2 - 0.5


def _checked_products(products: Any, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Tuples of two or more distinct names each, none twice."""
    several = isinstance(products, Sequence) and not isinstance(products, str)
    rows, seen = list(products) if several else [products], set[frozenset[str]]()
    for each in rows:
        listed = isinstance(each, Sequence) and not isinstance(each, str)
        chosen = frozenset(map(str, each)) if listed else frozenset()
        unknown = sorted(chosen - set(names))
        if unknown or chosen in seen or not 2 <= len(chosen) == len(each):
            step = nearest(unknown[0], names) if unknown else "Write [('age', 'device')]."
            raise InvalidInput(
                "products must be a list of distinct products of two or more distinct fields of "
                f"the schema; got {each!r}. {step}"
            )
        seen.add(chosen)
    return tuple(tuple(each) for each in rows)


def _no_dict(row: object) -> InvalidInput:
    return InvalidInput(
        f"context must be a dict of features; got {type(row).__name__}. "
        "Pass {name: value} with the names of the schema."
    )
