"""Actions with ids and features, and changes of actions: public documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.errors import CorruptRelease, InvalidInput
from discreet.features import frames
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.releases.canonical import decode_array, digest_of, encode_array
from discreet.types import Floats, JsonMapping, JsonObject
from discreet.validate import instance, intact, nearest

ID = "id"
"""The column of an item's id; a schema may have a field of this name, for effects of one item."""

VECTOR = "features"
"""The key of an item's numbers in a dict, where the schema is a UnitBall."""


@dataclass(frozen=True, eq=False, repr=False)
class Catalogue(Sequence[str]):
    """Items with features by a public ``schema``, a Schema or a UnitBall.

    ``items`` maps ids to features, or is a frame or a list of dicts with a column "id". It may be
    empty where every request brings its items along. A catalogue is a sequence of its ids.

    >>> from discreet.features.number import Number
    >>> films = Catalogue(Schema([Number("year", 1900, 2000)]), {"Metropolis": {"year": 1927}})
    >>> list(films), films.rows.shape
    (['Metropolis'], (1, 3))
    """

    schema: UnitBall | Schema
    ids: tuple[str, ...]
    rows: Floats
    """What the schema makes of each item, (I, da + 1); documents hold these numbers."""

    def __init__(
        self,
        schema: UnitBall | Schema,
        items: object = (),
        *,
        ids: Iterable[str] | None = None,
        rows: object = None,
    ) -> None:
        step = "Pass a Schema of the columns of an item, or UnitBall(dimension)."
        object.__setattr__(self, "schema", instance("schema", schema, (UnitBall, Schema), step))
        if rows is None:
            ids, rows = item_rows(schema, items)
        object.__setattr__(self, "ids", checked_ids(ids))
        # Rounded exactly as a document is read back, so that every reader has the same numbers.
        rounded = decode_array(encode_array(np.asarray(rows).reshape(len(self.ids), schema.p)))
        norms = np.einsum("ij,ij->i", rounded, rounded)
        if (norms > 1.0 + 1e-9).any() or not np.isfinite(norms).all():
            raise InvalidInput(
                "rows of a catalogue must have length at most 1; some are longer. "
                "Give items, and let the schema make rows of them."
            )
        rounded.setflags(write=False)
        object.__setattr__(self, "rows", rounded)

    def __repr__(self) -> str:
        return f"Catalogue({len(self.ids)} items, {self.schema.p - 1} features)"

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, number: Any) -> Any:
        return self.ids[number]

    def __contains__(self, item: object) -> bool:
        return item in self.places

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each item."""
        return {item: place for place, item in enumerate(self.ids)}

    def place(self, item: object, name: str = "actions") -> int:
        """Return the place of an item; it is refused if it is unknown, or was removed."""
        found = self.places.get(item) if isinstance(item, str) else None
        if found is None:
            raise InvalidInput(
                f"{name} must be items of the catalogue; got {item!r}, which is unknown or has "
                f"left. {nearest(str(item), self.ids)}"
            )
        return found

    def changed(self, add: object = (), remove: Iterable[str] = ()) -> Catalogue:
        """Return a catalogue with some items more and some less, in the same order."""
        ids, rows = item_rows(self.schema, add)
        gone = {self.place(item, "remove") for item in checked_ids(remove, "remove")}
        left = {item: place for item, place in self.places.items() if place not in gone}
        if twice := [item for item in ids if item in left]:
            raise InvalidInput(
                f"add must be new items; got {twice[0]!r}, which is in the catalogue. "
                "Remove it in the same call to give it other features."
            )
        both = np.concatenate([self.rows[list(left.values())], rows])
        return Catalogue(self.schema, ids=[*left, *ids], rows=both)


def item_rows(schema: UnitBall | Schema, items: object) -> tuple[tuple[str, ...], Floats]:
    """Ids and rows (I, da + 1) of items, checked one by one."""
    if frames.is_frame(items):
        names = frames.column_names(items)
        if ID not in names:
            raise InvalidInput(
                f"items must have a column 'id'; got the columns {', '.join(names)}. "
                "Rename the column that identifies items."
            )
        ids = checked_ids(frames.column(frames.opened(items), ID).values.tolist())
        if not (isinstance(schema, Schema) and ID in schema.spans):
            items = frames.without_column(items, ID)
        return ids, schema.map(items)
    if isinstance(items, Mapping):
        pairs = [*items.items()]
    else:
        given: Any = items
        listed = [*given] if np.iterable(given) and not isinstance(given, (str, bytes)) else [given]
        for item in listed:
            if not isinstance(item, Mapping) or ID not in item:
                raise InvalidInput(
                    "items must be a mapping of ids to features, a frame or dicts with 'id'; "
                    f"got {type(item).__name__}. Write {{'a': {{'year': 1999}}}}."
                )
        pairs = [(item[ID], {name: item[name] for name in item if name != ID}) for item in listed]
    ids = checked_ids([item for item, _ in pairs])
    rows = [item_row(schema, item, features) for item, features in pairs]
    return ids, np.stack(rows) if rows else np.empty((0, schema.p))


def item_row(
    schema: UnitBall | Schema, item: str, features: object, called: str | None = None
) -> Floats:
    """Return the features of one item (da + 1,); errors name it by its id, or as ``called``."""
    given, called = features, called or f"item {item!r}"
    if isinstance(schema, UnitBall) and isinstance(features, Mapping) and [*features] == [VECTOR]:
        given = features[VECTOR]
    if isinstance(schema, Schema) and isinstance(features, Mapping) and ID in schema.spans:
        given = {**features, ID: item}
    if not schema.is_single(given):
        raise InvalidInput(
            f"features of {called} must be those of one item; got "
            f"{type(features).__name__}. Pass what the catalogue's schema reads."
        )
    try:
        return np.asarray(schema.map(given)[0])
    except InvalidInput as error:
        raise InvalidInput(f"{called}: {error}") from None


def checked_ids(ids: Any, name: str = "items") -> tuple[str, ...]:
    """Distinct words without blanks around them."""
    listed = np.iterable(ids) and not isinstance(ids, (str, bytes))
    seen: dict[str, None] = {}
    for word in ids if listed else [None]:
        if not isinstance(word, str) or not word or word != word.strip() or word in seen:
            raise InvalidInput(
                f"{name} must have distinct words as ids, without blanks around them; "
                f"got {word if listed else ids!r}. Give a list, each item with its own id."
            )
        seen[word] = None
    return tuple(seen)


CHANGE = "discreet-actions/1"
"""The format of a document of changes."""


@dataclass(frozen=True, eq=False)
class ActionChange:
    """Actions added and removed after so many ``releases``; number 1 is the first change.

    ``rows`` (I, da + 1) are the features of added items. Where actions have blocks there are none,
    and ``batch`` is the first one in which the new actions have theirs.
    """

    number: int
    releases: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    rows: Floats | None = None
    batch: int | None = None
    plan_digest: str = ""
    previous: str = ""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        return digest_of(self.to_json())

    def to_json(self) -> JsonObject:
        """The document whose canonical bytes are hashed and signed."""
        return {
            "format": CHANGE,
            "number": self.number,
            "releases": self.releases,
            "plan": self.plan_digest,
            "previous": self.previous,
            "added": list(self.added),
            "removed": list(self.removed),
            "rows": None if self.rows is None else encode_array(self.rows),
            "batch": self.batch,
        }

    @classmethod
    def from_json(cls, document: JsonMapping) -> ActionChange:
        """The change of a document; refuses anything that discreet would not write."""
        broken = (
            "change of actions must be a document that discreet wrote; this one is not. "
            "Fetch it again."
        )
        with intact(broken):
            rows, batch = document["rows"], document["batch"]
            change = cls(
                int(document["number"]),
                int(document["releases"]),
                tuple(map(str, document["added"])),
                tuple(map(str, document["removed"])),
                None if rows is None else decode_array(rows),
                None if batch is None else int(batch),
                document["plan"],
                document["previous"],
            )
            whole = change.rows is None or (
                change.rows.ndim == 2
                and len(change.rows) == len(change.added)
                and bool((np.einsum("ij,ij->i", change.rows, change.rows) <= 1.0 + 1e-9).all())
            )
            if document["format"] != CHANGE or not whole or digest_of(document) != change.digest:
                raise CorruptRelease(broken)
            return change


def changes_of(documents: Iterable[JsonMapping], plan: str) -> tuple[ActionChange, ...]:
    """Return the changes of documents, if each follows the one before."""
    changes: tuple[ActionChange, ...] = ()
    for document in documents:
        changes = (*changes, following_change(document, changes, plan))
    return changes


def following_change(
    document: JsonMapping, before: Sequence[ActionChange], plan: str
) -> ActionChange:
    """Return the change of a document, if it follows those before."""
    change, number = ActionChange.from_json(document), len(before) + 1
    previous, releases = (before[-1].digest, before[-1].releases) if before else (plan, 0)
    place = (change.number, change.plan_digest, change.previous)
    if place != (number, plan, previous) or change.releases < releases:
        raise CorruptRelease(
            f"change {number} of the actions must follow change {number - 1}; it does not. "
            "A document was altered or is missing: fetch them again."
        )
    return change
