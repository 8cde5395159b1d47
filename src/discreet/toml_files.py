"""TOML files: their text and their keys, or an error that names the file and the line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """The keys of a file; ``what`` names the file in errors."""
    return parse_toml(read_text(path, what), path, what)


def read_text(path: str | Path, what: str, step: str = "Check the path.") -> str:
    """The text of a TOML file, for ``parse_toml``."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"{what} file must be readable; cannot read {path} ({error.strerror}). {step}"
        ) from None
    except UnicodeDecodeError as error:
        raise _no_toml(path, what, error) from None


def parse_toml(text: str, path: str | Path, what: str) -> dict[str, Any]:
    """The keys of the text that was read from the file ``path``."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _no_toml(path, what, error) from None


def _no_toml(path: str | Path, what: str, error: ValueError) -> InvalidInput:
    return InvalidInput(f"{what} file must be TOML; {path} is not: {error}. Correct that line.")
