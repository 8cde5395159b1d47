"""The private file of a learner: only its owner can read it, and it is loaded once."""

from __future__ import annotations

import io
import json
import os
import threading
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import CorruptRelease, DiscreetError, InvalidInput, StateClaimed
from discreet.releases.canonical import write_atomically

FORMAT = "discreet-state/3"

_UNREADABLE = (
    *(LookupError, TypeError, ValueError, OSError, EOFError, RuntimeError),
    *(SyntaxError, tokenize.TokenError, zlib.error),
)
"""What zipfile, NumPy and JSON raise on altered bytes, besides BadZipFile."""


class Custody:
    """A lock that refuses all use after the state was saved to a file, and in a forked copy.

    Privacy: if two processes hold the same rows, only the one that made the learner may go on;
    otherwise two noises would be drawn for one batch.
    [docs/privacy/transcript.md, "Proof"]
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()
        self.evaluation_data = False

    def __enter__(self) -> None:
        # Checked before the lock: a thread of the other process may hold it for ever.
        if os.getpid() != self._process:
            raise StateClaimed(
                "learner must be used in the process that made it; a fork copied it into this one. "
                "Make it after the fork, or save it in the process that made it and load it here."
            )
        self._lock.acquire()
        if self.evaluation_data:
            self._lock.release()
            raise StateClaimed(
                "learner must not be used after save(); its state goes on in the file. "
                "Continue with Learner.load."
            )

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def write(path: str | Path, header: Mapping[str, Any], rows: Mapping[str, Any]) -> None:
    """Header and rows in one file of mode 0600 that appears whole or not at all."""
    if not Path(path).parent.is_dir():
        raise InvalidInput(
            f"path must be in a folder that exists; got {str(path)!r}. Make the folder first: "
            "nothing was written, and the learner stays usable."
        )
    if os.path.lexists(path):
        raise _taken(path)
    text = json.dumps({"format": FORMAT, **header}).encode()
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(text, dtype=np.uint8), **rows)
    try:
        write_atomically(Path(path), buffer.getvalue(), mode=0o600, new=True)
    except FileExistsError:  # somebody was faster
        raise _taken(path) from None


def _taken(path: str | Path) -> InvalidInput:
    return InvalidInput(
        f"path must be a new file; {path} is there, and may be the only copy of a learner. Name "
        "another file, or move that one away: nothing was written, and the learner stays usable."
    )


@contextmanager
def contents(path: str | Path) -> Iterator[None]:
    """Turns errors from altered bytes of the file into CorruptRelease."""
    try:
        yield
    except DiscreetError:
        raise
    except (zipfile.BadZipFile, *_UNREADABLE):
        raise CorruptRelease(
            f"saved state must be a file that Learner.save wrote; {path} is not, or it was "
            "altered. It was not claimed."
        ) from None


@contextmanager
def claim(path: str | Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Header and rows of a saved state, which is removed when the caller has taken it over.

    Renaming is the claim: if two processes try, one does not find the file. If the file cannot be
    read, or the caller fails, the file is put back untouched.
    """
    source, claimed = Path(path), Path(f"{path}.claimed")
    if claimed.exists() and source.exists():  # renaming would destroy the claimed one
        raise StateClaimed(
            f"saved state must be the only one of its name; {claimed} is there as well. Another "
            "process is loading it, or ended while it did: move that file away, and load it under "
            "another name."
        )
    try:
        os.rename(source, claimed)
    except FileNotFoundError:
        raise StateClaimed(
            f"saved state must exist and be unclaimed; {source} is not there. "
            "It was loaded before (go on with that learner), or the path is wrong."
        ) from None
    try:
        with contents(path):
            with np.load(claimed, allow_pickle=False) as file:
                rows = {name: file[name] for name in file.files}
            header = json.loads(rows.pop("header").tobytes())
            if header.pop("format") != FORMAT:
                raise ValueError
        yield header, rows
    except BaseException:
        os.rename(claimed, source)
        raise
    claimed.unlink()
