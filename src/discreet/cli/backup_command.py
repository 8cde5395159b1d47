"""``discreet backup``, ``restore`` and ``export``: copies of the database of a service."""

from __future__ import annotations

from pathlib import Path

from discreet.cli.command_line import CONFIG, SERVICE_FOLDER, Answer, Args, command, flag
from discreet.data.warehouse import write_private_table
from discreet.service.runtime import lifecycle
from discreet.service.runtime.bulk import NOTE, decision_columns
from discreet.service.runtime.experiment_folder import ExperimentFolder, back_up
from discreet.service.settings import Settings
from discreet.service.storage.database import storage_errors
from discreet.service.storage.locations import open_database


@command(
    "backup", CONFIG, SERVICE_FOLDER, flag("file FILE", "new file, or with --folder new folder")
)
def backup(args: Args) -> Answer:
    """Copy the database as it is now, or all databases of a folder."""
    target = Path(args.file)
    if args.folder is None:
        back_up(open_database(Settings.read(args.config)), target)
        return Answer({"file": str(target)}, f"wrote {target}, which only its owner may read")
    files, keys = ExperimentFolder(args.folder).back_up(target)
    lines = [f"wrote {each}, which only its owner may read" for each in (*files.values(), keys)]
    document = {"files": {name: str(file) for name, file in files.items()}, "keys": str(keys)}
    return Answer(document, lines)


@command(
    "restore", CONFIG, flag("--anchor-lost", "the anchor is lost, and nothing newer was published")
)
def restore(args: Args) -> Answer:
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
    return Answer({"burned": made.burned, "charged": made.charged}, text)


@command(
    "export",
    CONFIG,
    flag("what ROWS", "decisions: rows of batches under way", choices=["decisions"]),
    flag("--to FILE", "a new .parquet file", required=True),
)
def export(args: Args) -> Answer:
    """Write the decisions that are stored now."""
    settings = Settings.read(args.config)

    columns = decision_columns(settings)
    write_private_table(args.to, columns, NOTE, experiment=settings.experiment)
    rows = len(columns["slot"])
    words = f"wrote {rows:,} decisions to {args.to}, which only its owner may read\n{NOTE}"
    return Answer({"file": args.to, "rows": rows, "private": True}, words)
