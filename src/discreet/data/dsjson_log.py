"""Logs in dsjson, the JSON lines of Vowpal Wabbit's decision service and of Azure Personalizer.

A line is one event: ``c`` has the features of the context and in ``_multi`` those of the actions,
``_label_Action`` counts the action that was played from 1, ``_label_cost`` is minus its reward, and
``_label_probability`` its propensity.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.text import read_text
from discreet.types import Floats, NumpyArray

DSJSON = (".dsjson", ".jsonl", ".ndjson", ".json")
"""Suffixes of dsjson logs. Their columns are called action, cost, reward and probability."""
PLAIN = ("FromUrl", "j")
"""Namespaces in which Personalizer wraps the features of a request; names are without them."""
Features = dict[str, Any]


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
        return [declared_features(schema, each) for each in self.contexts]

    def items_for(self, schema: Schema) -> dict[str, Features]:
        """Return items with the features that a schema declares: ``Catalogue(schema, items)``."""
        return {name: declared_features(schema, each) for name, each in self.items.items()}


class _Event(NamedTuple):
    """PRIVATE: one decision as it is read."""

    context: Features
    offer: tuple[str, ...]
    place: int
    cost: float
    propensity: float
    drop: float
    observed: bool

    def __repr__(self) -> str:
        return "_Event(private)"


def read_dsjson(path: str | Path, *, seed: int = 0) -> DsjsonLog:
    """Read a log of single decisions.

    Rewards without a decision, decisions that were not activated and lines without a label are left
    out. Where lines were dropped with different probabilities (``pdrop``), rows are thinned to the
    largest of them, by draws from ``seed``: what is left is an even sample of all decisions.
    """
    items, skipped, events = _Items(), Counter[str](), list[_Event]()
    for number, line in enumerate(read_text(path, "log").splitlines(), start=1):
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
    kept = [1.0 - each.drop for each in events]
    if kept and min(kept) < max(kept):
        draws = np.random.default_rng(seed).random(len(kept)) * np.asarray(kept)
        thinned = [each for each, u in zip(events, draws, strict=True) if u < min(kept)]
        skipped["thinned"] = len(events) - len(thinned)
        events = thinned
    if not events:
        raise InvalidInput(
            f"log must hold labelled decisions in dsjson; {path} holds none. Export the log with "
            "its labels."
        )
    contexts, offers, places, costs, chances, _, observed = zip(*events, strict=True)
    return DsjsonLog(
        contexts,
        [offer[place] for offer, place in zip(offers, places, strict=True)],
        np.asarray(costs),
        np.asarray(chances),
        np.asarray(observed),
        offers,
        items.features,
        items.ids,
        dict(skipped),
    )


def flat_features(given: Any, plain: Sequence[str] = ()) -> Features:
    """Return nested features by names with dots; a list of objects is one object.

    Names that begin with ``_`` and nulls are left out, numbers of a list are called by their
    places, and words of a list become truth values.

    >>> flat_features([{"age": 31}, {"device": {"mobile": True, "tags": ["new", "red"]}}])
    {'age': 31, 'device.mobile': True, 'device.tags.new': True, 'device.tags.red': True}
    """
    found: Features = {}
    _flatten(given, "", found, plain)
    return found


def _flatten(given: Any, before: str, found: Features, plain: Sequence[str]) -> None:
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name[:1] == "_" or value is None:
                continue
            if isinstance(value, (dict, list)):
                _flatten(value, before if name in plain else f"{before}{name}.", found, plain)
            elif found.setdefault(before + name, value) is not value:
                raise InvalidInput(
                    f"feature {before + name!r} must occur once; it occurs twice. Rename one."
                )
        return
    for place, value in enumerate(given):
        if isinstance(value, Mapping):
            _flatten(value, before, found, plain)
        elif isinstance(value, list):
            _flatten(value, f"{before}{place}.", found, plain)
        elif isinstance(value, str):
            found[before + value] = True
        elif value is not None:
            found[f"{before}{place}"] = value


def declared_features(schema: Schema, given: Features) -> Features:
    """Return the features that a schema declares; None where one is missing."""
    return {each.name: given.get(each.name) for each in schema.fields}


def feature_columns(rows: Iterable[Features]) -> dict[str, NumpyArray]:
    """Return columns of numbers with NaN, or of words with None, where a feature is missing; truth
    values are 1 and 0.

    >>> feature_columns([{"age": 3, "new": True}, {"age": 4.5, "device": "phone"}])["new"]
    array([ 1., nan])
    """
    given = [*rows]
    names = dict.fromkeys(name for row in given for name in row)
    return {name: _column([row.get(name) for row in given]) for name in names}


def _column(values: list[Any]) -> NumpyArray:
    if not any(isinstance(value, str) for value in values):
        return np.asarray([np.nan if value is None else float(value) for value in values])
    words = [value if value is None or isinstance(value, str) else str(value) for value in values]
    return np.asarray(words, dtype=object)


class _Items:
    """The distinct items of a log: names by id and features."""

    def __init__(self) -> None:
        self.features: dict[str, Features] = {}
        self.ids: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._counts = Counter[str]()

    def name(self, given: Mapping[str, Any]) -> str:
        written = json.dumps(given)
        found = self._known.get(written)
        if found is None:
            features = flat_features({key: given[key] for key in given if key != "i"}, PLAIN)
            id = given.get("_tag") or (given.get("i") or {}).get("id")
            id = id or " ".join(f"{key}={value}" for key, value in features.items())
            self._counts[id] += 1
            count = self._counts[id]
            found = self._known[written] = id if count == 1 else f"{id} ({count})"
            self.features[found], self.ids[found] = features, id
        return found


def _event(line: Mapping[str, Any], items: _Items) -> _Event | str:
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
    propensity = line.get("_label_probability")
    if propensity is None:
        propensity = line["p"][line["a"].index(place + 1)]
    cost, drop = float(line["_label_cost"]), float(line.get("pdrop") or 0.0)
    offer = tuple(map(items.name, line["c"]["_multi"]))
    if not 0 <= place < len(offer) or not 0.0 < propensity <= 1.0 or not 0.0 <= drop < 1.0:
        raise ValueError
    observed = outcomes is None or any("v" in each for each in outcomes)
    return _Event(flat_features(line["c"], PLAIN), offer, place, cost, propensity, drop, observed)
