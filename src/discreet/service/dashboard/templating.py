"""Templates, and how moments and figures read on a page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from jinja2 import Environment

from discreet.client.pages import environment
from discreet.text import duration, listed


@cache
def _environment() -> Environment:
    made = environment("discreet.service.dashboard")
    made.filters |= {
        "moment": moment,
        "later": later,
        "minute": minute,
        "duration": lasting,
        "number": lambda value: f"{value:,}",
        "share": lambda value: f"{100 * value:.1f} %",
        "listed": listed,
        "sentence": lambda text: text[:1].upper() + text[1:],
        "plain": plain,
    }
    made.globals["checksum"] = checksum
    return made


def rendered(name: str, /, **values: object) -> str:
    """Return a template of this package with its values."""
    return _environment().get_template(name).render(values)


def moment(seconds: float | None) -> str:
    """``2026-01-31 09:30:00`` in UTC, or a dash."""
    if seconds is None:
        return "–"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def minute(seconds: float) -> str:
    """``31 Jan 2026, 09:30`` in UTC: for people who do not count seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%-d %b %Y, %H:%M")


def lasting(seconds: float) -> str:
    """``15 min``: a duration without a second unit that is zero."""
    return duration(seconds).removesuffix(" 0 s").removesuffix(" 0 min")


def later(seconds: float | None, than: float) -> str:
    """Return a moment; without its date where that is the date of another moment before."""
    text, before = moment(seconds), moment(than)
    return text[11:] if text[:10] == before[:10] else text


def plain(value: float) -> str:
    """``0.25``, or ``1e-6``."""
    return f"{value:g}".replace("e-0", "e-").replace("e+0", "e")


@cache
def checksum(name: str) -> str:
    """Return the checksum with which the browser verifies a vendored file."""
    text = files(__package__).joinpath("static/vendored.json").read_text(encoding="utf-8")
    known = {file: digest for each in json.loads(text) for file, digest in each["files"].items()}
    return str(known[name])
