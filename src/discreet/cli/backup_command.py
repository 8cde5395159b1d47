"""``discreet backup``, ``restore`` and ``export``: copies of the database of a service."""

from __future__ import annotations

from pathlib import Path

from discreet.cli import command_line as cli
from discreet.data.warehouse import write_private_table
from discreet.service.runtime import lifecycle
from discreet.service.runtime.bulk import NOTE, decision_columns
from discreet.service.runtime.experiment_folder import ExperimentFolder, back_up
from discreet.service.settings import Settings
from discreet.service.storage.database import storage_errors
from discreet.service.storage.locations import open_database


@cli.command(
    "backup",
    cli.CONFIG,
    cli.SERVICE_FOLDER,
    cli.flag("file FILE", "new file, or with --folder new folder"),
)
def backup(args: cli.Args) -> cli.Answer:
    """Copy the database as it is now, or all databases of a folder."""
    target = Path(args.file)
    if args.folder is None:
        back_up(open_database(Settings.read(args.config)), target)
        return cli.Answer({"file": str(target)}, f"wrote {target}, which only its owner may read")
    files, keys = ExperimentFolder(args.folder).back_up(target)
    lines = [f"wrote {each}, which only its owner may read" for each in (*files.values(), keys)]
    document = {"files": {name: str(file) for name, file in files.items()}, "keys": str(keys)}
    return cli.Answer(document, lines)


@cli.command(
    "restore",
    cli.CONFIG,
    cli.flag("--anchor-lost", "the anchor is lost, and nothing newer was published"),
)
def restore(args: cli.Args) -> cli.Answer:
    """Begin a new epoch; open batches are burned."""
    settings = Settings.read(args.config)

    with storage_errors(open_database(settings)):
        made = lifecycle.restore(settings, anchor_lost=args.anchor_lost)
    burned, charged = (", ".join(map(str, numbers)) for numbers in (made.burned, made.charged))
    text = "a new epoch has begun"
    text += f"; burned: batch {burned}" * bool(burned)
    text += f"; charged, though the backup lacks it: document {charged}" * bool(charged)
    if charged and settings.unit == "user":
        text += f"; batches that every user counts as having entered: {len(made.charged)}"
    return cli.Answer({"burned": made.burned, "charged": made.charged}, text)


@cli.command(
    "export",
    cli.CONFIG,
    cli.flag("what ROWS", "decisions: rows of batches under way", choices=["decisions"]),
    cli.flag("--to FILE", "a new .parquet file", required=True),
)
def export(args: cli.Args) -> cli.Answer:
    """Write the decisions that are stored now."""
    settings = Settings.read(args.config)

    columns = decision_columns(settings)
    write_private_table(args.to, columns, NOTE, experiment=settings.experiment)
    rows = len(columns["slot"])
    words = f"wrote {rows:,} decisions to {args.to}, which only its owner may read\n{NOTE}"
    return cli.Answer({"file": args.to, "rows": rows, "private": True}, words)
