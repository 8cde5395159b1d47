"""What is said of a file that cannot be opened."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from discreet.errors import InvalidInput


def unreadable(path: Path, error: OSError) -> NoReturn:
    """A complaint that names the file and the reason."""
    reason = error.strerror or "not a file of that kind"
    raise InvalidInput(
        f"file must be readable; {path} is not ({reason}). Check the path."
    ) from None
