"""Labelled sets from frames of pandas, polars or pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.data.dataset import Dataset, from_columns
from discreet.data.source_columns import split_target
from discreet.data.table import Categories, Column
from discreet.errors import InvalidInput
from discreet.frames import column, column_names, opened


def from_frame(frame: Any, target: str | None = None, name: str = "frame") -> Dataset:
    """The set that the columns of a frame make, as a file of them would; one is the class.

    The frame must be public: words and medians are read from all rows.
    """
    read, titles = opened(frame), column_names(frame)
    if len(titles) < 2 or not len(read):
        raise InvalidInput(
            f"frame must have rows of at least two columns; it has {len(read)} of {len(titles)}. "
            "Add the features, and the class."
        )
    columns = [_column(title, column(read, title)) for title in read.columns]
    source, classes = split_target(name, titles, columns, target)
    return from_columns(name, name, source, classes)


def _column(title: str, found: Any) -> Column:
    values = found.values
    if values.dtype.kind in "biuf":
        return np.where(found.missing, np.nan, values.astype(np.float64))
    words = [each if known else None for each, known in zip(values, ~found.missing, strict=True)]
    if not all(each is None or isinstance(each, (str, int)) for each in words):
        raise InvalidInput(
            f"column {title!r} must hold numbers, truth values or text; got something else. "
            "Drop it, or make it numbers or categories."
        )
    return Categories.of([None if each is None else str(each) for each in words])
