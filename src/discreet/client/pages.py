"""Template engine of all HTML pages. Text is escaped unless it is marked as HTML."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from discreet import __version__
from discreet.text import duration, epsilon_text, listed

SHARED = ("discreet", "discreet.client")
"""Packages whose templates all pages share."""


@cache
def environment(package: str) -> Environment:
    """Return the templates of a package, and those that all pages share."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(each) for each in (package, *SHARED)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "anchor": _anchor,
        "counted": counted,
        "duration": duration,
        "epsilon": epsilon_text,
        "later": lambda at, than: moment(at)[11 * (moment(at)[:10] == moment(than)[:10]) :],
        "listed": listed,
        "minute": minute,
        "moment": moment,
        "number": lambda value: f"{value:,}",
        "plain": lambda value: f"{value:g}".replace("e-0", "e-").replace("e+0", "e"),
        "sentence": lambda text: text[:1].upper() + text[1:],
        "share": lambda value: f"{100 * value:.1f} %",
    }
    made.globals["version"] = __version__
    return made


def rendered(package: str, name: str, **values: object) -> str:
    return environment(package).get_template(name).render(values)


def counted(count: int, word: str) -> str:
    """``1 release``, or ``1,000 releases``."""
    return f"{count:,} {word}{'s' * (count != 1)}"


def moment(seconds: float | None) -> str:
    """``2026-01-31 09:30:00`` in UTC, or a dash."""
    if seconds is None:
        return "–"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def minute(seconds: float) -> str:
    """``31 Jan 2026, 09:30`` in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%-d %b %Y, %H:%M")


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.replace("λ", "ridge")).strip("-").lower()
