"""``discreet backup``: copy the database of a service while it runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.command_line import Answer, Commands, command
from discreet.cli.serve_command import config_flag, need_extra
from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.service.storage.database import Database

TEXT = """\
The copy has mode 0600, and its folder is made. It holds no key of the vault: rows in it
cannot be read after their release. A PostgreSQL database is copied by pg_dump, for pg_restore.
With --folder every experiment of a server is copied, and the server's own keys. To go on from a
copy, see discreet restore.

examples:
  discreet backup backup/2026-05-01.db
  discreet backup --folder . backup/2026-05-01"""


def add(commands: Commands) -> None:
    """Add the flags of the copy."""
    parser = command(commands, "backup", "copy the database of a service", backup, TEXT)
    config_flag(parser)
    parser.add_argument("--folder", metavar="DIR", help="a folder of experiments; copies all")
    parser.add_argument("file", metavar="FILE", help="the copy, which must not exist yet")


def backup(args: argparse.Namespace) -> Answer:
    """Copy the database as it is now."""
    need_extra()
    target = Path(args.file)
    if args.folder is not None:
        return _all(Path(args.folder), target)

    from discreet.service.settings import Settings
    from discreet.service.storage.locations import open_database

    _copy(open_database(Settings.read(args.config)), target)
    return Answer({"file": str(target)}, f"wrote {target}, which only its owner may read")


def _all(path: Path, target: Path) -> Answer:
    """Copy every experiment of a folder, and the keys of the server."""
    from discreet.service.runtime.experiment_folder import ExperimentFolder
    from discreet.service.settings import Settings
    from discreet.service.storage.api_keys import DATABASE
    from discreet.service.storage.locations import open_database
    from discreet.service.storage.sqlite import Sqlite

    folder, files = ExperimentFolder(path), {}
    for name in folder.names():
        settings = Settings.read(folder.file(name))
        files[name] = target / f"{name}.{'dump' if settings.postgres else 'db'}"
        _copy(open_database(settings), files[name])
    keys = target / DATABASE
    _copy(Sqlite(folder.path / DATABASE), keys)
    lines = [f"wrote {each}, which only its owner may read" for each in (*files.values(), keys)]
    document = {"files": {name: str(file) for name, file in files.items()}, "keys": str(keys)}
    return Answer(document, "\n".join(lines))


def _copy(database: Database, target: Path) -> None:
    from discreet.service.storage.database import storage_errors

    with storage_errors(database):
        try:
            database.back_up(target)
        except FileExistsError:
            raise InvalidInput(
                f"backup must be a new file; {target} exists. Choose another name."
            ) from None
