"""Template engine of all HTML pages. Text is escaped unless it is marked as HTML."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from discreet import __version__
from discreet.text import duration, epsilon_text

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
    made.filters |= {"anchor": _anchor, "epsilon": epsilon_text, "duration": duration}
    made.globals["version"] = __version__
    return made


def rendered(package: str, name: str, **values: object) -> str:
    return environment(package).get_template(name).render(values)


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.replace("λ", "ridge")).strip("-").lower()
