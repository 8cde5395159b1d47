"""Ed25519 keys and signatures: 32 bytes of private key, 64 hexadecimal digits of public key."""

from __future__ import annotations

import re
from typing import Any

from discreet.errors import InvalidInput

_PUBLIC = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")


def new_private_key() -> bytes:
    """A new private key from the operating system's entropy: keep it outside the database."""
    made: bytes = _ed25519().Ed25519PrivateKey.generate().private_bytes_raw()
    return made


def public_key(private_key: bytes) -> str:
    """The public key in hexadecimal: what clients pin."""
    key: bytes = _private(private_key).public_key().public_bytes_raw()
    return key.hex()


def checked_public_key(key: Any) -> str:
    """The public key if it is well-formed; otherwise an error."""
    if isinstance(key, str) and _PUBLIC.fullmatch(key):
        return key
    raise InvalidInput(
        f"public key must be 64 hexadecimal digits in lower case; got {key!r}. "
        "Ask the operator of the service for it: a key published with a release proves nothing."
    )


def signature(message: bytes, private_key: bytes) -> str:
    """The Ed25519 signature of a message, in hexadecimal. [RFC 8032]"""
    signed: bytes = _private(private_key).sign(message)
    return signed.hex()


def is_signed(message: bytes, signed: Any, key: str) -> bool:
    """Return whether ``signed`` is the signature of this message by the owner of the public key."""
    if not isinstance(signed, str) or not _SIGNATURE.fullmatch(signed):
        return False
    ed25519 = _ed25519()
    from cryptography.exceptions import InvalidSignature

    try:
        owner = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        owner.verify(bytes.fromhex(signed), message)
    except InvalidSignature:
        return False
    return True


def _private(key: Any) -> Any:
    if not isinstance(key, bytes) or len(key) != 32:
        raise InvalidInput(
            "private key must be 32 bytes; this is not. Make one with new_private_key()."
        )
    return _ed25519().Ed25519PrivateKey.from_private_bytes(key)


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise InvalidInput(
            "cryptography must be installed for signatures; this Python lacks it. "
            "Run pip install 'discreet[client]'."
        ) from None
    return ed25519
