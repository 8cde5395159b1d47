"""Text for people: numbers, durations, tables, warnings and TOML files."""

from __future__ import annotations

import math
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput
from discreet.validate import usable


def epsilon_text(epsilon: float, digits: int = 4) -> str:
    """``0.1``, ``1.234`` or ``∞``.

    >>> epsilon_text(1.0), epsilon_text(1.23456), epsilon_text(math.inf)
    ('1', '1.235', '∞')
    """
    return "∞" if math.isinf(epsilon) else f"{epsilon:.{digits}g}"


def guarantee_text(epsilon: float, delta: float) -> str:
    """ε and δ together; a δ of zero is not written.

    >>> guarantee_text(1.0, 1e-5), guarantee_text(2.0, 0.0), guarantee_text(math.inf, 0.0)
    ('ε = 1, δ = 1e-05', 'ε = 2', 'ε = ∞ (no privacy)')
    """
    if math.isinf(epsilon):
        return "ε = ∞ (no privacy)"
    return f"ε = {epsilon_text(epsilon)}" + (f", δ = {delta:g}" if delta else "")


def about(count: float) -> str:
    """Write an estimated count, to two digits.

    >>> about(235_608), about(7)
    ('240,000', '7')
    """
    return f"{float(f'{count:.2g}'):,.0f}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names one after the other; of a long list the first few, and how many more there are.

    >>> listed(["none", "mail"]), listed([f"film {k}" for k in range(1_000)], 2)
    ('none, mail', 'film 0, film 1 and 998 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def duration(seconds: float) -> str:
    """Three digits below a minute, whole seconds or minutes above; round an estimate first.

    >>> [duration(seconds) for seconds in (0.25, 40, 200, 7_500, 900)]
    ['0.25 s', '40 s', '3 min 20 s', '2 h 5 min', '15 min']
    """
    if round(seconds, 1) < 60:  # 59.97 would be written as 60 s
        return f"{max(0.0, seconds):.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, of_hour = divmod(minutes, 60)
    units = ((hours, "h"), (of_hour, "min")) if hours else ((minutes, "min"), (rest, "s"))
    return " ".join(f"{count} {unit}" for count, unit in units if count)


PERIODS = (
    ("minute", 1 / 1_440, 1 / 12),
    ("hour", 1 / 24, 2.0),
    ("day", 1.0, 14.0),
    ("week", 7.0, 70.0),
    ("month", 30.4, 730.0),
)
"""Units of time in days, the shortest first, and the time below which each is used."""


def roughly(days: float) -> str:
    """Return an estimated time in one unit, for people who plan with it.

    >>> [roughly(days) for days in (0.02, 1 / 24, 3, 21, 100, 2_000)]
    ['29 minutes', '60 minutes', '3 days', '3 weeks', '3 months', '5 years']
    """
    unit, length = next(
        ((unit, length) for unit, length, most in PERIODS if days < most), ("year", 365.0)
    )
    count = max(1, round(min(days, 1e9) / length))
    return f"{count:,} {unit}{'s' * (count > 1)}"


def html_table(
    caption: str, rows: Iterable[Sequence[str]], header: Sequence[str] | None = None
) -> str:
    """A table; without ``header`` the first cell of each row is its name.

    >>> html_table("One < two", [("ε", "1")])  # doctest: +ELLIPSIS
    '<table><caption>One &lt; two</caption><tr><th style="text-align:left">ε</th>...'
    """

    def cells(kind: str, texts: Iterable[str]) -> str:
        return "".join(f'<{kind} style="text-align:left">{escape(x)}</{kind}>' for x in texts)

    made = [] if header is None else [cells("th", header)]
    for first, *others in rows:
        made.append(cells("td" if header else "th", [first]) + cells("td", others))
    lines = "".join(f"<tr>{row}</tr>" for row in made)
    return f"<table><caption>{escape(caption)}</caption>{lines}</table>"


class Advice(UserWarning):
    """Something that is allowed and probably not meant.

    Silence all with ``warnings.simplefilter("ignore", discreet.Advice)``.
    """


def advise(topic: str, words: str, stacklevel: int = 3) -> None:
    """Warn the caller's caller; Python shows the same words once per place."""
    warnings.warn(f"{words} [docs/warnings.md#{topic}]", Advice, stacklevel=stacklevel)


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """Return the keys of a file; ``what`` names the file in errors."""
    return parse_toml(read_text(path, what), path, what)


def read_text(path: str | Path, what: str, step: str = "Check the path.") -> str:
    """Return the text of a TOML file, for ``parse_toml``."""
    with usable(path, f"{what} file must be readable", step), _readable(path, what):
        return Path(path).read_text(encoding="utf-8")


def parse_toml(text: str, path: str | Path, what: str) -> dict[str, Any]:
    """Return the keys of the text of the file ``path``."""
    with _readable(path, what):
        return tomllib.loads(text)


@contextmanager
def _readable(path: str | Path, what: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # of the encoding, or of TOML
        raise InvalidInput(
            f"{what} file must be TOML; {path} is not: {error}. Correct that line."
        ) from None
