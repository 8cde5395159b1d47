"""``discreet export``: decisions under way as a private Parquet file for their owner."""

from __future__ import annotations

import argparse

from discreet.cli.command_line import Answer, Commands, command
from discreet.cli.serve_command import config_flag, need_extra

TEXT = """\
The file has a row for each stored decision of the batches under way: epoch, batch, slot and
release, the action, the loss or reward if one came, and the features. After the release of its
batch a decision cannot be exported any more. PRIVATE: these are rows of people, without noise. The
file's metadata says so, only its owner may read it, and GET /v1/changes lists the export. Delete
it when you are done: no release erases it.

example:
  discreet export decisions --to decisions.parquet"""


def add(commands: Commands) -> None:
    """Add the kind of rows and the file."""
    parser = command(commands, "export", "export decisions as a private file", export, TEXT)
    config_flag(parser)
    parser.add_argument("what", choices=["decisions"], help="rows of batches under way")
    parser.add_argument("--to", required=True, metavar="FILE", help="a new .parquet file")


def export(args: argparse.Namespace) -> Answer:
    """Write the decisions that are stored now."""
    need_extra()
    from discreet.data.warehouse import write_private_table
    from discreet.service.runtime.decision_export import NOTE, decision_columns
    from discreet.service.settings import Settings

    settings = Settings.read(args.config)
    columns = decision_columns(settings)
    write_private_table(args.to, columns, NOTE, experiment=settings.experiment)
    rows = len(columns["slot"])
    return Answer(
        {"file": args.to, "rows": rows, "private": True},
        f"wrote {rows:,} decisions to {args.to}, which only its owner may read\n{NOTE}",
    )
