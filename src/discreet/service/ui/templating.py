"""Templates, and how moments and figures read on a page."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from discreet import __version__


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "moment": moment,
        "later": later,
        "span": span,
        "number": lambda value: f"{value:,}",
        "share": lambda value: f"{100 * value:.1f} %",
        "epsilon": lambda value: "∞" if math.isinf(value) else f"{value:.4g}",
        "plain": lambda value: f"{value:g}",
    }
    made.globals |= {"version": __version__, "checksum": checksum}
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


def span(seconds: float) -> str:
    """``40 s``, ``3 min 20 s`` or ``2 h 5 min``."""
    if seconds < 60:
        return f"{max(0.0, seconds):.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@cache
def checksum(name: str) -> str:
    """What the browser must find in a file that others wrote."""
    text = files(__package__).joinpath("static/vendored.json").read_text(encoding="utf-8")
    known = {file: digest for each in json.loads(text) for file, digest in each["files"].items()}
    return str(known[name])
