"""A labelled set as a bandit problem: contexts, labels, and the truth where it is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from discreet.data.table import Column, SourceColumns, class_column, in_order, table
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
        columns = self.source.by_name()
        if name not in columns:
            raise InvalidInput(
                f"{what} must be a column of the file other than its class {self.source.target!r}; "
                f"got {name!r}. {nearest(name, columns)}"
            )
        return columns[name]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of contexts, labels and ids of people, if any; the name does not enter."""
        return content_digest(self.contexts, self.labels, self.n_actions, self.users)


def labelled(name: str, contexts: Array, labels: Array) -> Dataset:
    """A checked ``Dataset``; classes become 0 … A−1 in sorted order."""
    contexts, labels = np.asarray(contexts), np.asarray(labels)
    check_contexts(name, contexts)
    if labels.shape != contexts.shape[:1] or labels.dtype.kind not in "fiubUS":
        raise InvalidInput(
            f"labels of {name} must be one class per row; got shape {labels.shape} of "
            f"{labels.dtype} for {contexts.shape[0]} rows. Store them as a one-dimensional array."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InvalidInput(
            f"labels of {name} must be finite; got NaN or infinity. Drop rows without a label."
        )
    found, codes = np.unique(labels, return_inverse=True)
    _check_classes(name, found, len(labels))
    words = [_word(each) for each in found]
    order = in_order(words) if labels.dtype.kind in "US" else list(range(len(words)))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return Dataset(
        name,
        contexts.astype(np.float64),
        ranks[codes.reshape(-1)],
        len(words),
        classes=tuple(words[place] for place in order),
    )


def from_columns(
    name: str, file_name: str, source: SourceColumns, target: Column, encoded: bool = True
) -> Dataset:
    """The set that the columns of a file make; a schema needs them not ``encoded`` as numbers."""
    labels = class_column(file_name, target)
    if encoded:
        return replace(labelled(name, table(name, source.columns), labels), source=source)
    nothing = np.zeros((len(labels), 1))
    return replace(labelled(name, nothing, labels), contexts=nothing[:, :0], source=source)


def check_contexts(name: str, contexts: NumpyArray) -> None:
    """Refuse what is no table of finite numbers."""
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


def _check_classes(name: str, classes: NumpyArray, rows: int) -> None:
    if classes.dtype.kind == "f" and not (classes == np.floor(classes)).all():
        raise InvalidInput(
            f"labels of {name} must be classes, words or whole numbers; got fractions. "
            "Name the column of the class with --target, or cut a target into classes first."
        )
    if len(classes) < 2:
        raise InvalidInput(
            f"labels of {name} must name at least 2 classes; got {len(classes)}. "
            "A bandit needs two actions to choose from."
        )
    if len(classes) >= rows:
        raise InvalidInput(
            f"labels of {name} must name fewer classes than there are rows; got {len(classes)} "
            f"classes in {rows} rows. Name the column of the class with --target; it is no "
            "identifier."
        )
    if len(classes) > MOST_CLASSES:
        raise InvalidInput(
            f"labels of {name} must name at most {MOST_CLASSES} classes; got {len(classes)}. "
            "Name the column of the class with --target, or cut a target into classes first."
        )


def _word(label: object) -> str:
    """The name of a class: 3 for 3.0, and text for bytes."""
    if isinstance(label, bytes):
        return label.decode("utf-8", "replace")
    return str(int(label)) if isinstance(label, np.floating) else str(label)


def content_digest(
    contexts: Array, labels: Array, n_actions: int, users: NumpyArray | None = None
) -> str:
    """SHA-256, in hex, of the format, (n, d, A), the contexts row by row and the labels.

    Ids of people follow, each on a line as JSON writes it.

    Numbers are written as little-endian float64 and int64 for every stored type, and −0
    as 0, so that the digest depends neither on the file format nor on the machine. Rows count in
    their order: a run permutes them by position.
    """
    shape = np.asarray([*contexts.shape, n_actions], dtype="<i8")
    numbers = np.ascontiguousarray(contexts, dtype="<f8") + 0.0  # −0 + 0 = 0
    found = hashlib.sha256(FORMAT)
    for part in (shape, numbers, np.ascontiguousarray(labels, dtype="<i8")):
        found.update(part.tobytes())
    if users is not None:
        found.update("\n".join(map(json.dumps, users.tolist())).encode())
    return found.hexdigest()


def with_users(data: Dataset, user: str, encoded: bool = True) -> Dataset:
    """The set with the column ``user`` taken out as ids; the others become contexts.

    ``data`` was read without encoding: an id of words would become a column for each person.
    """
    ids = _ids(user, data.named_column("user", user))
    assert data.source is not None  # it has the column
    kept = [place for place, title in enumerate(data.source.titles) if title != user]
    source = replace(
        data.source,
        titles=tuple(data.source.titles[place] for place in kept),
        columns=tuple(data.source.columns[place] for place in kept),
    )
    contexts = data.contexts
    if encoded:
        contexts = table(data.name, source.columns)
        check_contexts(data.name, contexts)
    return replace(data, contexts=contexts, source=source, users=ids)


def _ids(name: str, column: NumpyArray) -> NumpyArray:
    """Ids as text; 7.0 of a column of numbers is the person 7."""
    values = column.tolist()
    gap = next((row for row, each in enumerate(values) if each is None or each != each), None)
    if gap is not None:
        raise InvalidInput(
            f"user {name!r} must be known in every record; record {gap + 1} has none. "
            "Add it, or drop such records."
        )
    if column.dtype.kind == "f" and not all(each.is_integer() for each in values):
        raise InvalidInput(
            f"user {name!r} must be text or whole numbers; got fractions or infinity. "
            "Name the column of ids: a measurement is none."
        )
    return np.asarray([str(int(each)) if isinstance(each, float) else each for each in values])


TRUTH = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def schema_contexts(schema: Schema, data: Dataset) -> list[dict[str, object]]:
    """Return one dict per row; columns that the schema does not name are left out."""
    if data.source is None:
        raise InvalidInput(
            f"data must be a file with named columns for a schema; got {data.name!r}. "
            "Write it as .csv or .parquet, or leave the schema out."
        )
    return column_contexts(schema, data.source.by_name())


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
