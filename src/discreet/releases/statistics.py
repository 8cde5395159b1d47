"""Noisy sums of one batch, which later fits use again, and the weight of older releases.

Releases are public, so adding and weighting them costs no privacy.
[docs/privacy/ridge.md, "Forgetting"]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from discreet.arrays.backend import namespace
from discreet.arrays.linear_algebra import inverse, triangle, unpack
from discreet.design.control import PARTS
from discreet.releases.canonical import decode_array, encode_array
from discreet.types import Array, JsonMapping, JsonObject, Numbers

PUBLISHED = {
    "matrix": "matrix",
    "following": "following",
    "told": "outcome_sums",
    "signal": "signal",
}
"""Keys of a document, and the fields behind them, that some mechanisms have."""


@dataclass(frozen=True)
class Statistics:
    """Noisy sums over one batch: Gram blocks (..., A or 1, p, p) and responses (..., A, p).

    They are sums over rows of M b where the batch has a ``matrix`` M (..., p, p), and over the
    features b themselves where it has none; ``following`` is the matrix of the next batch.
    ``records`` counts slots, ``variance`` (...) is that of the noise in the Gram. ``outcome_sums``
    (..., 2 + 2A) holds the number of losses observed, 2·Σ(y − ½)², and for each action ½·Σ(y − ½)
    and half its number of losses, all noisy, of bandit feedback with a matrix. ``signal``
    (..., 1 + A) follows from all releases so far: how clear contexts are, from 0 to 1, and the
    standard error of the predicted loss of each action.
    """

    gram: Array
    response: Array
    records: int
    variance: Numbers
    matrix: Array | None = None
    following: Array | None = None
    outcome_sums: Array | None = None
    signal: Array | None = None

    @property
    def observed_count(self) -> Numbers:
        """The noisy count of observed losses; without one, all slots."""
        return self.records if self.outcome_sums is None else self.outcome_sums[..., 0]

    @cached_property
    def inverse(self) -> Array | None:
        """M⁻¹."""
        return None if self.matrix is None else inverse(self.matrix)

    @cached_property
    def constant_powers(self) -> Array:
        """‖√2·(M⁻¹)_0‖^k (..., 2) for k = 4 and 2: of the noise of the constant feature."""
        assert self.inverse is not None
        row = 2.0 * (self.inverse[..., 0, :] ** 2).sum(-1)
        return namespace(row).concat([(row * row)[..., None], row[..., None]], axis=-1)

    def concluded(self, following: Array | None, signal: Array | None) -> Statistics:
        """Return the statistics with what follows from them, and what was computed of M."""
        made = object.__new__(Statistics)
        vars(made).update(vars(self), following=following, signal=signal)
        return made

    def of_the_constant(self) -> Statistics:
        """Return the noisy counts and sums of centred losses alone."""
        gram, response = self.gram[..., :1, :1] + 0.0, self.response[..., :1] + 0.0
        return replace(self, gram=gram, response=response, matrix=None, following=None)

    def to_json(self) -> JsonObject:
        """The upper triangles of the blocks, and the rest."""
        rows, columns = triangle(self.gram.shape[-1])
        document = {
            "gram": encode_array(self.gram[..., rows, columns]),
            "response": encode_array(self.response),
            "records": self.records,
            "variance": repr(float(self.variance)),
        }
        for key, name in PUBLISHED.items():
            if getattr(self, name) is not None:
                document[key] = encode_array(getattr(self, name))
        return document

    @classmethod
    def from_json(cls, document: JsonMapping) -> Statistics:
        """The statistics of a document."""
        response, packed = decode_array(document["response"]), decode_array(document["gram"])
        p = response.shape[-1]
        if packed.shape[-1] != p * (p + 1) // 2:
            raise ValueError("statistics must have a triangle for each block")
        optional = [(key, name) for key, name in PUBLISHED.items() if key in document]
        extra = {name: decode_array(document[key]) for key, name in optional}
        return cls(
            np.asarray(unpack(packed, p)),
            response,
            int(document["records"]),
            float(document["variance"]),
            **extra,
        )


COUNT_VARIANCE = 4.0 / 3.0
"""Variance of the noise in a count over that in a sum. [docs/privacy/lift.md, "Sensitivity"]"""


@dataclass(frozen=True)
class PartLosses:
    """Σ(y − ½) and the number of observed losses, for policy and control: ``sums`` (..., 2, 2),
    or (k, 2, 2) of k guardrails.

    ``variance`` (...) is that of the noise in the sums of losses; counts have 4/3 of it.
    """

    sums: Array
    variance: Numbers

    def to_json(self) -> JsonObject:
        return {"sums": encode_array(self.sums), "variance": repr(float(self.variance))}

    @classmethod
    def from_json(cls, document: JsonMapping, *, guardrails: bool = False) -> PartLosses:
        """The sums of a document: of losses, or of guardrails."""
        sums = decode_array(document["sums"])
        if sums.shape[guardrails:] != (len(PARTS), 2):
            raise ValueError("sums must be two numbers for each part")
        return cls(sums, float(document["variance"]))


Item = TypeVar("Item")

HALF_LIVES = 5
"""After so many half-lives a release would count less than 1/32, and is not read any more."""


def share(age: int, half_life: int | None) -> float:
    """Return the weight 2^(−age/half_life) of a release after ``age`` later ones.

    >>> [share(age, half_life=2) for age in (0, 2, 4)], share(99, half_life=None)
    ([1.0, 0.5, 0.25], 1)
    """
    return 1 if half_life is None else 2.0 ** (-age / half_life)


def remembered(items: Sequence[Item], half_life: int | None) -> list[tuple[Item, float]]:
    """Return the releases that still count, the oldest first, with weights relative to the newest.

    They are at most 5·half_life + 1, however many there were.

    >>> remembered("abcdefghi", half_life=1)[0], len(remembered("abcdefghi", half_life=1))
    (('d', 0.03125), 6)
    """
    newest = items if half_life is None else items[-(HALF_LIVES * half_life + 1) :]
    ages = range(len(newest) - 1, -1, -1)
    return [(item, share(age, half_life)) for item, age in zip(newest, ages, strict=True)]
