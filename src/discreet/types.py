"""Names of array types and shapes.

Shapes are written with three letters: n rows, A actions, p features (bias included).
``...`` stands for any leading axes: none in the service, (seeds, runs) in a campaign.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

Array = Any
"""An array of the Python Array API: NumPy in the service, NumPy or torch in a campaign."""
NumpyArray = np.ndarray[Any, Any]
"""NumPy array of any type and shape."""

Numbers = Any
"""A number, or an array with a number for each run of a stack."""
Floats = NumpyArray
"""A NumPy array of numbers, where no other kind of array comes."""

JsonObject = dict[str, Any]
"""A decoded JSON object."""
JsonMapping = Mapping[str, Any]
"""A decoded JSON object that is only read."""
Frame = Any
"""A table or a series of pandas, polars or pyarrow."""
Figure = Any
Axes = Any
"""Axes of matplotlib; None makes new ones."""
Contexts = Any
"""One context or many: numbers, dicts, arrays, or a frame."""
Values = Any
"""One value per row: a list, an array, a series, or the name of a column of the frame."""


def added_later(default: Any) -> Any:
    """A parameter that documents name only where it differs from its default.

    It did not exist when the first documents were written, which so keep their bytes and digests.
    """
    return field(default=default, metadata={"added_later": True})
