"""Secrets that must not be in the database: a signing key, a MAC key, and two keys per batch.

One key of a batch encrypts its rows. Destroying it after the release erases every copy of them,
also in backups and write-ahead logs. The other key hashes the names of the requests, and is
destroyed when the names are forgotten.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path

from discreet.client.documents import new_private_key
from discreet.errors import InvalidInput, StateClaimed

BATCH, NAMES = "batch", "names"
"""Purposes of the keys of a batch: its rows, or the names of its requests."""


@contextmanager
def locked_file(
    path: Path, refusal: str, *, create: bool = False, shared: bool = False, patience: float = 0.0
) -> Iterator[None]:
    """Lock the file at ``path``; ``refusal`` is the error if another process holds the lock for
    longer than ``patience`` seconds. Several processes may hold a ``shared`` lock. With ``create``
    a missing file is created, readable by its owner only: a user who may open it may lock it."""
    wanted = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    end, flags = time.monotonic() + patience, os.O_RDWR | os.O_CREAT if create else os.O_RDONLY
    with os.fdopen(os.open(path, flags, 0o600), "rb") as file:
        if create:  # a copied file may be readable by others
            os.fchmod(file.fileno(), 0o600)
        while True:
            try:
                fcntl.flock(file, wanted)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise StateClaimed(refusal) from None
            time.sleep(0.05)
        yield


class Vault:
    """A folder of mode 0700 with files of mode 0600."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[tuple[int, int], bytes] = {}

    def __repr__(self) -> str:
        return "Vault(secret)"

    def create(self) -> None:
        """Make a new vault; an existing one is kept."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, secret in (("signing", new_private_key()), ("mac", secrets.token_bytes(32))):
            create_file(self.folder / f"{name}.key", secret)

    def check(self) -> None:
        """Refuse a vault without signing and MAC key, or one that other users may read."""
        self.signing, self.mac  # noqa: B018
        self.check_modes()

    def check_modes(self) -> None:
        """Refuse secrets that users other than their owner may read."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidInput(
                f"vault must be a folder; {self.folder} is a file. Name another: vault = '…'."
            )
        for path in (self.folder, *sorted(self.folder.glob("*.key"))):
            if path.exists() and path.stat().st_mode & 0o077:
                raise InvalidInput(
                    f"vault must be readable by its owner only; {path} has mode "
                    f"{path.stat().st_mode & 0o777:04o}. Run chmod -R go= {self.folder}; if others "
                    "may have read it, begin a new experiment."
                )

    @cached_property
    def signing(self) -> bytes:
        """Ed25519 key that signs releases."""
        return self._read("signing.key")

    @cached_property
    def mac(self) -> bytes:
        """Key of the MAC of decision ids."""
        return self._read("mac.key")

    @cached_property
    def people(self) -> bytes:
        """Key that hashes ids of people.

        It is derived from the signing key, which never changes: under another key all people would
        be new, and could enter as many batches again.
        """
        return hmac.digest(self.signing, b"people of this experiment", "sha256")

    @cached_property
    def control(self) -> bytes:
        """Key that assigns people to the control; under another key they would change sides."""
        return hmac.digest(self.signing, b"control share of this experiment", "sha256")

    @cached_property
    def draws(self) -> bytes:
        """Key of sticky draws; under another key people would be shown another action."""
        return hmac.digest(self.signing, b"sticky draws of this experiment", "sha256")

    def served(self) -> AbstractContextManager[None]:
        """Hold the shared lock of processes that serve from this vault."""
        refusal = (
            f"{self.folder} must stay in its place while it is served; it is being moved. "
            "Start again when that is done."
        )
        return locked_file(self.folder / "signing.key", refusal, shared=True)

    def unserved(self, patience: float = 0.0) -> AbstractContextManager[None]:
        """Hold the exclusive lock for moving files; wait ``patience`` seconds for it."""
        refusal = (
            "experiment must not be served while it is moved; a process serves it from "
            f"{self.folder}. Stop that one first."
        )
        return locked_file(self.folder / "signing.key", refusal, patience=patience)

    def _read(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise InvalidInput(
                f"vault must hold {name}; {self.folder} does not ({error.strerror}). "
                "Name the vault of this experiment, or begin one with discreet serve --init."
            ) from None

    def _path(self, epoch: int, batch: int, kind: str) -> Path:
        return self.folder / f"{kind}-{epoch}-{batch}.key"

    def make(self, epoch: int, batch: int) -> None:
        """Make the keys of a new batch; if several processes try, one succeeds."""
        for kind in (BATCH, NAMES):
            create_file(self._path(epoch, batch, kind), secrets.token_bytes(32))

    def batch(self, epoch: int, batch: int) -> bytes | None:
        """Return the key of a batch's rows and keep it in memory; None if it was destroyed."""
        known = self._known.get((epoch, batch))
        if known is None and (known := self.key(epoch, batch, BATCH)) is not None:
            self._known[epoch, batch] = known
        return known

    def key(self, epoch: int, batch: int, kind: str) -> bytes | None:
        """Read a key of a batch from its file; None if it was destroyed."""
        try:
            return self._path(epoch, batch, kind).read_bytes()
        except FileNotFoundError:
            return None

    def fault(self, places: list[tuple[int, int]]) -> str | None:
        """Return why a decision in these batches or in a new one would fail; or None."""
        if not os.access(self.folder, os.R_OK | os.W_OK | os.X_OK):
            return "folder not usable"
        wanted = {"signing.key", "mac.key", *(self._path(*place, BATCH).name for place in places)}
        return None if wanted.issubset(os.listdir(self.folder)) else "key missing"

    def forget(self, epoch: int, batch: int) -> None:
        """Drop the key from memory."""
        self._known.pop((epoch, batch), None)

    def batches(self, kind: str = BATCH) -> list[tuple[int, int]]:
        """Return the batches whose keys still exist."""
        # Not Path.glob: upkeep calls this twice a second.
        names = os.listdir(self.folder) if self.folder.exists() else []
        found = (re.fullmatch(rf"{kind}-(\d+)-(\d+)\.key", name) for name in names)
        return sorted((int(each[1]), int(each[2])) for each in found if each)

    def destroy(self, epoch: int, batch: int, kind: str = BATCH) -> None:
        """Overwrite and remove a key of a batch, if it exists."""
        if kind == BATCH:
            self.forget(epoch, batch)
        path = self._path(epoch, batch, kind)
        with suppress(FileNotFoundError):
            with path.open("r+b") as file:
                file.write(bytes(32))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()
            _sync(self.folder)


def create_file(path: Path, content: bytes) -> None:
    """Create a file atomically; an existing file is kept, since a link cannot replace it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()
    _sync(path.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file, or create it; after a power cut it is the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    create_file(temporary, content)
    temporary.replace(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
