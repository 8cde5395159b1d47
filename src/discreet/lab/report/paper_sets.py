"""Which data sets of a campaign are the paper's."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from discreet.data.openml import collection

FIGURES = (901, 1489, 41027, 1462, 1560, 44743)
"""The sets whose curves the paper shows, by their number at OpenML, in its order."""


@cache
def _known() -> dict[str, tuple[int, int, int]]:
    """Common file names of the paper's sets: number at OpenML, rows, actions."""
    text = files(__package__).joinpath("published_sets.csv").read_text(encoding="utf-8")
    return {
        row["name"]: (int(row["openml_id"]), int(row["rows"]), int(row["actions"]))
        for row in csv.DictReader(text.splitlines())
    }


def openml_id(name: str, about: Mapping[str, Any]) -> int | None:
    """The number of a set at OpenML: as the manifest says, or by name, rows and actions.

    A name alone is not enough: a generator is called fried as well.

    >>> openml_id("fried", {"rows": 40768, "actions": 2})
    901
    >>> openml_id("openml:1489", {})
    1489
    >>> openml_id("fried", {"rows": 20000, "actions": 2}) is None
    True
    """
    if about.get("openml_id") is not None:
        return int(about["openml_id"])
    if named := re.fullmatch(r"openml[-_: ]?(\d+)", name):
        return int(named[1])
    number, rows, actions = _known().get(name, (None, 0, 0))
    return number if (about.get("rows"), about.get("actions")) == (rows, actions) else None


def paper_sets(datasets: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Name and number of those that the paper uses; of two copies, the first."""
    found: dict[int, str] = {}
    for name in sorted(datasets):
        number = openml_id(name, datasets[name])
        if number is not None and number in collection("paper"):
            found.setdefault(number, name)
    return {name: number for number, name in found.items()}
