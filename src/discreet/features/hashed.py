"""A column with more values than anybody would list: a public hash chooses one of few slots."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.features.column_values import LARGEST, Field, whole_number
from discreet.types import NumpyArray, added_later
from discreet.validate import whole

HALF_PAIRS = re.compile("[\ud800-\udfff]")
"""Code units that are no characters; every language writes U+FFFD for them in UTF-8."""


@dataclass(frozen=True)
class Hashed(Field):
    """A word or a whole number, one-hot in one of ``width`` slots that a public hash chooses.

    The rule, which other languages follow: h = CRC-32 (of zlib, IEEE 802.3) of the UTF-8 bytes of
    ``name=value``, where a whole number is written in decimal digits; then the finaliser of
    MurmurHash3, in 32 bits,

        h ^= h >> 16;  h *= 0x85ebca6b;  h ^= h >> 13;  h *= 0xc2b2ae35;  h ^= h >> 16

    and the slot is h mod width. The name is part of it, so that two columns collide differently.
    Values that share a slot cannot be distinguished: with V values in use, a width of 2V keeps
    about 60 % of them alone.

    ``name`` is the key or the column. A missing value is refused, unless ``stand_in`` replaces it
    or ``indicator`` adds a feature for it.

    >>> import numpy as np
    >>> out = np.zeros(8)
    >>> Hashed("town", 8).write("Bern", out, 0)
    >>> out
    array([0., 0., 0., 0., 0., 1., 0., 0.])
    """

    name: str
    width: int
    stand_in: str | int | None = added_later(None)
    indicator: bool = added_later(False)

    rule = "a word or a whole number below 2**53"

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", whole(f"width of {self.name!r}", self.width, 2))
        self.check_declaration()

    @cached_property
    def _start(self) -> int:
        return zlib.crc32(_bytes(f"{self.name}="))

    def write(self, value: object, out: NumpyArray, at: int) -> None:
        if not isinstance(value, str):
            number = whole_number(value)
            if number is None or abs(number) > LARGEST:
                raise self.refusal(value, "Send one, and a larger number as a string.")
            value = str(number)
        out[at + scrambled(zlib.crc32(_bytes(value), self._start)) % self.width] = 1.0


def scrambled(h: Any) -> Any:
    """A fixed public permutation of 32-bit numbers, or of an array of them: the finaliser.

    >>> scrambled(1), scrambled(2)
    (1364076727, 821347078)
    """
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ h >> shift) * factor) & 0xFFFFFFFF
    return h ^ h >> 16


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return HALF_PAIRS.sub("\ufffd", text).encode()
