"""What a release tells of policy and control: noisy sums of their losses, to compare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.design.control import PARTS
from discreet.releases.canonical import decode_array, encode_array
from discreet.types import Array

COUNT_VARIANCE = 4.0 / 3.0
"""Variance of the noise in a count over that in a sum. [docs/privacy/lift.md, "Sensitivity"]"""


@dataclass(frozen=True)
class PartLosses:
    """Σ(y − ½) and the number of losses heard, for policy and control: ``sums`` (..., 2, 2).

    ``variance`` (...) is that of the noise in the sums of losses; counts have 4/3 of it.
    """

    sums: Array
    variance: Any

    def to_json(self) -> dict[str, Any]:
        return {"sums": encode_array(self.sums), "variance": repr(float(self.variance))}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> PartLosses:
        """The sums of a document."""
        sums = decode_array(document["sums"])
        if sums.shape != (len(PARTS), 2):
            raise ValueError("sums must be two numbers for each part")
        return cls(sums, float(document["variance"]))
