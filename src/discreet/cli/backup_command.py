"""``discreet backup``: copy the database of a service while it runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from discreet.cli.answer import Answer
from discreet.cli.parser import Commands, command
from discreet.cli.serve_command import config_flag, need_extra
from discreet.errors import InvalidInput

TEXT = """\
The copy has mode 0600, and its folder is made. It holds no key of the vault: rows in it
cannot be read after their release. To go on from it, see discreet restore.

example:
  discreet backup backup/2026-05-01.db"""


def add(commands: Commands) -> None:
    """Where the copy goes."""
    parser = command(commands, "backup", "copy the database of a service", backup, TEXT)
    config_flag(parser)
    parser.add_argument("file", metavar="FILE", help="the copy, which must not exist yet")


def backup(args: argparse.Namespace) -> Answer:
    """A copy of the database as it is now."""
    from discreet.service.settings import Settings
    from discreet.service.storage.faults import in_one_line
    from discreet.service.storage.locations import open_database

    need_extra()
    database, target = open_database(Settings.read(args.config)), Path(args.file)
    with in_one_line(database):
        try:
            database.back_up(target)
        except FileExistsError:
            raise InvalidInput(
                f"backup must be a new file; {target} exists. Choose another name."
            ) from None
    return Answer({"file": str(target)}, f"wrote {target}, which only its owner may read")
