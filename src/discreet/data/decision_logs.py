"""Logs of decisions, read: ``cb`` and ``cb_adf`` of Vowpal Wabbit, dsjson, .csv and .parquet.

A label is ``action:cost:probability``. A ``cb`` line counts actions from 1. A ``cb_adf`` block has
one line per action, with its features, and before them a ``shared`` line for the context; the
label is on the line of the action that was played. ``adapters/vowpal_log.py`` writes them.

A line of dsjson, of Vowpal Wabbit's decision service and of Azure Personalizer, is one event: ``c``
has the features of the context and in ``_multi`` those of the actions, ``_label_Action`` counts the
action that was played from 1, ``_label_cost`` is minus its reward, and ``_label_probability`` its
propensity.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data import files
from discreet.data.files import Features
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.text import advise
from discreet.types import Floats, NumpyArray

CONTEXT, ACTION = "x", "a"
"""The namespaces in which features are written."""
VW = (".vw", ".txt", ".dat")
"""Suffixes of Vowpal Wabbit logs. Their columns are called action, cost and probability."""
DSJSON = (".dsjson", ".jsonl", ".ndjson", ".json")
"""Suffixes of dsjson logs. Their columns are called action, cost, reward and probability."""
PLAIN = ("FromUrl", "j")
"""Namespaces in which Personalizer wraps the features of a request; names are without them."""


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


def read_vw(path: str | Path, *, tags: bool = False) -> VwLog:
    """Return the decisions of a log; lines without a label (nothing was played) are left out.

    With ``tags`` the tag of an action's line is its id. Otherwise its features are, as they are
    written, and tags are not read.
    """
    lines = [*enumerate(_log_text(path).splitlines(), start=1)]
    gaps = any(not line.strip() for _, line in lines)
    zero = any(line.lstrip().startswith("0:") for _, line in lines)
    adf = any(_is_shared(line) for _, line in lines) or (gaps and zero)
    items: dict[str, dict[str, float]] = {}
    contexts, labels, offers, n_actions = [], list[tuple[int, float, float]](), [], 0
    for block in _blocks(lines) if adf else [[each] for each in lines if each[1].strip()]:
        shared = _is_shared(block[0][1])
        actions = block[1:] if shared else block
        found = [
            (place, label)
            for place, each in enumerate(actions)
            if (label := _label(*each)) is not None
        ]
        number, line = block[0]
        if len(found) > 1:
            raise _wrong(number, "a block must have one label, on the line of the action played")
        count = len(actions) if adf else sum(label[0] for _, label in found)
        n_actions = max(n_actions, count)
        for place, (action, cost, chance) in found:
            if not adf and action < 1:
                raise _wrong(number, "an action must be counted from 1")
            labels.append((place if adf else action - 1, cost, chance))
            contexts.append(_features(number, line) if shared or not adf else {})
            if adf:
                offers.append(tuple(_item(*each, items, tags) for each in actions))
                if len(set(offers[-1])) < len(actions):
                    rule = "a block must have different actions, by their features or tags"
                    raise _wrong(number, rule)
    if not labels:
        raise InvalidInput(
            f"log must hold labelled lines, action:cost:probability; {path} holds none. "
            "Write it with --cb or --cb_adf labels."
        )
    columns = dict.fromkeys(name for row in contexts for name in row)
    numbers = np.array([[row.get(name, 0.0) for name in columns] for row in contexts], dtype=float)
    played, costs, chances = map(np.asarray, zip(*labels, strict=True))
    log = VwLog(tuple(columns), numbers, played.astype(np.int64), costs, chances, n_actions)
    return replace(log, offers=tuple(offers), items=items) if adf else log


def _log_text(path: str | Path) -> str:
    with files.readable(path, "UTF-8 text", "Save it as UTF-8.", UnicodeDecodeError, what="log"):
        return Path(path).read_text(encoding="utf-8")


def _blocks(lines: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Yield blocks of numbered lines, which blank lines and ``shared`` lines separate."""
    block: list[tuple[int, str]] = []
    for number, line in [*lines, (0, "")]:
        if block and (not line.strip() or _is_shared(line)):
            yield block
            block = []
        if line.strip():
            block.append((number, line))


def _is_shared(line: str) -> bool:
    return line.split("|", 1)[0].split()[:1] == ["shared"]


def _item(number: int, line: str, items: dict[str, dict[str, float]], tags: bool) -> str:
    """Return the id of the action of a line, and add its features to the items."""
    features = _features(number, line, ACTION)
    name = " ".join(key if value == 1.0 else f"{key}:{value!r}" for key, value in features.items())
    if tags:  # a tag touches the first bar, or follows a quote
        before = line.split("|", 1)[0]
        last = ["", *before.split()][-1]
        touches = before == before.rstrip() and ":" not in last and last != "shared"
        name = last.removeprefix("'") if last.startswith("'") or touches else ""
    if not name:
        raise _wrong(number, "a line of an action must have features, or tags that are read")
    if items.setdefault(name, features) != features:
        raise _wrong(number, "an action must have the same features wherever its tag is")
    return name


def _label(number: int, line: str) -> tuple[int, float, float] | None:
    """Return ``action:cost:probability`` before the first bar; None if there is none."""
    words = [word for word in line.split("|", 1)[0].split() if ":" in word]
    if "|" not in line:
        raise _wrong(number, "a line must have a bar before its features")
    if not words:
        return None
    try:
        action, cost, chance = words[0].split(":")[:3]
        label = int(action), float(cost), float(chance)
    except ValueError:
        rule = "a label must be action:cost:probability, with a probability"
        raise _wrong(number, rule) from None
    if len(words) > 1:
        raise _wrong(number, "a line must have one label, of the action that was played")
    return label


def _features(number: int, line: str, own: str = CONTEXT) -> dict[str, float]:
    """Return values by name; names in a namespace other than ``own`` become ``space^name``."""
    found: dict[str, float] = {}
    try:
        for part in line.split("|")[1:]:
            words = part.split()
            space, scale = "", 1.0
            if part[:1].strip():  # a namespace touches its bar
                space, _, scaled = words.pop(0).partition(":")
                scale = float(scaled or 1.0)
            for word in words:
                name, _, value = word.partition(":")
                key = f"{space}^{name}" if space not in ("", own) else name
                found[key] = found.get(key, 0.0) + scale * float(value or 1.0)
    except ValueError:
        raise _wrong(number, "the value of a feature must be a number") from None
    return found


def _wrong(number: int, rule: str) -> InvalidInput:
    # The line itself may be private: the error has only its number.
    return InvalidInput(f"line {number}: {rule}; this one has not. Correct the log.")


@dataclass(frozen=True, eq=False)
class DsjsonLog:
    """PRIVATE: logged decisions. ``contexts`` are features by name, as each line has them.

    ``actions`` are names of items, ``offers`` the items that each row was offered, and ``items``
    their features. An item is called by its id; the same id with other features is another item,
    ``id (2)``, and ``ids`` has the id of each. ``observed`` is False where the log says that no
    reward came; ``costs`` has the default of the logging service there. ``left_out`` counts the
    lines that are no decisions, by reason.
    """

    contexts: Sequence[Features] = field(repr=False)
    actions: Sequence[str] = field(repr=False)
    costs: Floats = field(repr=False)
    propensities: Floats = field(repr=False)
    observed: NumpyArray = field(repr=False)
    offers: Sequence[tuple[str, ...]] = field(repr=False)
    items: Mapping[str, Features] = field(repr=False)
    ids: Mapping[str, str] = field(repr=False)
    left_out: Mapping[str, int]

    def contexts_for(self, schema: Schema) -> list[Features]:
        """Return contexts with the features that a schema declares."""
        return [files.declared_features(schema, each) for each in self.contexts]

    def items_for(self, schema: Schema) -> dict[str, Features]:
        """Return items with the features that a schema declares: ``Catalogue(schema, items)``."""
        return {name: files.declared_features(schema, each) for name, each in self.items.items()}


def read_dsjson(path: str | Path, *, seed: int = 0) -> DsjsonLog:
    """Read a log of single decisions.

    Rewards without a decision, decisions that were not activated and lines without a label are left
    out. Where lines were dropped with different probabilities (``pdrop``), rows are thinned to the
    largest of them, by draws from ``seed``: what is left is an even sample of all decisions.
    """
    items, skipped, events = _Items(), Counter[str](), list[tuple[Any, ...]]()
    for number, line in enumerate(_log_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found = _event(json.loads(line), items)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, InvalidInput):
            # The line itself may be private: the error has only its number.
            raise InvalidInput(
                f"line {number}: an event must be a dsjson object with c, a label and a "
                "probability; this line is none. Correct the log, or leave the line out."
            ) from None
        if isinstance(found, str):
            skipped[found] += 1
        else:
            events.append(found)
    rates = np.asarray([1.0 - drop for drop, *_ in events])
    if events and rates.min() < rates.max():
        draws = np.random.default_rng(seed).random(len(rates)) * rates
        thinned = [each for each, u in zip(events, draws, strict=True) if u < rates.min()]
        skipped["thinned"] = len(events) - len(thinned)
        events = thinned
    if not events:
        raise InvalidInput(
            f"log must hold labelled decisions in dsjson; {path} holds none. Export the log with "
            "its labels."
        )
    _, contexts, actions, *columns, offers = zip(*events, strict=True)
    costs, chances, observed = map(np.asarray, columns)
    known = offers, items.features, items.ids, dict(skipped)
    return DsjsonLog(contexts, list(actions), costs, chances, observed, *known)


class _Items:
    """The distinct items of a log: names by id and features."""

    def __init__(self) -> None:
        self.features: dict[str, Features] = {}
        self.ids: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._counts = Counter[str]()

    def name(self, given: Mapping[str, Any]) -> str:
        written = json.dumps(given)
        if written not in self._known:
            features = files.flat_features({key: given[key] for key in given if key != "i"}, PLAIN)
            id = given.get("_tag") or (given.get("i") or {}).get("id")
            id = id or " ".join(f"{key}={value}" for key, value in features.items())
            self._counts[id] += 1
            found = id if self._counts[id] == 1 else f"{id} ({self._counts[id]})"
            self._known[written], self.features[found], self.ids[found] = found, features, id
        return self._known[written]


def _event(line: Mapping[str, Any], items: _Items) -> tuple[Any, ...] | str:
    """Return the decision of a line, or the reason why it is left out."""
    if "c" not in line.keys():  # noqa: SIM118, since a list is refused
        return "reward without a decision"
    if "_outcomes" in line or "_slots" in line["c"]:
        return "several slots"
    outcomes = line.get("o")
    activated = any(each.get("ActionTaken") for each in outcomes or ())
    if line.get("_skipLearn") or (line.get("DeferredAction") and not activated):
        return "not activated"
    if line.get("_label_cost") is None:
        return "no label"
    place = line.get("_labelIndex")
    if place is None:
        place = (line.get("_label_Action") or line["a"][0]) - 1
    chance = line.get("_label_probability")
    if chance is None:
        chance = line["p"][line["a"].index(place + 1)]
    cost, drop = float(line["_label_cost"]), float(line.get("pdrop") or 0.0)
    offer = tuple(map(items.name, line["c"]["_multi"]))
    if not 0 <= place < len(offer) or not 0.0 < chance <= 1.0 or not 0.0 <= drop < 1.0:
        raise ValueError
    observed = outcomes is None or any("v" in each for each in outcomes)
    context = files.flat_features(line["c"], PLAIN)
    return drop, context, offer[place], cost, chance, observed, offer


def log_columns(path: str, items: dict[str, Features] | None = None) -> dict[str, NumpyArray]:
    """Return all columns by name; of a log of Vowpal Wabbit every feature is one.

    With ``items``, actions of a dsjson log are items, and their features are added there.
    """
    suffix = Path(path).suffix.lower()
    if suffix in (".csv", ".parquet"):
        return files.sample_columns(path)
    if suffix in DSJSON:
        logged, columns = _dsjson_columns(read_dsjson(path), items)
    elif suffix in VW:
        read = read_vw(path)
        columns = dict(zip(read.columns, read.contexts.T, strict=True))
        # Where rows were offered different actions, places have no meaning: ids are read.
        actions = read.actions if read.same_offers else np.asarray(read.played, dtype=object)
        logged = {"action": actions, "cost": read.costs, "probability": read.propensities}
    else:
        raise InvalidInput(
            f"log must be a .csv, .parquet, .dsjson or {' or '.join(VW)} file; got {path!r}. "
            "Save it as CSV (UTF-8), or as text that Vowpal Wabbit reads."
        )
    for name in logged:
        if name in columns:
            raise InvalidInput(
                f"features must not be called {', '.join(logged)}; got {name!r}. Rename it."
            )
    return {**columns, **logged}


def _dsjson_columns(
    read: DsjsonLog, items: dict[str, Features] | None
) -> tuple[dict[str, NumpyArray], dict[str, NumpyArray]]:
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
    return logged, files.feature_columns(read.contexts)
