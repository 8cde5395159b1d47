"""Settings from environment variables and from files that they name, as containers hand them over.

They take the place of what the experiment file says, so that a password is in neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput

VARIABLES = {
    "DISCREET_DATABASE_URL": "database",
    "DISCREET_VAULT": "vault",
    "DISCREET_ANCHOR": "anchor",
    "DISCREET_HOST": "host",
    "DISCREET_PORT": "port",
    "DISCREET_PREFIX": "prefix",
}
"""Each may also be given as NAME_FILE, the path of a file that holds the value."""


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings that the environment names; an error never repeats a value."""
    found = {
        setting: value
        for name, setting in VARIABLES.items()
        if (value := _value(environment, name)) is not None
    }
    if "port" not in found:
        return found
    if not (found["port"].isascii() and found["port"].isdecimal()):
        raise InvalidInput(
            "DISCREET_PORT must be a whole number; it is not. Write DISCREET_PORT=8000."
        )
    return found | {"port": int(found["port"])}


def _value(environment: Mapping[str, str], name: str) -> str | None:
    value, path = environment.get(name), environment.get(f"{name}_FILE")
    if value is not None and path is not None:
        raise InvalidInput(
            f"{name} must be given once; {name}_FILE is set too. Leave one of them out."
        )
    if path is None:
        return value or None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InvalidInput(
            f"{name}_FILE must name a readable file; {path} is not ({why}). Check the path and "
            "whose it is."
        ) from None
