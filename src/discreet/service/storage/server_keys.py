"""API keys of a server of many experiments, in ``server.db`` of its folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from discreet.errors import StateClaimed
from discreet.service.secrets.vault import Vault
from discreet.service.storage import api_keys
from discreet.service.storage.api_keys import SERVER
from discreet.service.storage.migrations import migrate
from discreet.service.storage.sqlite import Sqlite

DATABASE, VAULT = "server.db", "vault"


def begin_server(folder: Path) -> str:
    """Create the keys of a server and return the text of the first key, which is shown once."""
    database, vault = Sqlite(folder / DATABASE), Vault(folder / VAULT)
    if database.path.exists():
        raise StateClaimed(
            f"folder must be new for a new server; {database.path} exists. Serve it with discreet "
            f"serve --folder {folder}."
        )
    vault.create()
    with closing(database.connect()) as connection:
        migrate(database, connection)
        with database.transaction(connection):
            text, _ = api_keys.create(database, connection, [SERVER], "first key", known=(SERVER,))
    return text


class ServerKeys:
    """The stored keys of a server; they are few, and read again for each request."""

    def __init__(self, folder: Path) -> None:
        self.database, self.vault = Sqlite(folder / DATABASE), Vault(folder / VAULT)
        if not self.database.path.exists():
            raise StateClaimed(
                f"folder must have the keys of its server; {self.database.path} is missing. Put it "
                f"back, or make new keys: discreet serve --folder {folder} --init."
            )
        self._connection = self.database.connect()
        migrate(self.database, self._connection)

    @property
    def keys(self) -> dict[str, api_keys.Key]:
        """The keys by id."""
        return {key.id: key for key in api_keys.listed(self.database, self._connection)}

    def now(self) -> float:
        """Return the time by the clock of the database."""
        return float(self._connection.execute(f"SELECT {self.database.now}").fetchone()[0])

    def end_sessions(self, key: str) -> None:
        """End every session of the dashboard that began with this key."""
        api_keys.end_sessions(self.database, self._connection, key)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
