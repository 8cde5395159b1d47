"""``discreet backup``: copy the database of a service while it runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from discreet.cli.command_line import Answer, Commands, command
from discreet.cli.serve_command import config_flag, need_extra

TEXT = """\
The copy has mode 0600, and missing folders are created. It contains no key of the vault, so rows
cannot be read after their release. A PostgreSQL database is copied with pg_dump, for pg_restore.
With --folder all experiments of a server and its API keys are copied. discreet restore continues
from a copy.

examples:
  discreet backup backup/2026-05-01.db
  discreet backup --folder . backup/2026-05-01"""


def add(commands: Commands) -> None:
    """Add the flags of the copy."""
    parser = command(commands, "backup", "copy the database of a service", backup, TEXT)
    config_flag(parser)
    parser.add_argument(
        "--folder", metavar="DIR", help="folder of experiments, all of which are copied"
    )
    parser.add_argument("file", metavar="FILE", help="new file, or with --folder new folder")


def backup(args: argparse.Namespace) -> Answer:
    """Copy the database as it is now, or all databases of a folder."""
    need_extra()
    from discreet.service.runtime.experiment_folder import ExperimentFolder, back_up
    from discreet.service.settings import Settings
    from discreet.service.storage.locations import open_database

    target = Path(args.file)
    if args.folder is None:
        back_up(open_database(Settings.read(args.config)), target)
        return Answer({"file": str(target)}, f"wrote {target}, which only its owner may read")
    files, keys = ExperimentFolder(args.folder).back_up(target)
    lines = [f"wrote {each}, which only its owner may read" for each in (*files.values(), keys)]
    document = {"files": {name: str(file) for name, file in files.items()}, "keys": str(keys)}
    return Answer(document, "\n".join(lines))
