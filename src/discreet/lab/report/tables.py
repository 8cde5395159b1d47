"""Tables as CSV and for pages, from records: one dictionary per line."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from discreet.types import JsonMapping


def csv_text(records: Sequence[JsonMapping]) -> str:
    """Return a CSV file with all digits of numbers; an unknown value is empty."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(records[0]), lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({k: "" if v is None or v != v else v for k, v in record.items()})
    return buffer.getvalue()


class Table(NamedTuple):
    """Table of a page: cells are text or Markup, the first of a row is its heading."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    kind: str = ""


def pivot(
    caption: str,
    records: Iterable[JsonMapping],
    row: str,
    column: str,
    cell: Callable[[JsonMapping], str],
    kind: str = "",
) -> Table:
    """Return a table with a line for each value of ``row`` and a column for each of ``column``."""
    cells = {(record[row], record[column]): cell(record) for record in records}
    head = list(dict.fromkeys(name for _, name in cells))
    lines = dict.fromkeys(name for name, _ in cells)
    rows = [[name, *(cells.get((name, each), "–") for each in head)] for name in lines]
    return Table(caption, ["", *head], rows, kind)


def number(value: float, form: str = ".3f") -> str:
    """Return a number with a true minus sign; a dash for infinity and NaN."""
    return format(value, form).replace("-", "−") if math.isfinite(value) else "–"


def bold(text: str, really: bool = True) -> str:
    """Return bold text where ``really``."""
    return Markup("<b>{}</b>").format(text) if really else text


def with_error(mean: float, error: float, best: bool = False, form: str = ".3f") -> str:
    """Return ``0.123 ± 0.004``, the error in small letters; bold if it is the best."""
    if not math.isfinite(mean):
        return "–"
    spread = Markup(" <small>± {:.3f}</small>").format(error) if math.isfinite(error) else ""
    return escape(bold(number(mean, form), best)) + spread
