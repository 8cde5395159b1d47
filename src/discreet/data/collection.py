"""Named collections of sets: the paper's 100 from OpenML."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

COLLECTIONS = {"paper": "paper_collection.json"}


@cache
def collection(name: str) -> tuple[int, ...]:
    """OpenML's numbers of a collection's sets, in ascending order.

    >>> len(collection("paper")), collection("paper")[:3]
    (100, (23, 44, 60))
    """
    text = files(__package__).joinpath(COLLECTIONS[name]).read_text(encoding="utf-8")
    return tuple(sorted(json.loads(text)["openml_ids"]))
