"""Sets that were fetched once: archives of arrays, each with a checksum beside it.

The folder is $DISCREET_CACHE, else $XDG_CACHE_HOME/discreet, else ~/.cache/discreet. It may be
copied to a machine without a network. Checksum files can be read by ``sha256sum --check``.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidInput


def folder() -> Path:
    """Where fetched sets are kept."""
    if own := os.environ.get("DISCREET_CACHE"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "discreet"


def keep(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write an archive and its checksum; equal arrays make equal bytes."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    content = packed.getvalue()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The checksum comes last: an archive without one is not there yet.
        _replace(path, content)
        _replace(_checksum(path), f"{_sha256(content)}  {path.name}\n".encode())
    except OSError as error:
        raise InvalidInput(
            f"cache folder must be writable; {folder()} is not ({error.strerror}). "
            "Make room in it, or set DISCREET_CACHE to another folder."
        ) from None


def recall(path: Path) -> dict[str, np.ndarray[Any, Any]] | None:
    """The arrays of an archive whose checksum holds; None if it is damaged or not there."""
    try:
        content, noted = path.read_bytes(), _checksum(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    if noted.split()[:1] != [_sha256(content)]:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def is_damaged(path: Path) -> bool:
    """Whether something lies there that cannot be trusted."""
    return path.exists() and _checksum(path).exists() and recall(path) is None


def _replace(path: Path, content: bytes) -> None:
    """The whole content or none of it, also when two processes write at once."""
    written = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        written.write_bytes(content)
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)


def _checksum(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
