"""Encryption of rows under the key of their batch, and authenticated decision ids.

A decision id contains its batch, its slot and a MAC, so that ids need not be stored.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from discreet.batches.batch_slots import batch_over, unknown_decision
from discreet.types import NumpyArray

ROW, ACTIVATION, LOSS, WHOLE, REPLY = range(5)
"""Kinds of content: a decision, its activation, its loss, decision and loss, a stored reply."""

_PLACE = struct.Struct(">BHII")
_TAIL = struct.Struct("<iB")
"""Action and deferral."""
_LOSS = struct.Struct("<d")


class DecisionRow(NamedTuple):
    """PRIVATE: features (p,) and action of a decision; ``deferred`` if it waits for activation."""

    features: NumpyArray
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


def pack_losses(losses: Sequence[float]) -> bytes:
    """Pack a loss and the guardrails of its plan; NaN takes as many bytes as a value."""
    return b"".join(map(_LOSS.pack, losses))


def unpack_losses(packed: bytes, guardrails: int) -> tuple[bytes, list[float]]:
    """Split what ``outcome`` returned: the row, if it has one, and the loss with its guardrails."""
    end = len(packed) - _LOSS.size * (1 + guardrails)
    return packed[:end], [each[0] for each in _LOSS.iter_unpack(packed[end:])]


class Sealer:
    """AES-GCM under the key of one batch; a sealed row opens only in its own slot."""

    def __init__(self, key: bytes, epoch: int, batch: int) -> None:
        self._cipher, self._place = AESGCM(key), (epoch, batch)

    def __repr__(self) -> str:
        return "Sealer(secret)"

    def seal(self, kind: int, slot: int, packed: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._cipher.encrypt(nonce, packed, _PLACE.pack(kind, *self._place, slot))

    def seal_losses(self, losses: Sequence[tuple[int, float]]) -> list[bytes]:
        """Encrypt losses of slots, each as ``seal(LOSS, slot, pack_losses([loss]))``."""
        encrypt, pack, place = self._cipher.encrypt, _PLACE.pack, self._place
        drawn, made = os.urandom(12 * len(losses)), []
        for start, (slot, loss) in zip(range(0, len(drawn), 12), losses, strict=True):
            nonce = drawn[start : start + 12]
            made.append(nonce + encrypt(nonce, _LOSS.pack(loss), pack(LOSS, *place, slot)))
        return made

    def open(self, kind: int, slot: int, sealed: bytes) -> bytes | None:
        """Return the content; None if it was altered or encrypted for another slot."""
        place = _PLACE.pack(kind, *self._place, slot)
        try:
            return self._cipher.decrypt(sealed[:12], sealed[12:], place)
        except InvalidTag:
            return None

    def outcome(self, id: DecisionId, losses: Sequence[float]) -> tuple[int, bytes]:
        """Return kind and content that a loss and its guardrails add: alone, or with the row that
        the id carries."""
        if id.kind != TOKEN:
            return LOSS, pack_losses(losses)
        row = self.open(ROW, id.slot, id.token)
        if row is None:  # another key sealed it
            raise batch_over()
        return WHOLE, row + pack_losses(losses)


UNSTORED, WRITTEN, TOKEN, TICKET = range(4)
"""Kinds: without a slot; row written at decide; row in the id, encrypted; ticket without a row."""

_HEADER = struct.Struct(">BHII8s")
_MAC = 16
_BARE = _HEADER.size + _MAC
"""Bytes of an id without an encrypted row: 35, which are 47 letters and two bits that are 0."""
BARE_LENGTH = -(-_BARE * 4 // 3)
_ALPHABET = bytes.maketrans(b"-_+/", b"+/--")
"""Letters of URLs as those of plain Base64, whose own become letters that it has not."""


class DecisionId(NamedTuple):
    """Content of an id: kind, batch, slot, nonce of the lease, encrypted row of a token."""

    kind: int
    epoch: int
    batch: int
    slot: int
    lease: bytes = bytes(8)
    token: bytes = b""


class DecisionIds:
    """Writes and reads ids under one key."""

    def __init__(self, key: bytes) -> None:
        # The part that depends only on the key is done once: half of the time.
        self._keyed = hmac.new(key, digestmod="sha256")

    def write(self, id: DecisionId) -> str:
        """Return the id as text that is safe in URLs."""
        body = _HEADER.pack(id.kind, id.epoch, id.batch, id.slot, id.lease) + id.token
        return base64.urlsafe_b64encode(body + self._mac(body)).rstrip(b"=").decode()

    def unstored(self, epoch: int) -> str:
        """Return an id for a decision that took no slot."""
        return self.write(DecisionId(UNSTORED, epoch, 0, secrets.randbits(32)))

    def read(self, text: str) -> DecisionId:
        """Parse an id; a forged, altered or misspelt one raises the same error."""
        body, mac = _split(text)
        # Always compared, and in constant time: the time reveals nothing about the MAC.
        if not hmac.compare_digest(self._mac(body), mac) or len(body) < _HEADER.size:
            raise unknown_decision()
        kind, epoch, batch, slot, lease = _HEADER.unpack_from(body)
        return DecisionId(kind, epoch, batch, slot, lease, body[_HEADER.size :])

    def read_bare(self, texts: Sequence[str]) -> list[DecisionId | None]:
        """Parse ids of ``BARE_LENGTH`` letters at once; None for those that ``read`` must refuse.

        Where one of them is no Base64, all are None.
        """
        try:
            joined = "A".join([*texts, ""]).encode("ascii").translate(_ALPHABET)
            raw = binascii.a2b_base64(joined, strict_mode=True)
        except ValueError:
            return [None] * len(texts)
        found: list[DecisionId | None] = []
        for start in range(0, len(raw), _BARE + 1):
            body, end = raw[start : start + _HEADER.size], start + _BARE
            good = hmac.compare_digest(self._mac(body), raw[end - _MAC : end]) and not raw[end]
            found.append(DecisionId(*_HEADER.unpack(body)) if good else None)
        return found

    def _mac(self, body: bytes) -> bytes:
        made = self._keyed.copy()
        made.update(body)
        return made.digest()[:_MAC]


def _split(text: str) -> tuple[bytes, bytes]:
    with suppress(ValueError):
        given = text.encode("ascii")
        raw = base64.urlsafe_b64decode(given + b"=" * (-len(given) % 4))
        if base64.urlsafe_b64encode(raw).rstrip(b"=") == given:  # one spelling per id
            return raw[:-_MAC], raw[-_MAC:].ljust(_MAC, b"\0")
    return b"", bytes(_MAC)
