"""Pooled statistics: what all releases so far say together.

Releases are public, so adding them up costs no privacy. Each counts by how clearly it speaks:
a batch much smaller than its noise hardly, a large one fully.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays.backend import lift
from discreet.arrays.linear_algebra import triangle, unpack
from discreet.releases.canonical import decode_array, encode_array
from discreet.types import Array


@dataclass(frozen=True)
class Statistics:
    """Σ_j w_j·(G̃_j, q̃_j): Gram blocks (..., A or 1, p, p) and responses (..., A, p).

    ``records`` is Σ_j w_j·n_j, ``variance`` that of the noise in the Gram, Σ_j w_j²·σ²: both (...).
    """

    gram: Array
    response: Array
    records: Any
    variance: Any

    def plus(self, weight: Any, other: Statistics) -> Statistics:
        """These and others with a weight, which may differ from run to run."""
        return Statistics(
            self.gram + lift(weight, other.gram, 3) * other.gram,
            self.response + lift(weight, other.response, 2) * other.response,
            self.records + weight * other.records,
            self.variance + weight**2 * other.variance,
        )

    def of_the_constant(self) -> Statistics:
        """The sums of the constant feature alone: noisy counts and centred losses."""
        gram, response = self.gram[..., :1, :1] + 0.0, self.response[..., :1] + 0.0
        return replace(self, gram=gram, response=response)

    def to_json(self) -> dict[str, Any]:
        """The upper triangles of the blocks, and the rest."""
        rows, columns = triangle(self.gram.shape[-1])
        return {
            "gram": encode_array(self.gram[..., rows, columns]),
            "response": encode_array(self.response),
            "records": repr(float(self.records)),
            "variance": repr(float(self.variance)),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Statistics:
        """The statistics of a document."""
        response, packed = decode_array(document["response"]), decode_array(document["gram"])
        p = response.shape[-1]
        if packed.shape[-1] != p * (p + 1) // 2:
            raise ValueError("statistics must have a triangle for each block")
        return cls(
            np.asarray(unpack(packed, p)),
            response,
            float(document["records"]),
            float(document["variance"]),
        )
