"""``discreet restore``: go on with a database that came from a backup."""

from __future__ import annotations

import argparse

from discreet.cli.answer import Answer


def restore(args: argparse.Namespace) -> Answer:
    """A new epoch; what was under way is burned."""
    from discreet.cli.serve_command import need_extra
    from discreet.service.runtime import lifecycle
    from discreet.service.settings import Settings

    need_extra()
    made = lifecycle.restore(Settings.read(args.config), anchor_lost=args.anchor_lost)
    lines = ["a new epoch has begun"]
    if made.burned:
        lines.append(f"burned: batch {_listed(made.burned)}")
    if made.charged:
        lines.append(f"charged, though the backup lacks it: document {_listed(made.charged)}")
    return Answer({"burned": made.burned, "charged": made.charged}, "; ".join(lines))


def _listed(numbers: list[int]) -> str:
    return ", ".join(str(number) for number in numbers)
