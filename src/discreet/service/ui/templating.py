"""Templates, and how moments and figures read on a page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment

from discreet.formatting import listed
from discreet.report.templating import environment


@cache
def _environment() -> Environment:
    made = environment("discreet.service.ui")
    made.filters |= {
        "moment": moment,
        "later": later,
        "number": lambda value: f"{value:,}",
        "share": lambda value: f"{100 * value:.1f} %",
        "listed": listed,
        "plain": lambda value: f"{value:g}",
    }
    made.globals["checksum"] = checksum
    return made


def rendered(name: str, **values: Any) -> str:
    """A template of this package, filled."""
    return _environment().get_template(name).render(values)


def moment(seconds: float | None) -> str:
    """``2026-01-31 09:30:00`` in UTC, or a dash."""
    if seconds is None:
        return "–"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def later(seconds: float | None, than: float) -> str:
    """A moment; without its date where that is the date of another moment before."""
    text, before = moment(seconds), moment(than)
    return text[11:] if text[:10] == before[:10] else text


@cache
def checksum(name: str) -> str:
    """What the browser must find in a file that others wrote."""
    text = files(__package__).joinpath("static/vendored.json").read_text(encoding="utf-8")
    known = {file: digest for each in json.loads(text) for file, digest in each["files"].items()}
    return str(known[name])
