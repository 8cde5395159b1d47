"""What ``server.toml`` says: the settings of a server that holds a folder of experiments.

The folder has ``experiments/NAME/experiment.toml`` and, for those that were put away,
``archive/NAME/experiment.toml``. Where such a file is read, the server's settings take the place of
those that only a server can have.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.config import build
from discreet.errors import InvalidInput
from discreet.service.environment import from_environment
from discreet.service.listening import check_connections, check_origins, check_prefix, port_number
from discreet.toml_files import parse_toml, read_text

SERVER_FILE, EXPERIMENT_FILE = "server.toml", "experiment.toml"
SERVED, ARCHIVE = "experiments", "archive"
NOT_SERVED = "not-served"
"""While this file is in the folder of an experiment, no server serves it: it is being made, moved
or put away."""
SCHEMES = ("postgresql://", "postgres://")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")
EXAMPLE = """\
# A server of many experiments, each in a folder of its own under experiments/.
# Start it with   discreet serve --folder .
# Begin one with  discreet experiment new NAME --folder .

host = "127.0.0.1"
port = 8000
# prefix = "/bandit"             # where a reverse proxy serves it below a path
# database = "postgresql://user@host/name"    # a schema for each experiment; allows --workers 4
# anchors = "/mnt/other/anchors" # what was published, best on another disk
"""


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """A server of many experiments; everything else is said by each experiment."""

    folder: Path = Path()
    host: str = "127.0.0.1"
    port: int = 8000
    prefix: str = ""
    database: str | None = None
    anchors: str | None = None
    connections: int = 1_000
    cors_origins: tuple[str, ...] = ()
    body_limit: int = 262_144
    rate_limit: int = 1_000

    def __post_init__(self) -> None:
        port_number(self.port)
        check_prefix(self.prefix)
        check_origins(self.cors_origins)
        check_connections(self.connections)
        if self.database is not None and not self.database.startswith(SCHEMES):
            raise InvalidInput(
                "database of a server must be a PostgreSQL address; it is not. Write "
                "'postgresql://user@host/name', or leave it out: each experiment has SQLite then."
            )
        if self.database is not None and "options=" in self.database:
            raise InvalidInput(
                "database of a server must have no options; it has some. Leave them out: each "
                "experiment gets a schema of its own by them."
            )

    @classmethod
    def read(cls, folder: str | Path) -> ServerSettings:
        """The settings of a folder, and of the environment."""
        path = Path(folder).resolve() / SERVER_FILE
        text = read_text(path, "server", f"Make it with discreet serve --folder {folder} --init.")
        given = parse_toml(text, path, "server") | _from_environment()
        if "folder" in given:
            raise InvalidInput("server must have no folder in its file. Delete the line.")
        if isinstance(given.get("cors_origins"), list):
            given["cors_origins"] = tuple(given["cors_origins"])
        return build(cls, given | {"folder": path.parent}, "server", {})

    def address(self, name: str) -> str:
        """What comes before the paths of an experiment."""
        return f"{self.prefix}/v1/experiments/{name}"

    def schema(self, name: str) -> str:
        """The address of an experiment's own schema in the server's database."""
        joint = "&" if "?" in str(self.database) else "?"
        return f"{self.database}{joint}options=-csearch_path%3D{schema_name(name)}"


def schema_name(name: str) -> str:
    """The PostgreSQL schema of an experiment."""
    return f"experiment_{name.replace('-', '_')}"


def experiment_name(name: str) -> str:
    """A name that can be a folder, a part of an address and a schema."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"name must be 1 to 48 small letters, digits and hyphens; got {name!r}. "
            "Write welcome-2, for instance."
        )
    return name


def given_by_server(path: str | Path, said: Mapping[str, Any]) -> dict[str, Any]:
    """What the server of an experiment file says; without a server, what the environment says."""
    file = Path(path).resolve()
    place = file.parent.parent
    held = file.name == EXPERIMENT_FILE and place.name in (SERVED, ARCHIVE)
    if not held or not (place.parent / SERVER_FILE).is_file():
        return from_environment(os.environ)
    server, name, own = ServerSettings.read(place.parent), file.parent.name, said.get("database")
    given: dict[str, Any] = {
        each: getattr(server, each) for each in ("host", "port", "connections", "cors_origins")
    }
    if server.database and not (isinstance(own, str) and own.startswith(SCHEMES)):
        given["database"] = server.schema(name)
    return given | {"prefix": server.address(name)}


def _from_environment() -> dict[str, Any]:
    """The environment of a server: its secrets are those of many, so they have no single place."""
    found = from_environment(os.environ)
    for name in ("vault", "anchor"):
        if name in found:
            raise InvalidInput(
                f"DISCREET_{name.upper()} must be left out with a folder of experiments; it is "
                "set. Each experiment has its own; anchors = '…' in server.toml says where."
            )
    return found
