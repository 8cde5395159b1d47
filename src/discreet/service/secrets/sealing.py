"""Encryption of rows under the key of their batch, for the database."""

from __future__ import annotations

import os
import struct
from typing import Any, NamedTuple

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ROW, ACTIVATION, LOSS, WHOLE, REPLY = range(5)
"""Kinds of content: a decision, its activation, its loss, decision and loss, a stored reply."""

_PLACE = struct.Struct(">BHII")
_TAIL = struct.Struct("<iB16x")
"""Action and deferral; the padding was the tag of a user in rows of earlier versions."""
_LOSS = struct.Struct("<d")


class DecisionRow(NamedTuple):
    """PRIVATE: features (p,) and action of a decision; ``deferred`` if it waits for activation."""

    features: np.ndarray[Any, Any]
    action: int
    deferred: bool = False

    def __repr__(self) -> str:
        return "DecisionRow(private)"

    def pack(self) -> bytes:
        return self.features.tobytes() + _TAIL.pack(self.action, self.deferred)

    @classmethod
    def unpack(cls, packed: bytes) -> DecisionRow:
        action, deferred = _TAIL.unpack_from(packed, len(packed) - _TAIL.size)
        return cls(np.frombuffer(packed[: -_TAIL.size]), action, bool(deferred))


def pack_loss(loss: float) -> bytes:
    return _LOSS.pack(loss)


def unpack_loss(packed: bytes) -> float:
    return float(_LOSS.unpack(packed)[0])


class Sealer:
    """AES-GCM under the key of one batch; a sealed row opens only in its own slot."""

    def __init__(self, key: bytes, epoch: int, batch: int) -> None:
        self._cipher, self._place = AESGCM(key), (epoch, batch)

    def __repr__(self) -> str:
        return "Sealer(secret)"

    def seal(self, kind: int, slot: int, packed: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._cipher.encrypt(nonce, packed, _PLACE.pack(kind, *self._place, slot))

    def open(self, kind: int, slot: int, sealed: bytes) -> bytes | None:
        """Return the content; None if it was altered or encrypted for another slot."""
        place = _PLACE.pack(kind, *self._place, slot)
        try:
            return self._cipher.decrypt(sealed[:12], sealed[12:], place)
        except InvalidTag:
            return None
