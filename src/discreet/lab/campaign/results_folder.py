"""The folder of a campaign: a manifest, a file and its sidecar for each task, a lock.

Every file appears whole or not at all. A result file counts when its checksum is the one that
its sidecar states; all other files there are ignored.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from discreet.errors import CorruptRelease, InvalidInput
from discreet.releases.canonical import read_document, write_atomically
from discreet.types import JsonMapping, JsonObject

FORMAT = "discreet-campaign/1"
GO_ON = "Run the same command again to go on."


@dataclass(frozen=True)
class Sidecar:
    """Facts about a task, without its results."""

    sha256: str | None
    seconds: float
    rows: int
    seeds: list[int]
    device: str
    error: str | None


NOTHING = Sidecar(None, 0.0, 0, [], "", None)


@dataclass(frozen=True)
class Folder:
    """Folder of a campaign, for reading and writing."""

    root: Path

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    def manifest(self) -> JsonObject:
        """Return the manifest; refuse a folder without one."""
        path = self.root / "manifest.json"
        if not path.is_file():
            raise InvalidInput(
                f"folder must be one that campaign run wrote; {self.root} has no manifest.json. "
                "Check the path."
            )
        try:
            manifest = read_document(path)
        except CorruptRelease:
            manifest = {}
        if manifest.get("format") != FORMAT:
            raise InvalidInput(
                f"manifest.json must have the format {FORMAT!r}; got {manifest.get('format')!r}. "
                "Read it with the version of discreet that wrote it, or choose another folder."
            )
        return manifest

    def known(self) -> JsonObject | None:
        """Return the manifest of a folder to write to; None for a new folder."""
        if not self.root.exists():
            return None
        if not self.root.is_dir():
            raise InvalidInput(f"--out must be a folder; {self.root} is a file. Choose another.")
        others = {path.name for path in self.root.iterdir()} - {"runs", ".lock"}
        if others and "manifest.json" not in others:
            raise InvalidInput(
                f"--out must be new, empty or the folder of a campaign; {self.root} has other "
                "files. Choose another place."
            )
        return self.manifest() if others else None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one writer; the system releases the lock when a process dies."""
        import fcntl

        try:
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"--out must be a folder to write to; {self.root} is not ({error.strerror}). "
                "Choose another place."
            ) from None
        with (self.root / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InvalidInput(
                    f"--out must be free; another campaign writes to {self.root} now. "
                    "Wait until it ends, or choose another folder."
                ) from None
            for leftover in self.runs.glob(".*"):  # of a write that was killed
                leftover.unlink()
            yield

    def busy(self) -> bool:
        """Return True if a campaign writes to the folder now."""
        import fcntl

        try:
            with (self.root / ".lock").open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def tasks(self) -> list[str]:
        """Return the tasks that have a sidecar, ordered by name."""
        return sorted(path.name.removesuffix(".json") for path in self.runs.glob("[!.]*.json"))

    def sidecar(self, task: str) -> Sidecar:
        """Return facts about a task; ``NOTHING`` if its sidecar is missing or unreadable."""
        try:
            return Sidecar(**json.loads((self.runs / f"{task}.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return NOTHING

    def has_file(self, task: str) -> bool:
        """Return True if there is a result file, valid or not."""
        return (self.runs / f"{task}.parquet").is_file()

    def content(self, task: str) -> bytes | None:
        """Return the result file of a task, if it has the checksum of its sidecar."""
        try:
            content = (self.runs / f"{task}.parquet").read_bytes()
        except OSError:
            return None
        expected = self.sidecar(task).sha256
        return content if hashlib.sha256(content).hexdigest() == expected else None

    def write_manifest(self, manifest: JsonMapping) -> None:
        _write(self.root / "manifest.json", _text(manifest))

    def write_results(self, task: str, content: bytes, sidecar: Sidecar) -> None:
        """Write results, then the sidecar: after a crash in between the checksum is wrong."""
        _write(self.runs / f"{task}.parquet", content)
        checksum = hashlib.sha256(content).hexdigest()
        self.write_sidecar(task, replace(sidecar, sha256=checksum))

    def write_sidecar(self, task: str, sidecar: Sidecar) -> None:
        _write(self.runs / f"{task}.json", _text(asdict(sidecar)))

    def forget(self, task: str) -> None:
        """Delete the sidecar of a task that failed before and no longer exists."""
        (self.runs / f"{task}.json").unlink(missing_ok=True)


def file_name(dataset: str) -> str:
    """Return a data set's name as part of a file name, different for different names."""
    plain = re.sub(r"[^\w.-]", "_", dataset, flags=re.ASCII).lstrip(".")
    if plain == dataset:
        return dataset
    return f"{plain}-{hashlib.sha256(dataset.encode()).hexdigest()[:8]}"


def _text(document: JsonMapping) -> bytes:
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content, mode=0o644)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InvalidInput(
            f"disk must have room for the results; none is left for {path.name}. "
            f"Free some space. {GO_ON}"
        ) from None
