"""``discreet restore``: go on with a database that came from a backup."""

from __future__ import annotations

import argparse

from discreet.commands.answer import Answer


def restore(args: argparse.Namespace) -> Answer:
    """A new epoch; what was under way is burned."""
    from discreet.commands.serve import need_extra
    from discreet.service import opening
    from discreet.service.settings import Settings

    need_extra()
    burned = opening.restore(Settings.read(args.config))
    listed = ", ".join(str(batch) for batch in burned)
    text = f"a new epoch has begun; burned: batch {listed}" if burned else "a new epoch has begun"
    return Answer({"burned": burned}, text)
