"""Output of a command: a document for programs and a text for people, files, warnings."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput
from discreet.text import Advice
from discreet.types import JsonMapping


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
