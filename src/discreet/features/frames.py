"""Frames and series of pandas, polars and pyarrow, read and made through narwhals.

Nothing here imports narwhals before a frame comes: the core works without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.types import Frame, NumpyArray
from discreet.validate import installed, nearest

if TYPE_CHECKING:
    import narwhals as nw

LIBRARIES = {"pandas", "polars", "pyarrow", "modin", "cudf", "narwhals"}
FRAMES = {"DataFrame", "LazyFrame", "Table"}
SERIES = {"Series", "ChunkedArray"}
MAKERS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}
"""What makes a frame of columns in each library; the first that is installed is preferred."""
_PLAIN = (dict, list, tuple, np.ndarray, str, int, float, type(None))


@dataclass(frozen=True)
class Column:
    """One value per row, and which rows have none (their values mean nothing).

    Values have the dtype of flags, numbers or dates where the frame has one; else they are objects.
    """

    values: NumpyArray
    missing: NumpyArray

    def filled(self, numbers: str) -> NumpyArray:
        """Return NaN in numbers of these kinds, None in all else, where there is no value."""
        if self.values.dtype.kind in numbers:
            return np.where(self.missing, np.nan, self.values.astype(float))
        # NumPy would make dates of nanoseconds whole numbers.
        values = [*self.values] if self.values.dtype.kind == "M" else self.values.tolist()
        made = np.fromiter(values, dtype=object, count=len(values))
        made[self.missing] = None
        return made


def is_frame(data: object) -> bool:
    """Return whether this is a table with named columns of one of the known libraries."""
    return _is_a(data, FRAMES)


def is_series(data: object) -> bool:
    """Return whether this is one column of one of the known libraries."""
    return _is_a(data, SERIES)


def _is_a(data: object, names: set[str]) -> bool:
    """Compare by name, so that no library is imported for it."""
    return type(data) not in _PLAIN and any(
        kind.__name__ in names and kind.__module__.partition(".")[0] in LIBRARIES
        for kind in type(data).__mro__
    )


def opened(frame: object) -> nw.DataFrame[Any]:
    """Return the frame as narwhals reads it."""
    narwhals = _narwhals()
    try:
        read: nw.DataFrame[Any] = narwhals.from_native(frame, eager_only=True)
    except TypeError:
        raise InvalidInput(
            f"frame must be of pandas, polars or pyarrow and hold its rows; got a "
            f"{type(frame).__name__}. Read the file first; call collect() on a lazy frame."
        ) from None
    except Exception as error:  # narwhals has other errors for columns of one name
        raise InvalidInput(
            f"frame must have columns with different names; got one that cannot be read "
            f"({type(error).__name__}). Give every column a different name."
        ) from None
    return read


def column(frame: nw.DataFrame[Any], name: str, kind: str = "feature") -> Column:
    """Return the column of a feature; an error names the nearest if it is absent."""
    if name not in frame.columns:
        near = nearest(name, [str(each) for each in frame.columns])
        step = near if near.startswith("Did") else "Add the column, or rename one."
        raise InvalidInput(f"{kind} {name!r} must be a column of the frame; it is absent. {step}")
    return _read(frame.get_column(name))  # a name may be a number


def without_column(frame: object, name: str) -> Frame:
    """Return the frame without one column, in the same library and with the same index."""
    return opened(frame).drop(name).to_native()


def column_names(frame: object) -> tuple[str, ...]:
    """Return the names of the columns, as text."""
    return tuple(str(each) for each in opened(frame).columns)


def numeric_rows(frame: object, dimension: int) -> NumpyArray:
    """Return the rows (n, dimension) of a frame with as many columns, all numeric."""
    read = opened(frame)
    if len(read.columns) != dimension:
        raise InvalidInput(
            f"frame must have {dimension} columns, in the order that UnitBall was declared for; "
            f"got {len(read.columns)}. Select them, or declare a Schema, which goes by name."
        )
    rows = np.empty((len(read), dimension))
    for place, name in enumerate(read.columns):
        found = column(read, name)
        if found.values.dtype.kind not in "biuf":
            raise InvalidInput(
                f"column {name!r} must be numeric; got {read.schema[name]}. "
                "Leave it out, or declare a Schema."
            )
        values = found.values.astype(np.float64)
        wrong = np.flatnonzero(found.missing | ~np.isfinite(values))
        if len(wrong):
            raise InvalidInput(
                f"row {wrong[0]}: column {name!r} must be a finite number; got none. "
                "Fill gaps by a public rule, or declare a Schema, which has rules for them."
            )
        rows[:, place] = values
    return rows


def column_of(series: object) -> Column:
    """Return a series as a NumPy array with a mask of its gaps."""
    return _read(_narwhals().from_native(series, series_only=True))


def series_like(like: object, name: str, values: object) -> Frame:
    """Return a series of the library of a frame (or series), with the same index in pandas."""
    return frame_like(like, {name: np.asarray(values)})[name]


def frame_like(like: object, columns: Mapping[str, NumpyArray]) -> Frame:
    """Return a frame of the library of a frame (or series), with the same index in pandas."""
    narwhals = _narwhals()
    source = narwhals.from_native(like, eager_only=True, allow_series=True)
    made, library = {}, {"backend": source.implementation}
    for name, values in columns.items():
        if values.dtype.kind in "OU":  # polars would keep words as Python objects
            made[name] = narwhals.new_series(name, values.tolist(), narwhals.String(), **library)
        else:
            made[name] = narwhals.new_series(name, values, **library)
    native = narwhals.from_dict(made, **library).to_native()
    index = narwhals.maybe_get_index(source)  # None where a library has no index
    if index is not None:
        native.index = index
    return native


def new_frame(columns: Mapping[str, NumpyArray]) -> Frame:
    """Return a frame of the first library that is installed; narwhals is not needed."""
    chosen = next((name for name in MAKERS if find_spec(name)), None)
    if chosen is None:
        raise InvalidInput(
            "a library of frames must be installed to make a frame; this Python has none of "
            f"{', '.join(MAKERS)}. Run pip install pandas."
        )
    plain = {
        name: values.tolist() if np.asarray(values).dtype == object else values
        for name, values in columns.items()
    }
    return getattr(import_module(chosen), MAKERS[chosen])(plain)


def _narwhals() -> Any:
    installed("frames", "to read frames", "narwhals")
    import narwhals

    return narwhals


def _read(series: nw.Series[Any]) -> Column:
    narwhals = _narwhals()
    dtype = series.dtype
    missing = series.is_null().to_numpy().astype(bool)
    if dtype.is_decimal():
        series, dtype = series.cast(narwhals.Float64()), narwhals.Float64()
    if dtype.is_float():
        values = series.to_numpy().astype(np.float64)
        return Column(values, missing | np.isnan(values))
    if dtype.is_integer() or dtype == narwhals.Boolean:
        filled = series.fill_null(False if dtype == narwhals.Boolean else 0)
        values = filled.to_numpy()
        if values.dtype.kind in "biu":
            return Column(values, missing)
    elif isinstance(dtype, narwhals.Datetime):  # as written, in its zone
        return Column(series.dt.replace_time_zone(None).to_numpy(), missing)
    elif dtype == narwhals.Date and (days := series.to_numpy()).dtype.kind == "M":
        return Column(days.astype("datetime64[D]"), missing)
    listed = series.to_list()
    values = np.fromiter(listed, dtype=object, count=len(listed))
    return Column(values, missing)
