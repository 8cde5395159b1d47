"""``discreet experiment new|list|pause|resume|end|archive|adopt``: the experiments of a server."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from discreet.cli import command_line as cli
from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.settings import read_experiment_file

NAME = cli.flag("name NAME", "name of the experiment: small letters, digits and hyphens")
FOLDER = cli.flag("--folder DIR", "folder with server.toml (default: .)", ".")


@cli.command(
    "experiment new",
    NAME,
    cli.flag("--from FILE", "experiment file (default: an example)", dest="source"),
    FOLDER,
)
def new(args: cli.Args) -> cli.Answer:
    """Begin an experiment; a server that runs serves it."""
    folder = ExperimentFolder(args.folder)

    if args.source is None:
        begun = folder.new(args.name)
    else:
        begun = folder.new(args.name, read_experiment_file(args.source), Path(args.source))
    file = folder.file(begun.name)
    lines = [
        f"experiment {begun.name!r} has begun: {file}",
        f"admin key, shown this once: {begun.admin_key}",
        f"public key, for those who verify releases: {begun.public_key}",
        f"anchor, which notices restored backups: {begun.anchor}",
        f"its address: {folder.server.address(begun.name)}/decide",
    ]
    return cli.Answer(asdict(begun) | {"config": str(file)}, lines)


@cli.command("experiment list", FOLDER)
def list_(args: cli.Args) -> cli.Answer:
    """List experiments with their modes and the number of published documents."""
    folder = ExperimentFolder(args.folder)
    found, archived = folder.listed(), folder.archived()
    rows = [[each.name, each.mode, each.documents, each.under_way] for each in found]
    lines = cli.table(["experiment", "mode", "published", "batches under way"], rows)
    lines += [f"{each.name}: {each.wrong}" for each in found if each.wrong]
    lines += [f"archived: {', '.join(archived)}"] if archived else []
    document = {"experiments": [asdict(each) for each in found], "archived": archived}
    return cli.Answer(document, lines)


MODES = {
    "pause": ("frozen", "{} is paused: decisions are served and not stored"),
    "resume": ("", "{} stores decisions again"),
    "end": ("ended", "{} is ended: decisions are served by its last policy and not stored"),
}


@cli.command("experiment pause", NAME, FOLDER)
@cli.command("experiment resume", NAME, FOLDER)
@cli.command("experiment end", NAME, FOLDER)
def change(args: cli.Args) -> cli.Answer:
    """Pause, resume or end an experiment; resumed it has the mode of its file, or online."""
    getattr(ExperimentFolder(args.folder), args.kind)(args.name)
    mode, text = MODES[args.kind]
    document = {"name": args.name, **({"mode": mode} if mode else {})}
    return cli.Answer(document, text.format(args.name))


@cli.command(
    "experiment archive",
    NAME,
    cli.flag("--burn", "delete stored rows that are not released; this cannot be undone"),
    FOLDER,
)
def archive(args: cli.Args) -> cli.Answer:
    """Move the folder to the archive; only burned rows are deleted."""
    place = ExperimentFolder(args.folder).archive(args.name, burn=args.burn)
    return cli.Answer({"name": args.name, "place": str(place)}, f"{args.name} is archived: {place}")


@cli.command(
    "experiment adopt",
    cli.flag("path PATH", "folder of the experiment, or its file"),
    cli.flag("--name NAME", "name of the experiment (default: as in its file)"),
    FOLDER,
)
def adopt(args: cli.Args) -> cli.Answer:
    """Move a folder with a single experiment; chain, vault, anchor and keys do not change."""
    folder = ExperimentFolder(args.folder)
    name = folder.adopt(Path(args.path), args.name)
    address = folder.server.address(name)
    lines = [
        f"adopted: {folder.file(name)}",
        f"its address is now {address}/decide, its page {address}/ui",
        "host, port, prefix, connections and cors_origins are those of server.toml",
    ]
    return cli.Answer({"name": name, "config": str(folder.file(name))}, lines)
