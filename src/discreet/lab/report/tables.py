"""Tables as CSV and for pages."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a CSV file with all digits of numbers; an unknown value is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        ["" if value is None or value != value else value for value in row] for row in rows
    )
    return buffer.getvalue()


class Table(NamedTuple):
    """Table of a page: cells are text or Markup, the first of a row is its heading.

    ``above`` is a first line of headings, each with the number of columns that it spans.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    kind: str = ""
    above: Sequence[tuple[str, int]] = ()


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
