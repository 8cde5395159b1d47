"""Tables for notebooks: small, self-contained, and with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

CELL = ' style="text-align:left"'


def html_table(
    caption: str, rows: Iterable[Sequence[str]], header: Sequence[str] | None = None
) -> str:
    """A table; without ``header`` the first cell of each row is its name.

    >>> html_table("One < two", [("ε", "1")])  # doctest: +ELLIPSIS
    '<table><caption>One &lt; two</caption><tr><th style="text-align:left">ε</th>...'
    """
    made = [f"<tr>{''.join(map(_head, header))}</tr>"] if header is not None else []
    for first, *others in rows:
        leading = _cell(first) if header is not None else _head(first)
        made.append(f"<tr>{leading}{''.join(map(_cell, others))}</tr>")
    return f"<table><caption>{escape(caption)}</caption>{''.join(made)}</table>"


def _head(text: str) -> str:
    return f"<th{CELL}>{escape(text)}</th>"


def _cell(text: str) -> str:
    return f"<td{CELL}>{escape(text)}</td>"
