"""``discreet serve``: begin an experiment, or serve it."""

from __future__ import annotations

from pathlib import Path

from discreet.cli import command_line as cli
from discreet.cli.keys_command import invitation_link
from discreet.errors import InvalidInput
from discreet.plan.explanation import plan_size
from discreet.service.experiment_file import SERVER_EXAMPLE
from discreet.service.http.server import serve as run
from discreet.service.runtime.experiment_folder import write_and_begin
from discreet.service.settings import SERVER_FILE
from discreet.service.storage.api_keys import begin_server
from discreet.service.storage.locations import in_same_folder
from discreet.validate import whole

FIRST_DECISION = """\
  curl http://127.0.0.1:8000/v1/decide -H 'Authorization: Bearer {key}' \\
    -H 'Content-Type: application/json' -d '{{"context": {{"hour": 9, "device": "phone"}}}}'"""


@cli.command(
    "serve",
    cli.CONFIG,
    cli.flag("--folder DIR", "serve all experiments of this folder, by server.toml"),
    cli.flag("--init", "write an example file, begin its experiment, and print a key"),
    cli.flag("--anchor FILE", "with --init: file of what was published, best on another disk"),
    cli.flag("--host HOST", "address to listen on (default: as in the file)"),
    cli.flag("--port PORT", "port to listen on (default: as in the file)", int),
    cli.flag("--workers N", "number of processes, with PostgreSQL", 1),
)
def serve(args: cli.Args) -> cli.Answer:
    """Serve until a signal arrives, or with ``--init`` prepare a new service."""
    if args.anchor is not None and (args.folder is not None or not args.init):
        raise InvalidInput(
            "--anchor must be given with --init, without --folder; it was not. To move the anchor, "
            "stop the service, move the file, and write anchor = '…'; a server.toml has anchors."
        )
    if args.init:
        return _init(args) if args.folder is None else _init_folder(args)

    workers, folder = whole("workers", args.workers, 1), args.folder is not None
    path = Path(args.folder if folder else args.config)
    run(path, host=args.host, port=args.port, workers=workers, folder=folder)
    return cli.Answer({"stopped": True}, "stopped")


def _init_folder(args: cli.Args) -> cli.Answer:
    folder = Path(args.folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = begin_server(folder)
    if not (folder / SERVER_FILE).exists():
        cli.write(folder / SERVER_FILE, SERVER_EXAMPLE)
    link = invitation_link(args)
    lines = [
        f"{folder} is a folder for experiments",
        f"key of the server, shown this once: {key}",
        f"account of the first owner, for 7 days, once the server runs: {link}",
        f"next: discreet experiment new NAME --folder {folder}",
        f"then: discreet serve --folder {folder}",
    ]
    return cli.Answer({"folder": str(folder), "server_key": key, "owner_link": link}, lines)


def _init(args: cli.Args) -> cli.Answer:
    path = Path(args.config)
    written = not path.exists()
    settings, begun = write_and_begin(path, args.anchor)
    link = invitation_link(args)
    advice = "in another folder"
    if in_same_folder(settings, Path(begun.anchor)):
        advice = "next to the database: move it to another disk"
    log = settings.plan.imported  # rows that must be there before the first decision
    size = plan_size(settings.plan)
    document = {
        "config": str(path),
        "written": written,
        "experiment": settings.experiment,
        "admin_key": begun.admin_key,
        "owner_link": link,
        "public_key": begun.public_key,
        "anchor": begun.anchor,
        "document_bytes": size.document,
        "fit_seconds": size.seconds,
        "fit_memory_bytes": size.memory,
        "warning": size.warning,
    }
    lines = [
        f"{'wrote' if written else 'read'} {path}: experiment {settings.experiment!r} has begun",
        f"admin key, shown this once: {begun.admin_key}",
        f"account of the first owner, for 7 days, once the service runs: {link}",
        f"public key, for those who verify releases: {begun.public_key}",
        f"anchor, which notices restored backups ({advice}): {begun.anchor}",
        size.text,
        *([f"Warning: {size.warning}"] if size.warning else []),
        f"next: discreet {'serve --config' if log is None else 'import --log FILE'} {path}",
    ]
    if written:
        lines += ["then, from another terminal:", FIRST_DECISION.format(key=begun.admin_key)]
    return cli.Answer(document, lines)
