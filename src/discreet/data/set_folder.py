"""Folders of sets, with or without an INDEX.csv that lists them.

An index has a column ``slug``, the name of a set and of its file without the suffix, and may have
``rows``, ``features``, ``classes`` and ``in_paper`` (1 for a set of the paper, else 0). Sets
that it does not list are ignored.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from discreet.data.dataset import Dataset, with_users
from discreet.data.files import READERS, SUFFIXES, is_file_name, read_file
from discreet.data.table import unreadable
from discreet.errors import InvalidInput
from discreet.validate import nearest


@dataclass(frozen=True)
class Handle:
    """Reading waits until ``load()``, which may happen in another process.

    ``kind`` is generated, bundled, file or openml; ``reader(place)`` reads the set, and
    that of a file also takes the column of the class. ``rows``,
    ``features`` and ``classes`` come from an index before the set is read, or are None.
    """

    name: str
    kind: str
    reader: Callable[..., Dataset]
    place: str | int
    rows: int | None = None
    features: int | None = None
    classes: int | None = None

    @property
    def origin(self) -> str:
        """The source, in words."""
        return str(self.place) if self.kind == "file" else f"the {self.kind} set"

    def load(
        self, target: str | None = None, encoded: bool = True, user: str | None = None
    ) -> Dataset:
        """The set itself, under the name of the handle; arguments are for files."""
        if user is not None:
            return with_users(self.load(target, encoded=False), user, encoded)
        chosen = (target, encoded) if self.kind == "file" else ()
        data = replace(self.reader(self.place, *chosen), name=self.name)
        found = {"rows": data.rows, "classes": data.n_actions}
        for what, count in found.items():
            expected = getattr(self, what)
            if expected is not None and expected != count:
                raise InvalidInput(
                    f"{self.name} must have {expected} {what}, as INDEX.csv states; {self.place} "
                    f"has {count}. Correct the index, or put the right file there."
                )
        return data


INDEX = "INDEX.csv"
COUNTS = ("rows", "features", "classes")


def sets_in(folder: Path, only: str | None = None) -> list[Handle]:
    """All sets of a folder; ``only`` picks those of the paper, or one by its name."""
    index = folder / INDEX
    if only == "paper":
        records = _records(index)
        if "in_paper" not in records[0]:
            raise InvalidInput(
                f"{index} must have a column in_paper for the paper's sets; the column is missing. "
                "Add it, or name the sets one by one."
            )
        chosen = [each for each in records if each["in_paper"].strip() in ("1", "true", "True")]
        if not chosen:
            raise InvalidInput(
                f"{index} must mark the paper's sets with 1 in column in_paper; no set is marked. "
                "Mark them, or name the sets one by one."
            )
        return [_indexed(folder, record) for record in chosen]
    if index.is_file():
        found = [_indexed(folder, record) for record in _records(index)]
    else:
        paths = sorted(path for path in folder.iterdir() if is_file_name(path) and path.is_file())
        found = [Handle(path.stem, "file", read_file, str(path)) for path in paths]
    if not found:
        raise InvalidInput(f"folder must hold {SUFFIXES} files; {folder} has none. Check the path.")
    if only is None:
        return found
    picked = [each for each in found if each.name == only]
    if not picked:
        names = [each.name for each in found]
        raise InvalidInput(
            f"set must be one of the {len(names)} in {folder}; got {only!r}. "
            f"{nearest(only, [*names, 'paper'])}"
        )
    return picked


def _records(index: Path) -> list[dict[str, str]]:
    """Lines of the index, each with a slug."""
    try:
        with index.open(newline="", encoding="utf-8-sig") as file:
            records = [
                {key: value or "" for key, value in line.items() if key}
                for line in csv.DictReader(file)
            ]
    except OSError as error:
        unreadable(index, error)
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(
            f"{index} must be UTF-8 text with commas; it has other bytes. Save it as CSV (UTF-8)."
        ) from None
    slugs = [record.get("slug", "").strip() for record in records]
    # A slug is a plain name: it must not lead out of the folder.
    if not slugs or any(not slug or Path(slug).name != slug for slug in slugs):
        raise InvalidInput(
            f"{index} must have a column slug with the plain name of a set on every line; a "
            "line lacks one. Name each file without folder and suffix."
        )
    if twice := sorted({slug for slug in slugs if slugs.count(slug) > 1}):
        raise InvalidInput(
            f"{index} must name a set once; got {twice[0]!r} twice. Delete one line."
        )
    return records


def _indexed(folder: Path, record: dict[str, str]) -> Handle:
    slug = record["slug"].strip()
    paths = [folder / f"{slug}{suffix}" for suffix in READERS]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise InvalidInput(
            f"{folder / INDEX} must name files that are there; {slug} has no {SUFFIXES} file. "
            "Put it there, or delete the line."
        )
    counts = {key: _count(record.get(key, "")) for key in COUNTS}
    return Handle(slug, "file", read_file, str(path), **counts)


def _count(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None
