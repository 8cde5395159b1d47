"""Move a folder with a single experiment into a folder of many, so that everything still fits."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.service.environment import from_environment
from discreet.service.server_settings import ARCHIVE, EXPERIMENT_FILE, NOT_SERVED, ServerSettings
from discreet.service.settings import Settings
from discreet.service.storage.locations import POINTER


def check_movable(settings: Settings, file: Path, server: ServerSettings) -> None:
    """Refuse what would not find its database, vault or anchor after the move."""
    if server.database and not settings.postgres:
        raise InvalidInput(
            "experiment must have a PostgreSQL database for this server; it has SQLite. Adopt it "
            "into a folder whose server.toml names no database."
        )
    known = file.is_relative_to(server.folder / ARCHIVE)  # the environment does not concern it
    elsewhere = [] if known else sorted({"database", "vault", "anchor"} & set(_environment()))
    if elsewhere:
        raise InvalidInput(
            f"{', '.join(elsewhere)} must be said by the experiment file to be adopted; the "
            "environment says it. Write it into the file, and unset DISCREET_…."
        )
    named = [settings.vault] + ([settings.anchor] if settings.anchor else [])
    named += [] if settings.postgres else [settings.database]
    for name in named:
        inside = settings.place(name).resolve().is_relative_to(file.parent)
        if inside == Path(name).is_absolute():
            raise InvalidInput(
                f"paths must still be right after the move; {name!r} is not. Write a path inside "
                "the folder relative to the file, and any other in full."
            )


def moved(settings: Settings, file: Path, place: Path) -> None:
    """Move the folder as it is; an anchor inside it that was named in full is named anew."""
    pointer, folder = settings.place(settings.vault) / POINTER, file.parent
    place.parent.mkdir(mode=0o700, exist_ok=True)
    mark = folder / NOT_SERVED  # until everything is right
    mark.touch()
    try:
        folder.rename(place)
    except OSError as error:
        mark.unlink()
        other = "it is on another disk" if error.errno == errno.EXDEV else error.strerror
        raise InvalidInput(
            f"folder must be movable to {place}; {folder} is not ({other}). Nothing was changed: "
            "stop what uses it, move it to the disk of the server, and adopt it from there."
        ) from None
    if file.name != EXPERIMENT_FILE:
        (place / file.name).rename(place / EXPERIMENT_FILE)
    pointer = place / pointer.relative_to(folder) if pointer.is_relative_to(folder) else pointer
    if pointer.is_file():
        anchor = Path(pointer.read_text(encoding="utf-8").strip())
        if anchor.is_relative_to(folder):
            pointer.write_text(f"{place / anchor.relative_to(folder)}\n", encoding="utf-8")
    (place / NOT_SERVED).unlink()


def _environment() -> dict[str, object]:
    return from_environment(os.environ)
