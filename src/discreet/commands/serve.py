"""``discreet serve``: begin an experiment, or serve it."""

from __future__ import annotations

import argparse
from pathlib import Path

from discreet.commands.answer import Answer, write
from discreet.errors import InvalidInput


def serve(args: argparse.Namespace) -> Answer:
    """Serve until told to stop, or with ``--init`` make everything ready for that."""
    need_extra()
    path = Path(args.config)
    if args.init:
        return _init(path)
    from discreet.service.run import serve as run
    from discreet.validate import whole

    run(path, host=args.host, port=args.port, workers=whole("workers", args.workers, 1))
    return Answer({"stopped": True}, "stopped")


def _init(path: Path) -> Answer:
    from discreet.service.example import EXAMPLE
    from discreet.service.opening import begin
    from discreet.service.settings import Settings

    written = not path.exists()
    if written:
        write(path, EXAMPLE)
    settings = Settings.read(path)
    key = begin(settings)
    document = {
        "config": str(path),
        "written": written,
        "experiment": settings.experiment,
        "admin_key": key,
    }
    lines = [
        f"{'wrote' if written else 'read'} {path}: experiment {settings.experiment!r} has begun",
        f"admin key, shown this once: {key}",
        f"next: discreet serve --config {path}",
    ]
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
