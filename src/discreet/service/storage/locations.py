"""Database and anchor that the settings name."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.service.secrets.vault import create_file
from discreet.service.settings import Settings
from discreet.service.storage.anchor import Anchor
from discreet.service.storage.database import Database
from discreet.service.storage.sqlite import Sqlite

POINTER = "anchor.path"
"""The file in the vault that holds the path of the anchor which ``--init`` made."""


def open_database(settings: Settings) -> Database:
    """Return the SQLite file or the PostgreSQL server of an experiment."""
    if not settings.postgres:
        return Sqlite(settings.place(settings.database))
    try:
        from discreet.service.storage.postgres import Postgres
    except ImportError:
        raise InvalidInput(
            "psycopg must be installed for PostgreSQL; this Python lacks it. "
            "Run pip install 'discreet[serve,postgres]'."
        ) from None
    return Postgres(settings.database)


def anchor_of(settings: Settings) -> Anchor:
    """Return the anchor that the settings name, or that ``--init`` made, or one in the vault."""
    if settings.anchor:
        return Anchor(settings.place(settings.anchor), settings.experiment)
    vault = settings.place(settings.vault)
    try:
        path = Path((vault / POINTER).read_text(encoding="utf-8").strip())
    except FileNotFoundError:
        path = vault / "anchor.jsonl"
    return Anchor(path, settings.experiment)


def in_same_folder(settings: Settings, path: Path) -> bool:
    """Return whether a copy of the folders of settings, database and vault includes this file."""
    trees = [settings.folder, settings.place(settings.vault)]
    if not settings.postgres:
        trees.append(settings.place(settings.database).parent)
    return any(path.resolve().is_relative_to(tree.resolve()) for tree in trees)


def put_anchor(settings: Settings, named: str | None) -> Path:
    """Choose where a new experiment keeps its anchor, and write the path into the vault.

    Outside the folder of the experiment if possible: a copy of that folder that is put back must
    not bring an old anchor with it.
    """
    pointer, known = settings.place(settings.vault) / POINTER, anchor_of(settings).path
    path = _in_state_home(settings) if named is None else Path(named).absolute()
    if settings.anchor or pointer.exists():
        if named is not None and path != known.absolute():
            raise InvalidInput(
                f"--anchor must be left out if there is an anchor; there is one at {known}. "
                "Leave it out, or begin with another vault."
            )
        return known
    if path is None:
        return known
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if named is None:
            return known
        raise InvalidInput(
            f"--anchor must be a file in a folder that can be made; {path} is not "
            f"({error.strerror}). Choose another place."
        ) from None
    create_file(pointer, f"{path}\n".encode())
    return anchor_of(settings).path


def _in_state_home(settings: Settings) -> Path | None:
    """Return a path in the state folder of this user; None if it is in the experiment's folder."""
    try:
        home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError:  # this user has no home
        return None
    name = re.sub(r"[^A-Za-z0-9]+", "-", settings.experiment).strip("-").lower()
    folder = home / "discreet" / "anchors" / f"{name}-{secrets.token_hex(4)}"
    usable = home.is_absolute() and not in_same_folder(settings, folder)
    return folder / "anchor.jsonl" if usable else None
