"""What one batch told: noisy sums, which every later fit may use again.

Releases are public, so adding them up costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays.backend import lift, namespace
from discreet.arrays.linear_algebra import inverse, triangle, unpack
from discreet.releases.canonical import decode_array, encode_array
from discreet.types import Array

BAND = 64
"""Matrices whose largest entry is beyond 2^±64 are brought back to about one before they are used:
a chain of many releases would otherwise leave the range of floats."""


def excess_of(matrix: Array) -> Any:
    """The exponent of the largest entry (...) where it is beyond the band, else 0.

    >>> excess_of(2.0**-100 * np.eye(2)), excess_of(np.eye(2))
    (array(-99, dtype=int32), 0)
    """
    xp = namespace(matrix)
    _, exponent = xp.frexp(xp.amax(abs(matrix), (-2, -1)))
    beyond = abs(exponent) > BAND
    return xp.where(beyond, exponent, 0 * exponent) if bool(beyond.any()) else 0


def times_power_of_two(matrix: Array, exponent: Any) -> Array:
    """The matrix (..., p, p) times 2^exponent; the same bits unless it leaves the range of floats.

    >>> times_power_of_two(np.eye(2), -1)[0, 0]
    np.float64(0.5)
    """
    if isinstance(exponent, int) and exponent == 0:
        return matrix
    if isinstance(matrix, np.ndarray):
        return np.asarray(np.ldexp(matrix, np.asarray(exponent)[..., None, None]))
    return matrix * lift(2.0**exponent, matrix)


def in_use(following: Array) -> Array:
    """The matrix that the next batch uses: what was published, times a power of two.

    Rows are normalised after they were stretched, so that the power changes no row.
    [docs/privacy/ridge.md, "Learned geometry"]
    """
    return times_power_of_two(following, -excess_of(following))


@dataclass(frozen=True)
class Statistics:
    """Noisy sums over one batch: Gram blocks (..., A or 1, p, p) and responses (..., A, p).

    They are sums over v = M b/‖M b‖ where the batch has a ``matrix`` M (..., p, p), and over the
    features b themselves where it has none; ``following`` is the matrix of the next batch.
    ``records`` counts slots, ``variance`` (...) is that of the noise in the Gram. ``told`` (..., 2)
    holds ½·Σ(y − ½) and the number of losses heard, both noisy, where rows are normalised.
    """

    gram: Array
    response: Array
    records: int
    variance: Any
    matrix: Array | None = None
    following: Array | None = None
    told: Array | None = None

    @property
    def heard(self) -> Any:
        """The noisy count of observed losses; without one, all slots."""
        return self.records if self.told is None else self.told[..., 1]

    @cached_property
    def excess(self) -> Any:
        """The powers of two (...) by which ``following`` was too large or too small to be used."""
        return 0 if self.following is None else excess_of(self.following)

    @cached_property
    def inverse(self) -> Array | None:
        """M⁻¹."""
        return None if self.matrix is None else inverse(self.matrix)

    def of_the_constant(self) -> Statistics:
        """What tells how people fared: noisy counts and sums of centred losses."""
        gram, response = self.gram[..., :1, :1] + 0.0, self.response[..., :1] + 0.0
        return replace(self, gram=gram, response=response, matrix=None, following=None)

    def to_json(self) -> dict[str, Any]:
        """The upper triangles of the blocks, and the rest."""
        rows, columns = triangle(self.gram.shape[-1])
        document = {
            "gram": encode_array(self.gram[..., rows, columns]),
            "response": encode_array(self.response),
            "records": self.records,
            "variance": repr(float(self.variance)),
        }
        for name in ("matrix", "following", "told"):
            if getattr(self, name) is not None:
                document[name] = encode_array(getattr(self, name))
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Statistics:
        """The statistics of a document."""
        response, packed = decode_array(document["response"]), decode_array(document["gram"])
        p = response.shape[-1]
        if packed.shape[-1] != p * (p + 1) // 2:
            raise ValueError("statistics must have a triangle for each block")
        extra = {
            name: decode_array(document[name])
            for name in ("matrix", "following", "told")
            if name in document
        }
        return cls(
            np.asarray(unpack(packed, p)),
            response,
            int(document["records"]),
            float(document["variance"]),
            **extra,
        )
