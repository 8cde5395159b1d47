"""``discreet serve``: begin an experiment, or serve it."""

from __future__ import annotations

import argparse
from pathlib import Path

from discreet.cli.answer import Answer, write
from discreet.errors import InvalidInput

FIRST_DECISION = """\
  curl http://127.0.0.1:8000/v1/decide -H 'Authorization: Bearer {key}' \\
    -H 'Content-Type: application/json' -d '{{"context": {{"hour": 9, "device": "phone"}}}}'"""


def serve(args: argparse.Namespace) -> Answer:
    """Serve until told to stop, or with ``--init`` make everything ready for that."""
    need_extra()
    path = Path(args.config)
    if args.init:
        return _init(path, args.anchor)
    if args.anchor is not None:
        raise InvalidInput(
            "--anchor must be given with --init; it is given alone. "
            "To move the anchor, stop the service, move the file, and write anchor = '…'."
        )
    from discreet.service.http.server import serve as run
    from discreet.validate import whole

    run(path, host=args.host, port=args.port, workers=whole("workers", args.workers, 1))
    return Answer({"stopped": True}, "stopped")


def _init(path: Path, named: str | None) -> Answer:
    from discreet.billboard.signing import public_key
    from discreet.service.example import EXAMPLE
    from discreet.service.runtime.lifecycle import begin
    from discreet.service.secrets.vault import Vault
    from discreet.service.settings import Settings
    from discreet.service.storage.locations import beside, put_anchor

    written = not path.exists()
    if written:
        write(path, EXAMPLE)
    settings = Settings.read(path)
    vault = Vault(settings.place(settings.vault))
    vault.create()
    anchor = put_anchor(settings, named)
    key = begin(settings)
    public = public_key(vault.signing)
    kept = "beside the database: put it on another disk" if beside(settings, anchor) else "apart"
    document = {
        "config": str(path),
        "written": written,
        "experiment": settings.experiment,
        "admin_key": key,
        "public_key": public,
        "anchor": str(anchor),
    }
    lines = [
        f"{'wrote' if written else 'read'} {path}: experiment {settings.experiment!r} has begun",
        f"admin key, shown this once: {key}",
        f"public key, for those who verify releases: {public}",
        f"anchor, which notices restored backups ({kept}): {anchor}",
        f"next: discreet serve --config {path}",
    ]
    if written:
        lines += ["then, from another terminal:", FIRST_DECISION.format(key=key)]
    return Answer(document, "\n".join(lines))


def need_extra() -> None:
    try:
        import jinja2  # noqa: F401
        import msgspec  # noqa: F401
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            f"{error.name} must be installed to serve; it is not. "
            "Run pip install 'discreet[serve]'."
        ) from None
