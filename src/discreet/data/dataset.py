"""A labelled set as a bandit problem: contexts, labels, and the truth where it is known.

Columns of numbers and of words become one table of numbers by two rules: a category becomes one
column of 0 and 1 for each word that occurs, and a missing number the median of its column. Words
and medians are read from all rows, which is part of what a public benchmark is, and no private
operation. With people's data, declare them in advance in a ``Schema`` instead. [docs/data.md]
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.category import Category
from discreet.features.column_values import Field
from discreet.features.flag import Flag
from discreet.features.schema import Schema
from discreet.features.unit_ball import SQRT_HALF
from discreet.types import Array, NumpyArray
from discreet.validate import nearest

FORMAT = b"discreet-data/1"
"""The first bytes of a digest."""
MOST_CLASSES = 50
"""More classes than this are nearly always an identifier or a number to be cut into classes."""
MOST_CELLS = 2**28
"""Rows times columns after encoding: 2 GiB of float64, far more than any set of the paper needs."""
TRUTH = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


@dataclass(frozen=True, eq=False)
class SourceColumns:
    """Columns of a file by title: numbers with NaN, or words with None, where a value is missing.

    ``target`` is the title of the class, which is none of them. ``header`` is False where a file
    names no columns; they are then called column 1, column 2, ….
    """

    columns: Mapping[str, NumpyArray] = field(repr=False)
    header: bool = True
    target: str = ""

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def named(self, what: str, title: str) -> NumpyArray:
        """Return a column by its title; ``what`` is its use, for the error."""
        if title not in self.columns:
            raise InvalidInput(
                f"{what} must be a column of the file other than its class {self.target!r}; "
                f"got {title!r}. {nearest(title, self.columns)}"
            )
        return self.columns[title]

    def dataset(
        self, name: str, target: str | None = None, encoded: bool = True, user: str | None = None
    ) -> Dataset:
        """Return the set ``name``; its class is the column ``target``, by default the last.

        The column ``user`` becomes ids of people. With a schema the others are not ``encoded``.
        """
        title = self.titles[-1] if target is None else self._title(name, target)
        columns = dict(self.columns)
        labels = columns.pop(title)
        _refuse_gaps(f"{name} must have a class on every line", labels)
        labels = labels.astype(str) if labels.dtype.kind == "O" else labels
        source, users = replace(self, columns=columns, target=title), None
        if user is not None:
            users = _ids(user, source.named("user", user))
            del columns[user]
        contexts = table(name, [*columns.values()]) if encoded else np.zeros((len(labels), 1))
        data = labelled(name, contexts, labels)
        contexts = data.contexts if encoded else contexts[:, :0]
        return replace(data, contexts=contexts, source=source, users=users)

    def _title(self, name: str, target: str) -> str:
        """Return the title of the class, which may be given by its number from 1."""
        count = len(self.columns)
        if target in self.columns:
            return target
        if target.isdecimal() and 1 <= int(target) <= count:
            return self.titles[int(target) - 1]
        raise InvalidInput(
            f"target must be one of the {count} columns of {name}, by its name or by its number "
            f"from 1; got {target!r}. {nearest(target, self.titles)}"
        )


@dataclass(frozen=True, eq=False)
class Dataset:
    """Contexts (n, d) of finite numbers and labels (n,) in 0 … A−1.

    Action a has loss 0 where the label is a, and 1 otherwise. Generated sets know more:
    ``expected`` (n, A) is the expected loss of each action in each context, and ``weights``
    (A, d + 1) the θ_a behind it, for features (1, c̄)/√2. Sets from elsewhere know what their
    labels were called: ``classes``, in the order of the labels. Files with named columns keep them
    as ``source``, as they were before they became numbers.
    """

    name: str
    contexts: NumpyArray = field(repr=False)
    labels: NumpyArray = field(repr=False)
    n_actions: int
    expected: NumpyArray | None = field(default=None, repr=False)
    weights: NumpyArray | None = field(default=None, repr=False)
    classes: tuple[str, ...] = field(default=(), repr=False)
    source: SourceColumns | None = field(default=None, repr=False)
    users: NumpyArray | None = field(default=None, repr=False)
    """Ids of people (n,), text, where a column of the file was named as these."""

    @property
    def rows(self) -> int:
        return int(self.contexts.shape[0])

    @property
    def dimension(self) -> int:
        return int(self.contexts.shape[1])

    @property
    def best_loss(self) -> float | None:
        """Mean loss of the best policy that sees the context; None where it is unknown."""
        return None if self.expected is None else float(self.expected.min(axis=-1).mean())

    @property
    def best_fixed(self) -> float:
        """Mean loss of the best action that ignores the context: 1 − the largest class share."""
        return 1.0 - float(np.bincount(self.labels).max()) / self.rows

    def named_column(self, what: str, name: str) -> NumpyArray:
        """A column of the file by its name; ``what`` is its use, for the error."""
        if self.source is None:
            raise InvalidInput(
                f"{what} must be a column of a file with named columns; {self.name!r} is none. "
                "Write the set as .csv or .parquet, with that column in it."
            )
        return self.source.named(what, name)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of contexts, labels and ids of people, if any; the name does not enter.

        The digest, in hex, is of the format, (n, d, A), the contexts row by row, the labels, and
        each id on a line as JSON writes it. Numbers are written as little-endian float64 and int64
        for every stored type, and −0 as 0, so that it depends neither on the file format nor on the
        machine. Rows count in their order: a run permutes them by position.
        """
        shape = np.asarray([*self.contexts.shape, self.n_actions], dtype="<i8")
        numbers = np.ascontiguousarray(self.contexts, dtype="<f8") + 0.0  # −0 + 0 = 0
        found = hashlib.sha256(FORMAT)
        for part in (shape, numbers, np.ascontiguousarray(self.labels, dtype="<i8")):
            found.update(part.tobytes())
        if self.users is not None:
            found.update("\n".join(map(json.dumps, self.users.tolist())).encode())
        return found.hexdigest()


def labelled(name: str, contexts: Array, labels: Array) -> Dataset:
    """Return a checked ``Dataset``; classes become 0 … A−1 in sorted order."""
    contexts, labels = np.asarray(contexts), np.asarray(labels)
    if contexts.ndim != 2 or contexts.dtype.kind not in "fiub" or 0 in contexts.shape:
        raise InvalidInput(
            f"contexts of {name} must be a table of numbers with rows and columns; got shape "
            f"{contexts.shape} of {contexts.dtype}. Encode categories as numbers first."
        )
    if not np.isfinite(contexts).all():
        raise InvalidInput(
            f"contexts of {name} must be finite; got NaN or infinity. "
            "Write a missing entry as NaN or leave it empty, and cut infinite ones off."
        )
    kind = labels.dtype.kind
    if labels.shape != contexts.shape[:1] or kind not in "fiubUS":
        raise InvalidInput(
            f"labels of {name} must be one class per row; got shape {labels.shape} of "
            f"{labels.dtype} for {contexts.shape[0]} rows. Store them as a one-dimensional array."
        )
    found, codes = np.unique(labels, return_inverse=True)
    if kind == "f" and not (found % 1 == 0).all():  # NaN and infinity have no remainder
        raise InvalidInput(
            f"labels of {name} must be words or whole numbers; got fractions, NaN or infinity. "
            "Drop rows without a label, and cut a numeric target into classes first."
        )
    most = min(MOST_CLASSES, len(labels) - 1)
    if not 2 <= len(found) <= most:
        fewer = " and fewer classes than there are rows" * (most < MOST_CLASSES)
        raise InvalidInput(
            f"labels of {name} must name at least 2 classes, at most {MOST_CLASSES}{fewer}; got "
            f"{len(found)} classes in {len(labels)} rows. Name the column of the class with "
            "--target; it is no identifier. Cut a numeric target into classes first."
        )
    words = [_class_name(each) for each in found]
    classes = in_order(words) if kind in "US" else words
    ranks = np.array([classes.index(word) for word in words])
    numbers = contexts.astype(np.float64)
    return Dataset(name, numbers, ranks[codes.reshape(-1)], len(words), classes=tuple(classes))


def _class_name(label: object) -> str:
    """Return 3 for 3.0, and text for bytes."""
    if isinstance(label, bytes):
        return label.decode("utf-8", "replace")
    return str(int(label)) if isinstance(label, np.floating) else str(label)


def in_order(words: Iterable[str]) -> list[str]:
    """Return the words sorted: as numbers where all are numbers (9 before 10), else as text.

    >>> in_order(["10", "9"]), in_order(["9", "10", "none"])
    (['9', '10'], ['10', '9', 'none'])
    """
    by_text = sorted(words)
    numbers = {word: found for word in by_text if (found := number(word)) is not None}
    if len(numbers) < len(by_text) or any(map(math.isnan, numbers.values())):
        return by_text
    # Words of equal value, 1 and 1.0, stay in the order of their text.
    return sorted(by_text, key=numbers.__getitem__)


def number(word: str) -> float | None:
    """Return the number that a word writes, or None."""
    try:
        return float(word)
    except ValueError:
        return None


def table(name: str, columns: Sequence[NumpyArray]) -> NumpyArray:
    """The contexts (n, d) that the columns of the set ``name`` make.

    >>> words = np.array(["red", "blue", None, "red"], dtype=object)
    >>> table("colours", [np.array([1, np.nan, 4, 2]), words])
    array([[1., 0., 1., 0.],
           [2., 1., 0., 0.],
           [4., 0., 0., 1.],
           [2., 0., 1., 0.]])
    """
    rows = max(map(len, columns), default=0)
    missing = [_missing(column) for column in columns]
    words = [_occurring(*each) for each in zip(columns, missing, strict=True)]
    width = sum(1 if found is None else len(found) for found in words)
    if not rows or not width:
        raise InvalidInput(
            f"contexts of {name} must have rows and columns with values; got {rows} rows and "
            f"{width} such columns. Check that features come first and the class last."
        )
    check_size(name, rows, width)
    encoded = [
        np.where(gaps, np.median(column[~gaps]), column)[:, None]
        if found is None
        else column[:, None] == np.asarray(found, dtype=object)
        for column, gaps, found in zip(columns, missing, words, strict=True)
    ]
    return np.concatenate(encoded, axis=1, dtype=np.float64, casting="unsafe")


def check_size(name: str, rows: int, width: int) -> None:
    """Refuse a table that would not fit, before it is made."""
    if rows * width > MOST_CELLS:
        raise InvalidInput(
            f"contexts of {name} must have at most {MOST_CELLS:,} entries; got {rows:,} rows of "
            f"{width:,} after categories became columns. Drop columns of names or identifiers."
        )


def _missing(column: NumpyArray) -> NumpyArray:
    if column.dtype.kind == "O":
        return np.asarray([value is None for value in column])
    return np.isnan(column)


def _occurring(column: NumpyArray, missing: NumpyArray) -> list[str | None] | None:
    """Return words in order, and None where some are missing; None for a column of numbers."""
    if missing.all():
        return []
    if column.dtype.kind != "O":
        return None
    # The missing category goes last, so that no word can be taken for it.
    return [*in_order(set(column[~missing])), *([None] if missing.any() else [])]


def _refuse_gaps(rule: str, column: NumpyArray) -> None:
    missing = _missing(column)
    if missing.any():
        record = int(missing.argmax()) + 1
        raise InvalidInput(f"{rule}; record {record} has none. Add it, or drop such records.")


def _ids(name: str, column: NumpyArray) -> NumpyArray:
    """Return ids as text; 7.0 of a column of numbers is the person 7."""
    _refuse_gaps(f"user {name!r} must be known in every record", column)
    values = column.tolist()
    if column.dtype.kind == "f" and not all(each.is_integer() for each in values):
        raise InvalidInput(
            f"user {name!r} must be text or whole numbers; got fractions or infinity. "
            "Name the column of ids: a measurement is none."
        )
    return np.asarray([str(int(each)) if isinstance(each, float) else each for each in values])


def schema_contexts(schema: Schema, data: Dataset) -> list[dict[str, object]]:
    """Return one dict per row; columns that the schema does not name are left out."""
    if data.source is None:
        raise InvalidInput(
            f"data must be a file with named columns for a schema; got {data.name!r}. "
            "Write it as .csv or .parquet, or leave the schema out."
        )
    return column_contexts(schema, data.source.columns)


def column_contexts(schema: Schema, columns: Mapping[str, NumpyArray]) -> list[dict[str, object]]:
    """Return one dict per row of columns by name."""
    for each in schema.fields:
        if each.name not in columns:
            raise InvalidInput(
                f"column {each.name!r} of the schema must be a column of the file, and neither the "
                f"class nor the user; it is not. {nearest(each.name, columns)} Leave the class and "
                "the user out of the schema."
            )
    chosen = [list(_schema_values(each, columns[each.name])) for each in schema.fields]
    names = [each.name for each in schema.fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*chosen, strict=True)]


def with_schema(schema: Schema, data: Dataset) -> Dataset:
    """Return the set with contexts that ``UnitBall`` maps to the features of the schema.

    Its contexts lie in the unit ball already, so that the ball changes them by rounding at most.
    """
    features = schema.map(schema_contexts(schema, data))
    return replace(data, contexts=features[:, 1:] / SQRT_HALF, source=None)


def _schema_values(field: Field, column: NumpyArray) -> Iterable[object]:
    """Return values for the field: a text file has no difference between 1 and "1"."""
    values = column.tolist()
    numbers = column.dtype.kind != "O"
    if isinstance(field, Flag) and not numbers:
        return (TRUTH.get(each.lower(), each) if each is not None else None for each in values)
    if isinstance(field, Category) and field.of_words and numbers:
        return (None if each != each else f"{each:.15g}" for each in values)
    return list(values)
