"""What a server of many experiments has of its own: keys with the scope ``server``, and a log."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from discreet.errors import StateClaimed
from discreet.outcome import UNIT_LOSS
from discreet.service.logs import Log
from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.secrets.vault import Vault
from discreet.service.storage import api_keys
from discreet.service.storage.api_keys import SERVER
from discreet.service.storage.database import Connection
from discreet.service.storage.migrations import migrate
from discreet.service.storage.sqlite import Sqlite

T = TypeVar("T")
DATABASE, VAULT = "server.db", "vault"


def begin_server(folder: Path) -> str:
    """Make the keys of a server; the text of the first one, which is shown once."""
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


@dataclass(frozen=True)
class _Plan:
    outcome: Any = UNIT_LOSS


@dataclass(frozen=True)
class _Settings:
    """What endpoints and pages read of the settings."""

    prefix: str
    body_limit: int
    rate_limit: int
    experiment: str = "experiments"
    public_releases: bool = False
    plan: _Plan = _Plan()


class ServerState:
    """The server's own keys, which are read anew for each request: there are few."""

    asleep, asked = False, 0.0

    def __init__(self, folder: Path) -> None:
        self.database, self.vault = Sqlite(folder / DATABASE), Vault(folder / VAULT)
        self.log = Log("")
        if not self.database.path.exists():
            raise StateClaimed(
                f"folder must have the keys of its server; {self.database.path} is missing. Put it "
                f"back, or make new keys: discreet serve --folder {folder} --init."
            )
        self._connection = self.database.connect()
        migrate(self.database, self._connection)
        self.used: set[str] = set()

    @property
    def keys(self) -> dict[str, api_keys.Key]:
        return {key.id: key for key in api_keys.listed(self.database, self._connection)}

    async def read(self, operation: Callable[[Connection], T]) -> T:
        """As ``WorkerState.read``; on this thread, since the file is small."""
        return operation(self._connection)

    def close(self) -> None:
        self._connection.close()


class ServerService:
    """Stands where endpoints and pages expect the service of an experiment."""

    newest = 0  # a server publishes nothing itself

    def __init__(self, folder: ExperimentFolder) -> None:
        server = folder.server
        self.settings = _Settings(server.prefix, server.body_limit, server.rate_limit)
        self.state = ServerState(folder.path)

    async def end_sessions(self, id: str) -> None:
        """End every session of the dashboard that began with this key."""
        state = self.state
        api_keys.end_sessions(state.database, state._connection, id)

    def close(self) -> None:
        self.state.close()
