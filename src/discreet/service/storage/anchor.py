"""File outside the database that records published documents, to detect a database set back.

Each document has two lines: its *intent*, on disk before the commit, and its *confirmation*, on
disk after the committed row was read back and before the document is served. So every document
that was served is confirmed here. A database without it was restored from a backup: to continue
would add noise a second time to rows that were released. An intent without a
confirmation was never served; the next intent with that number replaces it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from discreet.errors import NotReady, StateClaimed
from discreet.service.secrets.vault import create_file

FORMAT = "discreet-anchor/1"


@dataclass(frozen=True)
class AnchorMark:
    """Entry for a document: epoch, number, digest, and for a release its batch and charge."""

    epoch: int
    number: int
    digest: str
    batch: int | None = None
    charge: Mapping[str, object] | None = None


@dataclass(frozen=True)
class AnchorContent:
    """Content of an anchor; ``confirmed[n]`` is document n, of any epoch."""

    confirmed: tuple[AnchorMark, ...] = ()
    intents: tuple[AnchorMark, ...] = ()

    @property
    def pending(self) -> AnchorMark | None:
        """Last intent if it is not confirmed: the only unconfirmed document that may exist."""
        last = self.intents[-1] if self.intents else None
        return last if last and last.number == len(self.confirmed) else None

    def holds(self, number: int, digest: str) -> bool:
        """Return whether this document may have been served."""
        return number < len(self.confirmed) and self.confirmed[number].digest == digest


class Anchor:
    """An append-only file of one experiment; processes take turns by a lock on the file."""

    def __init__(self, path: Path, experiment: str) -> None:
        self.path, self._experiment = path, experiment
        self._read: tuple[tuple[int, ...], AnchorContent] | None = None

    def create(self) -> None:
        """Make an anchor for a new experiment; refuse a file that already has a document."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        header = {"format": FORMAT, "experiment": self._experiment}
        create_file(self.path, json.dumps(header).encode() + b"\n")
        self.check_new()

    def check_new(self) -> None:
        """Refuse a file of another experiment, or one that already has a document."""
        with self.held() as book:
            if book.confirmed:
                raise StateClaimed(
                    f"anchor must be new; {self.path} names documents of an experiment "
                    f"{self._experiment!r}. Leave it as it is, and name another place."
                )

    @contextmanager
    def held(self) -> Iterator[AnchorContent]:
        """Lock the anchor and yield its content."""
        with self._locked() as (_, book):
            yield book

    def read(self) -> AnchorContent:
        """Return the content without a lock; a file that did not change is not parsed again."""
        with self.path.open("rb") as file:
            found = os.fstat(file.fileno())
            seen = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            if self._read is None or self._read[0] != seen:
                self._read = seen, self._parsed(file.read())
            return self._read[1]

    def intend(self, mark: AnchorMark) -> None:
        """Record that a document is about to be committed; on disk when this returns."""
        with self._locked() as (file, book):
            following = len(book.confirmed)
            if mark.number < following:
                raise behind()
            if mark.number > following:
                raise NotReady(
                    f"document {mark.number - 1} must be confirmed before the next one; it is not "
                    "confirmed yet. Nothing was changed: try again in a second."
                )
            if book.pending != mark:
                _append(file, {"intent": asdict(mark)})
            os.fsync(file.fileno())

    def confirm(self, documents: Iterable[tuple[int, str]]) -> None:
        """Record committed documents, which may be served when this returns."""
        with self._locked() as (file, book):
            for number, digest in documents:
                if number < len(book.confirmed):
                    if book.confirmed[number].digest != digest:
                        raise behind()
                    continue
                mark = book.pending
                if mark is None or (mark.number, mark.digest) != (number, digest):
                    raise StateClaimed(
                        f"document {number} must be the one that the anchor expects; it differs. "
                        "The database or the anchor was restored: run discreet restore."
                    )
                _append(file, {"confirmed": [mark.epoch, number, digest]})
                book = replace(book, confirmed=(*book.confirmed, mark))
            # Also for lines of another process, which may have died before they were on disk.
            os.fsync(file.fileno())

    @contextmanager
    def _locked(self) -> Iterator[tuple[BinaryIO, AnchorContent]]:
        # Never created here: an empty folder may be the mount point of a missing disk.
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND)
        with os.fdopen(handle, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file, self._parsed(file.read())

    def _parsed(self, content: bytes) -> AnchorContent:
        lines = [*_lines(content)]
        header = lines[0] if lines else {}
        if (header.get("format"), header.get("experiment")) != (FORMAT, self._experiment):
            raise StateClaimed(
                f"anchor must be that of {self._experiment!r}, a file that discreet wrote; "
                f"{self.path} belongs to {header.get('experiment')!r}. "
                "Name the anchor of this experiment."
            )
        confirmed: list[AnchorMark] = []
        intents: list[AnchorMark] = []
        try:
            for line in lines[1:]:
                if "intent" in line:
                    intents.append(AnchorMark(**line["intent"]))
                    continue
                mark = intents[-1]
                if line["confirmed"] != [mark.epoch, len(confirmed), mark.digest]:
                    raise ValueError
                confirmed.append(mark)
        except (LookupError, TypeError, ValueError):
            raise StateClaimed(
                f"anchor must confirm each document once, after its intent; {self.path} does not. "
                "It was edited or damaged: put it back as it was."
            ) from None
        return AnchorContent(tuple(confirmed), tuple(intents))


def behind() -> StateClaimed:
    """Return the error for a database that lacks or contradicts what the anchor confirms."""
    return StateClaimed(
        "database must hold everything that its anchor names; a document is missing or differs. "
        "The database was restored from a backup, or the vault is of another experiment: run "
        "discreet restore, or name its vault. "
        "Continuing would add noise to released rows a second time."
    )


def _append(file: BinaryIO, line: Mapping[str, object]) -> None:
    file.seek(0)
    content = file.read()
    torn = b"" if content.endswith(b"\n") else b"\n"
    file.write(torn + json.dumps(line).encode() + b"\n")
    file.flush()


def _lines(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the complete lines; a line that a crash cut short is not JSON and is skipped."""
    for line in content.splitlines():
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found
