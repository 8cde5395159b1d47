"""Whether a column of a public table names its rows instead of describing them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

FEWEST = 20
"""Rows below which distinct values are no sign of an identifier."""
_NAME = re.compile(r"(^|[^a-z])(id|uuid|key|number|nr|no|index)$")


def is_identifier(values: np.ndarray[Any, Any], name: str = "") -> bool:
    """Whether whole numbers are all distinct, and counted, sorted or called by such a name.

    Amounts are often distinct as well, but neither in order nor without gaps.

    >>> is_identifier(np.arange(100, 150)), is_identifier(np.arange(50.0) ** 2 % 997)
    (True, False)
    """
    if len(values) < FEWEST or not bool((values == np.rint(values)).all()):
        return False
    if np.unique(values).size < len(values):
        return False
    counted = values.max() - values.min() < 2 * len(values)
    steps = np.diff(values)
    in_order = bool((steps > 0).all()) or bool((steps < 0).all())
    return bool(counted) or in_order or _NAME.search(name.lower()) is not None
