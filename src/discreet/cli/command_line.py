"""Parser of the command line, and output of a command: documents, text, files and warnings."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from discreet.errors import InvalidInput
from discreet.text import Advice
from discreet.types import JsonMapping
from discreet.validate import nearest


@dataclass(frozen=True)
class Answer:
    """Result of a command: ``--json`` prints ``document``, otherwise ``text`` is printed."""

    document: JsonMapping
    text: str
    code: int = 0


def as_json(document: JsonMapping) -> str:
    """Return one JSON object in ASCII; ε = ∞ is the word "inf", since JSON has no infinity."""
    return json.dumps(_plain(document), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value


def write(path: str | Path, content: str | bytes, *, keep: bool = False) -> None:
    """Write a file, or raise an error that names it; with ``keep`` never over another file."""
    try:
        data = content.encode() if isinstance(content, str) else content
        with Path(path).open("xb" if keep else "wb") as file:
            file.write(data)
    except OSError as error:
        raise InvalidInput(
            f"output must be writable; {path} is not ({error.strerror}). Choose another place."
        ) from None


def folder(path: str) -> Path:
    """Make a folder for output, or raise an error that names it."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--out must be a folder to write to; {path} is not ({error.strerror}). "
            "Choose another place."
        ) from None
    return Path(path)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a text table, the first column left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return [line(header), "  ".join("─" * width for width in widths), *map(line, rows)]


@contextmanager
def printed_advice(quiet: bool) -> Iterator[None]:
    """Print each advice once as ``warning: …``, without file and source; none if ``quiet``."""
    printed: set[str] = set()
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: Any, *place: Any, **more: Any) -> None:
            if not issubclass(category, Advice):
                usual(message, category, *place, **more)
            elif str(message) not in printed:
                printed.add(str(message))
                print(f"warning: {message}", file=sys.stderr)

        warnings.showwarning = show
        warnings.simplefilter("ignore" if quiet else "always", Advice)
        yield


RAW = argparse.RawDescriptionHelpFormatter
Commands = Any
"""Type of ``add_subparsers``, which argparse does not export."""


class Parser(argparse.ArgumentParser):
    """Argument parser whose errors are ``InvalidInput``, so ``--json`` covers them too.

    ``flags_on_use`` adds flags that need heavy modules, when the command is parsed or explained.
    """

    flags_on_use: Callable[[argparse.ArgumentParser], None] | None = None

    def _complete(self) -> None:
        add, self.flags_on_use = self.flags_on_use, None
        if add is not None:
            add(self)

    def format_help(self) -> str:
        self._complete()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(
            f"arguments must be those of {self.prog}; {message}. See {self.prog} --help."
        )

    def parse_known_args(self, *args: Any, **options: Any) -> Any:
        """Refuse an unknown flag, with the nearest flag of the same command."""
        self._complete()
        found, unknown = super().parse_known_args(*args, **options)
        if unknown:
            near = nearest(unknown[0], self._option_string_actions)
            hint = f"{near} " if near.startswith("Did") else ""
            raise InvalidInput(
                f"arguments must be those of {self.prog}; got {unknown[0]!r}. "
                f"{hint}See {self.prog} --help."
            )
        return found, unknown


def command(
    commands: Commands,
    name: str,
    summary: str,
    call: Callable[[argparse.Namespace], Answer] | None = None,
    text: str = "",
) -> Parser:
    """Add a command with ``--json``; without ``call`` it is a group of commands."""
    added: Parser = commands.add_parser(
        name,
        help=summary,
        formatter_class=RAW,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=text,
    )
    added.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    added.set_defaults(call=call)
    return added
