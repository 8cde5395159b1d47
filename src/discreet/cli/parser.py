"""Parser that raises ``InvalidInput``, and ``command``, which adds a command to it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from discreet.cli.answer import Answer
from discreet.errors import InvalidInput
from discreet.validate import nearest

RAW = argparse.RawDescriptionHelpFormatter
Commands = Any
"""Type of ``add_subparsers``, which argparse does not export."""


class Parser(argparse.ArgumentParser):
    """Argument parser whose errors are ``InvalidInput``, so ``--json`` covers them too."""

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(
            f"arguments must be as {self.prog} takes them; {message}. See {self.prog} --help."
        )

    def parse_known_args(self, *args: Any, **options: Any) -> Any:
        """Refuse an unknown flag, with the nearest flag of the same command."""
        found, unknown = super().parse_known_args(*args, **options)
        if unknown:
            near = nearest(unknown[0], self._option_string_actions)
            hint = f"{near} " if near.startswith("Did") else ""
            raise InvalidInput(
                f"arguments must be as {self.prog} takes them; got {unknown[0]!r}. "
                f"{hint}See {self.prog} --help."
            )
        return found, unknown


def command(
    commands: Commands,
    name: str,
    summary: str,
    call: Callable[[argparse.Namespace], Answer] | None = None,
    text: str = "",
) -> argparse.ArgumentParser:
    """Add a command with ``--json``; without ``call`` it is a group of commands."""
    added: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        formatter_class=RAW,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=text,
    )
    added.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    added.set_defaults(call=call)
    return added
