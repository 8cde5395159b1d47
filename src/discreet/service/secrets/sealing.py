"""Packs rows and encrypts them under the key of their batch, for the database."""

from __future__ import annotations

import hmac
import os
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ROW, ACTIVATION, LOSS, WHOLE, REPLY = range(5)
"""What is sealed: a decision, its activation, its loss, both at once, an answer to repeat."""

_PLACE = struct.Struct(">BHII")
_TAIL = struct.Struct("<iB16s")
_LOSS = struct.Struct("<d")
NOBODY = bytes(16)
"""The tag of a row that names no user."""


@dataclass(frozen=True, repr=False)
class Row:
    """A decision: features (p,), action, whether it waits for activation, tag of its user."""

    features: np.ndarray[Any, Any]
    action: int
    deferred: bool = False
    user: bytes = NOBODY

    def pack(self) -> bytes:
        return self.features.tobytes() + _TAIL.pack(self.action, self.deferred, self.user)

    @classmethod
    def unpack(cls, packed: bytes) -> Row:
        action, deferred, user = _TAIL.unpack_from(packed, len(packed) - _TAIL.size)
        return cls(np.frombuffer(packed[: -_TAIL.size]), action, bool(deferred), user)


def pack_loss(loss: float) -> bytes:
    return _LOSS.pack(loss)


def unpack_loss(packed: bytes) -> float:
    return float(_LOSS.unpack(packed)[0])


class Sealer:
    """AES-GCM under the key of one batch; a sealed row opens only in its own slot."""

    def __init__(self, key: bytes, epoch: int, batch: int) -> None:
        self._cipher, self._place = AESGCM(key), (epoch, batch)
        self._users = hmac.digest(key, b"users of this batch", "sha256")

    def __repr__(self) -> str:
        return "Sealer(secret)"

    def seal(self, kind: int, slot: int, packed: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._cipher.encrypt(nonce, packed, _PLACE.pack(kind, *self._place, slot))

    def open(self, kind: int, slot: int, sealed: bytes) -> bytes | None:
        """The content; None if it was altered or sealed for another place."""
        place = _PLACE.pack(kind, *self._place, slot)
        try:
            return self._cipher.decrypt(sealed[:12], sealed[12:], place)
        except InvalidTag:
            return None

    def user(self, name: str | None) -> bytes:
        """A keyed hash that finds repeated users; its key is destroyed with the batch."""
        if name is None:
            return NOBODY
        return hmac.digest(self._users, name.encode(), "sha256")[:16]
