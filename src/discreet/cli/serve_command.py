"""``discreet serve``: begin an experiment, or serve it."""

from __future__ import annotations

import argparse
from pathlib import Path

from discreet.cli.command_line import Answer, Commands, command, write
from discreet.errors import InvalidInput
from discreet.validate import installed, whole

TEXT = """\
The first three commands of a new service:
  discreet serve --init
  discreet serve &
  curl http://127.0.0.1:8000/v1/decide -H "Authorization: Bearer KEY" \\
       --json '{"context": {"hour": 9, "device": "phone"}}'

Several experiments on one server, each in a separate folder:
  discreet serve --folder experiments --init
  discreet experiment new welcome --folder experiments
  discreet serve --folder experiments

KEY is printed by --init. With PostgreSQL (database = "postgresql://…") add --workers 4.
"""
FIRST_DECISION = """\
  curl http://127.0.0.1:8000/v1/decide -H 'Authorization: Bearer {key}' \\
    -H 'Content-Type: application/json' -d '{{"context": {{"hour": 9, "device": "phone"}}}}'"""


def add(commands: Commands) -> None:
    """Add flags for the address and for ``--init``."""
    parser = command(commands, "serve", "serve private decisions over HTTP", serve, TEXT)
    config_flag(parser)
    flag = parser.add_argument
    flag("--folder", metavar="DIR", help="serve all experiments of this folder, by server.toml")
    flag(
        "--init",
        action="store_true",
        help="write an example file, begin its experiment, and print a key",
    )
    flag(
        "--anchor",
        metavar="FILE",
        help="with --init: file that records what was published, best on another disk "
        "(default: in the state folder of this user)",
    )
    flag("--host", metavar="HOST", help="address to listen on (default: as in the file)")
    flag("--port", type=int, metavar="PORT", help="port to listen on (default: as in the file)")
    flag("--workers", type=int, default=1, metavar="N", help="number of processes, with PostgreSQL")


def config_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--config``, for every command on the files of a service."""
    parser.add_argument(
        "--config",
        default="experiment.toml",
        metavar="FILE",
        help="settings of the service (default: experiment.toml)",
    )


def serve(args: argparse.Namespace) -> Answer:
    """Serve until a signal arrives, or with ``--init`` prepare a new service."""
    need_extra()
    path = Path(args.config)
    if args.folder is not None:
        return _serve_folder(args)
    if args.init:
        return _init(path, args)
    if args.anchor is not None:
        raise InvalidInput(
            "--anchor must be given with --init; --init is missing. "
            "To move the anchor, stop the service, move the file, and write anchor = '…'."
        )
    from discreet.service.http.server import serve as run

    run(path, host=args.host, port=args.port, workers=whole("workers", args.workers, 1))
    return Answer({"stopped": True}, "stopped")


def _serve_folder(args: argparse.Namespace) -> Answer:
    folder = Path(args.folder)
    if args.anchor is not None:
        raise InvalidInput(
            "--anchor must be left out with --folder; each experiment has its own. Write "
            "anchors = '…' into server.toml."
        )
    if args.init:
        return _init_folder(folder, args)
    from discreet.service.http.server import serve as run

    workers = whole("workers", args.workers, 1)
    run(folder, host=args.host, port=args.port, workers=workers, folder=True)
    return Answer({"stopped": True}, "stopped")


def _init_folder(folder: Path, args: argparse.Namespace) -> Answer:
    from discreet.cli.members_command import invitation_link
    from discreet.service.experiment_file import SERVER_EXAMPLE
    from discreet.service.settings import SERVER_FILE
    from discreet.service.storage.api_keys import begin_server

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = begin_server(folder)
    if not (folder / SERVER_FILE).exists():
        write(folder / SERVER_FILE, SERVER_EXAMPLE)
    link = invitation_link(args)
    lines = [
        f"{folder} is a folder for experiments",
        f"key of the server, shown this once: {key}",
        f"account of the first owner, for 7 days, once the server runs: {link}",
        f"next: discreet experiment new NAME --folder {folder}",
        f"then: discreet serve --folder {folder}",
    ]
    document = {"folder": str(folder), "server_key": key, "owner_link": link}
    return Answer(document, "\n".join(lines))


def _init(path: Path, args: argparse.Namespace) -> Answer:
    from discreet.cli.members_command import invitation_link
    from discreet.plan.explanation import plan_size
    from discreet.service.runtime.experiment_folder import write_and_begin
    from discreet.service.storage.locations import in_same_folder

    written = not path.exists()
    settings, begun = write_and_begin(path, args.anchor)
    link = invitation_link(args)
    kept = "in another folder"
    if in_same_folder(settings, Path(begun.anchor)):
        kept = "next to the database: move it to another disk"
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
        f"anchor, which notices restored backups ({kept}): {begun.anchor}",
        size.text,
        *([f"Warning: {size.warning}"] if size.warning else []),
        f"next: discreet {'serve --config' if log is None else 'import --log FILE'} {path}",
    ]
    if written:
        lines += ["then, from another terminal:", FIRST_DECISION.format(key=begun.admin_key)]
    return Answer(document, "\n".join(lines))


def need_extra() -> None:
    libraries = ("argon2", "jinja2", "msgspec", "prometheus_client", "starlette", "uvicorn")
    installed("serve", "to serve", *libraries)
