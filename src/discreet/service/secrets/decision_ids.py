"""Decision ids: each contains its batch, its slot and a MAC, so that ids need not be stored."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import struct
from typing import NamedTuple

from discreet.rows.slot_rules import unknown_decision

UNSTORED, WRITTEN, TOKEN, TICKET = range(4)
"""Kinds: without a slot; row written at decide; row in the id, encrypted; ticket without a row."""

_HEADER = struct.Struct(">BHII8s")
_MAC, _BLOCK = 16, 64


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
        # HMAC-SHA256 with the part that depends only on the key done once: a third of the time.
        padded = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in padded))

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

    def _mac(self, body: bytes) -> bytes:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(body)
        outer.update(inner.digest())
        return outer.digest()[:_MAC]


def _split(text: str) -> tuple[bytes, bytes]:
    try:
        given = text.encode("ascii")
        raw = base64.urlsafe_b64decode(given + b"=" * (-len(given) % 4))
    except (UnicodeEncodeError, binascii.Error, ValueError):
        return b"", bytes(_MAC)
    if base64.urlsafe_b64encode(raw).rstrip(b"=") != given:  # one spelling per id
        return b"", bytes(_MAC)
    return raw[:-_MAC], raw[-_MAC:].ljust(_MAC, b"\0")
