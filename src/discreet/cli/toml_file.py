"""A TOML file as a document, or a complaint that says what is wrong with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput


def read(path: str, what: str) -> dict[str, Any]:
    """The keys of the file; ``what`` names it in complaints."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"{what} file must be readable; {path} is not ({error.strerror}). Check the path."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{what} file must be TOML; {path} is not: {error}. Correct that line."
        ) from None
