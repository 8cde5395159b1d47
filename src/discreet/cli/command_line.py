"""Commands as data, their parser, and their output: documents, tables, files and warnings."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    """Result of a command: ``--json`` prints ``document``, otherwise ``lines`` are printed."""

    document: JsonMapping
    lines: str | Sequence[str]
    code: int = 0

    @property
    def text(self) -> str:
        """The lines as one text."""
        return self.lines if isinstance(self.lines, str) else "\n".join(self.lines)


Flag = tuple[str, dict[str, Any]]


def flag(name: str, help: str, kind: Any = str, **options: Any) -> Flag:
    """Return a flag as data: ``--rate R`` has a value, ``--quick`` none, ``file FILE`` no name.

    ``kind`` is the type of the value, or its default.
    """
    name, _, metavar = name.partition(" ")
    if not metavar:
        return name, {"help": help, "action": "store_true"}
    known = {"type": kind} if isinstance(kind, type) else {"type": type(kind), "default": kind}
    return name, {"help": help, "metavar": metavar, **known, **options}


@dataclass(frozen=True)
class Command:
    """A command, or without ``call`` a group of commands.

    ``flags`` may be a function that needs heavy modules; it is called when the command is used.
    """

    name: str
    summary: str
    call: Callable[[argparse.Namespace], Answer] | None = None
    text: str = ""
    flags: Sequence[Flag] | Callable[[], Sequence[Flag]] = ()
    kinds: Sequence[Command] = ()


class Parser(argparse.ArgumentParser):
    """Argument parser whose errors are ``InvalidInput``, so ``--json`` covers them too."""

    flags: Sequence[Flag] | Callable[[], Sequence[Flag]] = ()

    def _complete(self) -> None:
        """Add the flags, when the command is parsed or explained."""
        flags, self.flags = self.flags, ()
        for name, options in flags() if callable(flags) else flags:
            self.add_argument(name, **options)

    def format_help(self) -> str:
        self._complete()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        message = message if message.endswith("?") else f"{message}."
        raise InvalidInput(
            f"arguments must be those of {self.prog}; {message} See {self.prog} --help."
        )

    def parse_known_args(self, *args: Any, **options: Any) -> Any:
        """Refuse an unknown flag, with the nearest flag of the same command."""
        self._complete()
        found, unknown = super().parse_known_args(*args, **options)
        if unknown:
            near = nearest(unknown[0], self._option_string_actions)
            hint = f". {near}" if near.startswith("Did") else ""
            self.error(f"got {unknown[0]!r}{hint}")
        return found, unknown

    def add_commands(self, commands: Iterable[Command], **options: Any) -> Mapping[str, Parser]:
        """Add commands, each with ``--json``; return their parsers by name."""
        group = self.add_subparsers(**options)
        for each in commands:
            added: Parser = group.add_parser(
                each.name,
                help=each.summary,
                formatter_class=argparse.RawDescriptionHelpFormatter,
                description=f"{each.summary[0].upper()}{each.summary[1:]}.",
                epilog=each.text,
            )
            words = "print one JSON object and nothing else"
            added.add_argument("--json", action="store_true", help=words)
            added.set_defaults(call=each.call)
            added.flags = each.flags
            if each.kinds:
                names = "|".join(kind.name for kind in each.kinds)
                added.add_commands(each.kinds, dest="kind", metavar=names, required=True)
        return group.choices


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


def write_all(out: str, files: Mapping[str, str | bytes]) -> list[str]:
    """Write files into a folder, which is made; return their paths."""
    place = folder(out)
    for name, content in files.items():
        write(place / name, content)
    return [str(place / name) for name in files]


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a text table, the first column left-aligned, the others right-aligned."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        first, *others = zip(row, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return "  ".join(padded).rstrip()

    return [line(header), "  ".join("─" * width for width in widths), *map(line, cells)]


def _cell(value: object) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def progress(line: str, *, last: bool = False) -> None:
    """Show a line on a terminal, in place of the one before."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        shown = line[:width].ljust(width)
        print(f"\r{shown}", end="\n" * last, file=sys.stderr, flush=True)


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
