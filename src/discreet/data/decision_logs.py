"""Logs of Vowpal Wabbit, read: ``cb`` (one line each) and ``cb_adf`` (blocks of lines).

A label is ``action:cost:probability``. A ``cb`` line counts actions from 1. A ``cb_adf`` block has
one line per action, with its features, and before them a ``shared`` line for the context; the
label is on the line of the action that was played. ``adapters/vowpal_log.py`` writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from discreet.data.dsjson_log import DSJSON, Features, feature_columns, read_dsjson
from discreet.data.files import sample_columns
from discreet.data.table import unreadable
from discreet.errors import InvalidInput
from discreet.text import advise
from discreet.types import Floats, NumpyArray

CONTEXT, ACTION = "x", "a"
"""The namespaces in which features are written."""


@dataclass(frozen=True, eq=False)
class VwLog:
    """Logged decisions: contexts (n, d) with the names of their columns, and what was played.

    ``actions`` count from 0: numbers of actions in a ``cb`` log, and places in the block in a
    ``cb_adf`` log. ``costs`` and ``propensities`` are as logged; ``n_actions`` is the largest
    number seen. Features that a line does not name are 0.

    A ``cb_adf`` log has the offered actions of each row: ``offers`` are their ids, and ``items``
    their features. An id is the features of the action's line, or its tag.
    """

    columns: tuple[str, ...]
    contexts: Floats = field(repr=False)
    actions: Floats = field(repr=False)
    costs: Floats = field(repr=False)
    propensities: Floats = field(repr=False)
    n_actions: int
    offers: tuple[tuple[str, ...], ...] | None = field(default=None, repr=False)
    items: Mapping[str, Mapping[str, float]] | None = field(default=None, repr=False)

    @cached_property
    def same_offers(self) -> bool:
        """Return whether every row was offered the same actions in the same order."""
        return self.offers is None or len(set(self.offers)) == 1

    @property
    def played(self) -> list[str]:
        """The id of what each row played, in a ``cb_adf`` log."""
        if self.offers is None:
            raise InvalidInput(
                "log must be of the kind cb_adf to have ids of actions; this one is cb. "
                "Use actions, which are numbers."
            )
        pairs = zip(self.offers, self.actions.tolist(), strict=True)
        return [offer[place] for offer, place in pairs]

    def item_vectors(self) -> dict[str, list[float]]:
        """Each item's numbers, in one order of columns: ``Catalogue(UnitBall(k), vectors)``."""
        items = self.items or {}
        columns = {name: None for item in items.values() for name in item}
        return {
            item: [float(known.get(name, 0.0)) for name in columns] for item, known in items.items()
        }


class _Row(NamedTuple):
    """One decision as it is read; ``label`` is None where nothing was played."""

    features: dict[str, float]
    label: tuple[int, float, float] | None
    actions: int
    offer: tuple[str, ...] | None = None


def read_vw(path: str | Path, *, tags: bool = False) -> VwLog:
    """The decisions of a log; lines without a label (nothing was played) are left out.

    With ``tags`` the tag of an action's line is its id. Otherwise its features are, as they are
    written, and tags are not read.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError as error:
        unreadable(Path(path), error)
    except UnicodeDecodeError:
        raise InvalidInput(f"log must be UTF-8 text; {path} is not. Save it as UTF-8.") from None
    items: dict[str, dict[str, float]] = {}
    rows, n_actions = [], 0
    adf = _has_blocks(lines)
    for number, block in _blocks(lines) if adf else _single(lines):
        row = _adf(number, block, items, tags) if adf else _cb(number, block[0])
        n_actions = max(n_actions, row.actions)
        if row.label is not None:
            rows.append(row)
    if not rows:
        raise InvalidInput(
            f"log must hold labelled lines, action:cost:probability; {path} holds none. "
            "Write it with --cb or --cb_adf labels."
        )
    places: dict[str, int] = {}
    for row in rows:
        for name in row.features:
            places.setdefault(name, len(places))
    contexts = np.zeros((len(rows), len(places)))
    for numbers, row in zip(contexts, rows, strict=True):
        numbers[[places[name] for name in row.features]] = list(row.features.values())
    labels = zip(*(row.label for row in rows if row.label is not None), strict=True)
    played, costs, chances = (np.asarray(each) for each in labels)
    log = VwLog(tuple(places), contexts, played.astype(np.int64), costs, chances, n_actions)
    if not adf:
        return log
    offers = tuple(row.offer for row in rows if row.offer is not None)
    return replace(log, offers=offers, items=items)


def _has_blocks(lines: list[str]) -> bool:
    """Return whether this is ``cb_adf``: by a shared line, or by gaps and an action 0."""
    if any(_is_shared(line) for line in lines):
        return True
    gaps = any(not line.strip() for line in lines)
    return gaps and any(line.lstrip().startswith("0:") for line in lines)


def _single(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines with their numbers; blank ones separate nothing in a ``cb`` log."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, [line]


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Blocks with the number of their first line: blank lines and ``shared`` lines separate."""
    block: list[str] = []
    first = 1
    for number, line in enumerate(lines, start=1):
        if block and (not line.strip() or _is_shared(line)):
            yield first, block
            block = []
        if line.strip():
            first = first if block else number
            block.append(line)
    if block:
        yield first, block


def _is_shared(line: str) -> bool:
    return line.split("|", 1)[0].split()[:1] == ["shared"]


def _cb(number: int, line: str) -> _Row:
    label = _label(number, line)
    if label is None:
        return _Row({}, None, 0)
    if label[0] < 1:
        raise _wrong(number, "an action must be counted from 1")
    return _Row(_features(number, line), (label[0] - 1, *label[1:]), label[0])


def _adf(number: int, lines: list[str], items: dict[str, dict[str, float]], tags: bool) -> _Row:
    """A block; what its lines say of actions is put among the items."""
    shared = _is_shared(lines[0])
    actions = lines[1:] if shared else lines
    numbered = [*enumerate(actions, start=number + shared)]
    labels = [_label(place, line) for place, line in numbered]
    played = [(place, *label[1:]) for place, label in enumerate(labels) if label is not None]
    if len(played) > 1:
        raise _wrong(number, "a block must have one label, on the line of the action played")
    if not played:
        return _Row({}, None, len(actions))
    offer = tuple(_item(place, line, items, tags) for place, line in numbered)
    if len(set(offer)) < len(offer):
        raise _wrong(number, "a block must have different actions, by their features or tags")
    context = _features(number, lines[0]) if shared else {}
    return _Row(context, played[0], len(actions), offer)


def _item(number: int, line: str, items: dict[str, dict[str, float]], tags: bool) -> str:
    """The id of the action of a line."""
    features = _features(number, line, ACTION)
    name = " ".join(key if value == 1.0 else f"{key}:{value!r}" for key, value in features.items())
    if tags:
        name = _tag(line)
    if not name:
        raise _wrong(number, "a line of an action must have features, or tags that are read")
    if items.setdefault(name, features) != features:
        raise _wrong(number, "an action must have the same features wherever its tag is")
    return name


def _tag(line: str) -> str:
    """The tag of a line: it touches the first bar, or follows a quote; empty without one."""
    before = line.split("|", 1)[0]
    last = before.split()[-1:] or [""]
    quoted = last[0].startswith("'")
    touches = before == before.rstrip() and ":" not in last[0] and last[0] != "shared"
    return last[0].removeprefix("'") if quoted or touches else ""


def _label(number: int, line: str) -> tuple[int, float, float] | None:
    """``action:cost:probability`` before the first bar; None if there is none."""
    words = [word for word in line.split("|", 1)[0].split() if ":" in word]
    if "|" not in line:
        raise _wrong(number, "a line must have a bar before its features")
    if not words:
        return None
    parts = words[0].split(":")
    try:
        action, cost, chance = int(parts[0]), float(parts[1]), float(parts[2])
    except (ValueError, IndexError):
        raise _wrong(
            number, "a label must be action:cost:probability, with a probability"
        ) from None
    if len(words) > 1:
        raise _wrong(number, "a line must have one label, of the action that was played")
    return action, cost, chance


def _features(number: int, line: str, own: str = CONTEXT) -> dict[str, float]:
    """Names and values; names in a namespace that is not ``own`` are written ``space^name``."""
    found: dict[str, float] = {}
    for part in line.split("|")[1:]:
        words = part.split()
        space, scale = "", 1.0
        if part[:1].strip():  # a namespace touches its bar
            space, _, scaled = words.pop(0).partition(":")
            scale = _value(number, scaled)
        for word in words:
            name, _, value = word.partition(":")
            key = f"{space}^{name}" if space not in ("", own) else name
            found[key] = found.get(key, 0.0) + scale * _value(number, value)
    return found


def _value(number: int, text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        raise _wrong(number, "the value of a feature must be a number") from None


def _wrong(number: int, rule: str) -> InvalidInput:
    # The line itself may be private: the error has only its number.
    return InvalidInput(f"line {number}: {rule}; this one has not. Correct the log.")


VW = (".vw", ".txt", ".dat")
"""Suffixes of Vowpal Wabbit logs. Their columns are called action, cost and probability."""


def log_columns(path: str, items: dict[str, Features] | None = None) -> dict[str, NumpyArray]:
    """All columns by name; of a log of Vowpal Wabbit every feature is one.

    With ``items``, actions of a dsjson log are items, and their features are put there.
    """
    suffix = Path(path).suffix.lower()
    if suffix in DSJSON:
        return _dsjson_columns(path, items)
    if suffix not in VW:
        if suffix not in (".csv", ".parquet"):
            raise InvalidInput(
                f"log must be a .csv, .parquet, .dsjson or {' or '.join(VW)} file; got {path!r}. "
                "Save it as CSV (UTF-8), or as text that Vowpal Wabbit reads."
            )
        return sample_columns(path)
    read = read_vw(path)
    columns = dict(zip(read.columns, read.contexts.T, strict=True))
    # Where rows were offered different actions, places have no meaning: ids are read.
    actions = read.actions if read.same_offers else np.asarray(read.played, dtype=object)
    logged = {"action": actions, "cost": read.costs, "probability": read.propensities}
    return _with_features(logged, columns)


def _dsjson_columns(path: str, items: dict[str, Features] | None) -> dict[str, NumpyArray]:
    read = read_dsjson(path)
    if read.left_out:
        reasons = ", ".join(f"{count:,} ({reason})" for reason, count in read.left_out.items())
        advise("lines-left-out", f"Lines of the log that are left out: {reasons}.", stacklevel=4)
    actions = read.actions if items is not None else [read.ids[each] for each in read.actions]
    if items is not None:
        items |= read.items
    logged = {
        "action": np.asarray(actions, dtype=object),
        "cost": read.costs,
        "reward": 0.0 - read.costs,
        "probability": read.propensities,
    }
    return _with_features(logged, feature_columns(read.contexts))


def _with_features(
    logged: dict[str, NumpyArray], columns: Mapping[str, NumpyArray]
) -> dict[str, NumpyArray]:
    for name in logged:
        if name in columns:
            raise InvalidInput(
                f"features must not be called {', '.join(logged)}; got {name!r}. Rename it."
            )
    return {**columns, **logged}
