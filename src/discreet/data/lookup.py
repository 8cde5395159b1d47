"""Sets by name: generated, bundled, OpenML, files and folders.

A folder may have an INDEX.csv with a column ``slug``, the name of a set and of its file without
the suffix, and with ``rows``, ``features``, ``classes`` and ``in_paper`` (1 for a set of the paper,
else 0). Sets that it does not list are ignored.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from discreet.data import openml
from discreet.data.dataset import Dataset, labelled
from discreet.data.files import READERS, SUFFIXES, is_file_name, read_file, readable
from discreet.data.generators import fried, linear, logistic, ringnorm, twonorm, waveform
from discreet.errors import InvalidInput
from discreet.types import JsonObject
from discreet.validate import installed, nearest


@dataclass(frozen=True)
class Handle:
    """A set that ``load()`` reads, maybe in another process.

    ``kind`` is generated, bundled, file or openml; ``reader(place)`` reads the set. ``rows``,
    ``features`` and ``classes`` come from an index before the set is read, or are None.
    """

    name: str
    kind: str
    reader: Callable[..., Dataset]
    place: str | int
    rows: int | None = None
    features: int | None = None
    classes: int | None = None

    def load(
        self, target: str | None = None, encoded: bool = True, user: str | None = None
    ) -> Dataset:
        """Read the set, under the name of the handle; arguments are for files."""
        chosen = (target, encoded, user) if self.kind == "file" else ()
        data = replace(self.reader(self.place, *chosen), name=self.name)
        if user is not None and not chosen:
            data.named_column("user", user)  # raises: there are no people in such a set
        for what, count in {"rows": data.rows, "classes": data.n_actions}.items():
            if getattr(self, what) not in (None, count):
                raise InvalidInput(
                    f"{self.name} must have {getattr(self, what)} {what}, as INDEX.csv states; "
                    f"{self.place} has {count}. Correct the index, or put the right file there."
                )
        return data


INDEX = "INDEX.csv"
COUNTS = ("rows", "features", "classes")


def sets_in(folder: Path, only: str | None = None) -> list[Handle]:
    """Return all sets of a folder; ``only`` picks those of the paper, or one by its name."""
    index, of_paper = folder / INDEX, only == "paper"
    if index.is_file() or of_paper:
        records = _index_records(index)
        marked = [each for each in records if each.get("in_paper", "").strip() == "1"]
        found = [_indexed(folder, record) for record in (marked if of_paper else records)]
    else:
        paths = sorted(path for path in folder.iterdir() if is_file_name(path) and path.is_file())
        found = [Handle(path.stem, "file", read_file, str(path)) for path in paths]
    if not found:
        where = f"marked with 1 in column in_paper of {INDEX}" if of_paper else "in it"
        raise InvalidInput(
            f"folder must hold {SUFFIXES} files {where}; {folder} has none. Check the path, or "
            "name the sets one by one."
        )
    if only is None or of_paper:
        return found
    names = [each.name for each in found]
    if only not in names:
        raise InvalidInput(
            f"set must be one of the {len(names)} in {folder}; got {only!r}. "
            f"{nearest(only, [*names, 'paper'])}"
        )
    return [found[names.index(only)]]


def _index_records(index: Path) -> list[dict[str, str]]:
    """Read lines of the index, each with a slug: a plain name that stays in the folder."""
    step = "Save it as CSV (UTF-8)."
    with (
        readable(index, "UTF-8 text with commas", step, UnicodeDecodeError, csv.Error),
        index.open(newline="", encoding="utf-8-sig") as file,
    ):
        records = [
            {key: value or "" for key, value in line.items() if key}
            for line in csv.DictReader(file)
        ]
    slugs = [record.get("slug", "").strip() for record in records]
    plain = all(slug and Path(slug).name == slug for slug in slugs)
    if not slugs or not plain or len({*slugs}) < len(slugs):
        twice = [f"{slug!r} twice" for slug in slugs if slugs.count(slug) > 1]
        raise InvalidInput(
            f"{index} must have a column slug with the plain name of a set, each once; got "
            f"{[*twice, 'a line without'][0]}. Name each file without folder and suffix."
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
    texts = {key: record.get(key, "").strip() for key in COUNTS}
    counts = {key: int(text) for key, text in texts.items() if text.isdecimal()}
    return Handle(slug, "file", read_file, str(path), **counts)


BUNDLED = ("breast_cancer", "digits", "iris", "wine")


def bundled(name: str) -> Dataset:
    """Return one of ``BUNDLED``, from ``sklearn.datasets``, with its numbers as they are."""
    instead = ", or use a generated set such as fried"
    installed("campaign", f"for {name!r}", "sklearn", instead=instead)
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    data = labelled(name, found.data, found.target)
    return replace(data, classes=tuple(map(str, found.target_names)))


GENERATORS: Mapping[str, Callable[..., Dataset]] = {
    made.__name__: made for made in (fried, linear, logistic, ringnorm, twonorm, waveform)
}
NAMES = (*GENERATORS, *BUNDLED)
ROWS = 20_000
"""Size of a generated set by default."""


def load(
    name_or_path: str | Path,
    *,
    rows: int | None = None,
    target: str | int | None = None,
    encoded: bool = True,
    user: str | None = None,
) -> Dataset:
    """Return one set: by name, from a file, or from OpenML.

    ``rows`` is for generated sets only. ``target`` is the column of the class in a file, by name or
    by number from 1; the default is the last. Without ``encoded`` the columns of a file do not
    become numbers, for a schema. ``user`` names a column of a file that holds the ids of people: it
    becomes ``users`` of the set, and is no context.

    >>> load("linear", rows=300)
    Dataset(name='linear', n_actions=3)
    """
    name = str(name_or_path)
    found = _handles(name)
    if len(found) > 1:
        first = found[0].name
        if found[0].kind != "openml":
            first = f"{name.removesuffix(':paper')}:{first}"
        raise InvalidInput(
            f"data must be one set; {name!r} names {len(found)}. "
            f"Name one of them, such as {first!r}."
        )
    for what, column in {"target": target, "user": user}.items():
        if column is not None and found[0].kind != "file":
            raise InvalidInput(
                f"{what} must be left out for {name!r}, whose columns have fixed uses; got "
                f"{column!r}. Only files have columns to choose from."
            )
    if rows is not None and name not in GENERATORS:
        raise InvalidInput(
            f"rows must be left out for {name!r}: its size is fixed; got {rows}. "
            f"Only generated sets ({', '.join(GENERATORS)}) come in any size."
        )
    one = found[0] if rows is None else replace(found[0], place=rows)
    return one.load(None if target is None else str(target), encoded, user)


def resolve(names: Sequence[str | Path]) -> list[Handle]:
    """Return the sets that names stand for, each once, in order; none is read yet.

    A name is a generated set (``fried``, or ``fried:5000`` for that many rows), a bundled one
    (``digits``), a set of OpenML (``openml:901``), a collection (``paper``), a file, a folder, a
    set of a folder (``DIR:NAME``) or the paper's sets in a folder (``DIR:paper``).

    >>> [handle.name for handle in resolve(["fried:5000", "iris", "openml:901"])]
    ['fried:5000', 'iris', 'openml:901']
    >>> len(resolve(["paper"]))
    100
    """
    if isinstance(names, (str, Path)):
        raise InvalidInput(f"names must be a list of names; got {names!r}. Put it in brackets.")
    handles = list(dict.fromkeys(handle for name in names for handle in _handles(str(name))))
    if not handles:
        raise InvalidInput("names must name at least one set; got none. Add one, such as 'fried'.")
    seen: dict[str, Handle] = {}
    for handle in handles:
        other = seen.setdefault(handle.name, handle)
        if other is not handle:
            raise InvalidInput(
                f"sets must have different names; got {handle.name!r} for the {other.kind} "
                f"{other.place} and for the {handle.kind} {handle.place}. Rename a file, or call a "
                "generated set NAME:ROWS."
            )
        if handle.kind == "file":
            with readable(str(handle.place), "", ""):
                Path(str(handle.place)).stat()
    return handles


def _handles(name: str) -> list[Handle]:
    """Return the sets of one name; built-in names come before files and folders."""
    head, colon, tail = name.rpartition(":")
    if name in GENERATORS:
        return [Handle(name, "generated", GENERATORS[name], ROWS)]
    if head in GENERATORS and tail.isdecimal() and int(tail) > 0:
        return [Handle(name, "generated", GENERATORS[head], int(tail))]
    if name in BUNDLED:
        return [Handle(name, "bundled", bundled, name)]
    numbers: Sequence[int] = openml.collection(name) if name in openml.COLLECTIONS else ()
    if name.startswith(openml.PREFIX):
        if not tail.isdecimal() or not int(tail):
            raise InvalidInput(
                f"set of OpenML must be given by its number, as in openml:901; got {name!r}. "
                "Look it up at www.openml.org."
            )
        numbers = [int(tail)]
    if numbers:
        return [
            Handle(f"{openml.PREFIX}{each}", "openml", openml.load_set, each) for each in numbers
        ]
    if Path(name).is_dir():
        return sets_in(Path(name))
    if colon and head and Path(head).is_dir():
        return sets_in(Path(head), tail)
    if is_file_name(name):
        return [Handle(Path(name).stem, "file", read_file, name)]
    known = (*NAMES, *openml.COLLECTIONS)
    raise InvalidInput(
        f"data must be one of {', '.join(known)}, openml:NUMBER, a {SUFFIXES} file or a folder of "
        f"them; got {name!r}. {nearest(name, (*known, 'openml:NUMBER'))}"
    )


def set_facts(data: Dataset) -> JsonObject:
    """Return name, size, number of classes and digest of a set."""
    return {
        "name": data.name,
        "rows": data.rows,
        "features": data.dimension,
        "classes": data.n_actions,
        "digest": data.digest,
    }


def known_facts(handle: Handle) -> JsonObject:
    """Return name, kind and counts of a set without fetching it; an index saves reading a file."""
    counts = {column: getattr(handle, column) for column in COUNTS}
    if None in counts.values() and _is_here(handle):
        try:
            found = set_facts(handle.load())
            counts = {column: found[column] for column in COUNTS}
        except InvalidInput as error:
            counts["error"] = str(error)
    return {"name": handle.name, "kind": handle.kind, **counts}


def _is_here(handle: Handle) -> bool:
    """Return whether a set can be read without the network."""
    return handle.kind != "openml" or openml.cached_path(int(handle.place)).exists()


def fetch_sets(handles: Iterable[Handle]) -> Iterator[JsonObject]:
    """Read every set once, so that those of OpenML are cached; a failure does not stop the rest."""
    offline = False
    for handle in handles:
        try:
            if offline and not _is_here(handle):
                raise InvalidInput("not tried: OpenML cannot be reached")
            yield {**set_facts(handle.load()), "error": None}
        except InvalidInput as error:
            yield {"name": handle.name, "error": str(error)}
            # Each attempt waits for the network, so one is enough.
            offline = offline or openml.is_unreachable(error)


def all_sets() -> JsonObject:
    """Return the names of all sets that need no path: generated, bundled, and of OpenML."""
    cached = openml.cached_numbers()
    sets = {name: {*openml.collection(name)} for name in openml.COLLECTIONS}
    return {
        "generated": {name: str(made.__doc__).split("\n")[0] for name, made in GENERATORS.items()},
        "bundled": list(BUNDLED),
        "collections": {
            name: {"sets": len(each), "cached": len(each & {*cached})}
            for name, each in sets.items()
        },
        "cache": str(openml.cache_folder()),
        "cached": [f"{openml.PREFIX}{number}" for number in cached],
    }
