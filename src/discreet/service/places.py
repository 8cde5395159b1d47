"""Where things are: the database and the anchor that a file of settings names."""

from __future__ import annotations

from discreet.errors import InvalidInput
from discreet.service.anchor import Anchor
from discreet.service.database import Database
from discreet.service.settings import Settings
from discreet.service.sqlite import Sqlite


def open_database(settings: Settings) -> Database:
    """SQLite beside the settings, or a PostgreSQL server."""
    if not settings.postgres:
        return Sqlite(settings.place(settings.database))
    try:
        from discreet.service.postgres import Postgres
    except ImportError:
        raise InvalidInput(
            "psycopg must be installed for PostgreSQL; it is not. "
            "Run pip install 'discreet[serve,postgres]'."
        ) from None
    return Postgres(settings.database)


def anchor_of(settings: Settings) -> Anchor:
    """The anchor lies in the vault unless the settings name another place."""
    name = settings.anchor or f"{settings.vault}/anchor.jsonl"
    return Anchor(settings.place(name))
