"""What a command answers: one document for machines, and the text of it for people."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput


@dataclass(frozen=True)
class Answer:
    """``document`` is what ``--json`` prints, ``text`` what is printed otherwise."""

    document: Mapping[str, Any]
    text: str
    code: int = 0


def as_json(document: Mapping[str, Any]) -> str:
    """One JSON object in ASCII; ε = ∞ is the word "inf", since JSON has no infinity."""
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
    """Lines of a text table: the first column on the left, all others on the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return [line(header), "  ".join("─" * width for width in widths), *map(line, rows)]


def described(config: Mapping[str, Any]) -> str:
    """``Ridge(ridge=0.01, mechanism=structured)`` from the configuration of a part."""
    named = [f"{name}={_short(value)}" for name, value in config.items() if name != "kind"]
    return f"{config['kind']}({', '.join(named)})"


def _short(value: Any) -> str:
    if isinstance(value, Mapping) and "shape" in value:
        return f"array of shape {tuple(value['shape'])}"
    return str(value)
