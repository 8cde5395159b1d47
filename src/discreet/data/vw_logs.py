"""Logs of Vowpal Wabbit, read and written: ``cb`` (one line each) and ``cb_adf`` (blocks of lines).

A label is ``action:cost:probability``. A ``cb`` line counts actions from 1. A ``cb_adf`` block has
a ``shared`` line for the context and one line per action; the label is on the line of the action
that was played.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.reading import unreadable
from discreet.errors import InvalidInput
from discreet.types import Floats


@dataclass(frozen=True, eq=False)
class VwLog:
    """Logged decisions: contexts (n, d) with the names of their columns, and what was played.

    ``actions`` count from 0; ``costs`` and ``propensities`` are as logged; ``n_actions`` is the
    largest number seen. Features that a line does not name are 0.
    """

    columns: tuple[str, ...]
    contexts: Floats = field(repr=False)
    actions: Floats = field(repr=False)
    costs: Floats = field(repr=False)
    propensities: Floats = field(repr=False)
    n_actions: int


def read_vw(path: str | Path) -> VwLog:
    """The decisions of a log; lines without a label (nothing was played) are left out."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            blocks = list(_blocks(file))
    except OSError as error:
        unreadable(Path(path), error)
    except UnicodeDecodeError:
        raise InvalidInput(f"log must be UTF-8 text; {path} is not. Save it as UTF-8.") from None
    rows: list[dict[str, float]] = []
    labels: list[tuple[int, float, float]] = []
    seen, n_actions = {}, 0
    for number, lines in blocks:
        if _is_shared(lines[0]) or len(lines) > 1:
            features, label, actions = _adf(number, lines)
        else:
            features, label, actions = _cb(number, lines[0])
        n_actions = max(n_actions, actions)
        if label is None:
            continue
        seen.update(dict.fromkeys(features))
        rows.append(features)
        labels.append(label)
    if not rows:
        raise InvalidInput(
            f"log must hold labelled lines, action:cost:probability; {path} holds none. "
            "Write it with --cb or --cb_adf labels."
        )
    places = {name: place for place, name in enumerate(seen)}
    contexts = np.zeros((len(rows), len(places)))
    for row, features in zip(contexts, rows, strict=True):
        row[[places[name] for name in features]] = list(features.values())
    played, costs, chances = (np.asarray(each) for each in zip(*labels, strict=True))
    return VwLog(tuple(places), contexts, played.astype(np.int64), costs, chances, n_actions)


def vw_lines(logs: VwLog, *, adf: bool = False) -> Iterator[str]:
    """The log as text, a line (or with ``adf`` a block) per decision; zeros are left out."""
    for name in logs.columns:
        if not name or set(name) & set(" |:\t\n"):
            raise InvalidInput(
                f"columns must be words without blanks, bars and colons to be written; got "
                f"{name!r}. Rename it."
            )
    for row, action, cost, chance in zip(
        logs.contexts, logs.actions, logs.costs, logs.propensities, strict=True
    ):
        told = " ".join(
            f"{name}:{float(value)!r}"
            for name, value in zip(logs.columns, row, strict=True)
            if value
        )
        label = f"{float(cost)!r}:{float(chance)!r}"
        if not adf:
            yield f"{int(action) + 1}:{label} |x {told}\n"
            continue
        yield f"shared |x {told}\n"
        for place in range(logs.n_actions):
            yield f"{f'0:{label} ' if place == action else ''}|a action_{place}\n"
        yield "\n"


def _blocks(file: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Examples with the number of their first line: blank lines and ``shared`` lines separate."""
    block: list[str] = []
    first, adf = 1, False
    for number, text in enumerate(file, start=1):
        line = text.rstrip("\r\n")
        if not line.strip():
            if block:
                yield first, block
            block, adf = [], False
            continue
        if block and (not adf or _is_shared(line)):
            yield first, block
            block = []
        if not block:
            first, adf = number, _is_shared(line)
        block.append(line)
    if block:
        yield first, block


def _is_shared(line: str) -> bool:
    return line.split("|", 1)[0].split()[:1] == ["shared"]


def _cb(number: int, line: str) -> tuple[dict[str, float], tuple[int, float, float] | None, int]:
    label = _label(number, line)
    if label is None:
        return {}, None, 0
    if label[0] < 1:
        raise _wrong(number, "an action must be counted from 1")
    return _features(number, line), (label[0] - 1, *label[1:]), label[0]


def _adf(
    number: int, lines: list[str]
) -> tuple[dict[str, float], tuple[int, float, float] | None, int]:
    actions = lines[1:]
    labels = [_label(number + 1 + place, line) for place, line in enumerate(actions)]
    played = [place for place, label in enumerate(labels) if label is not None]
    if len(played) > 1:
        raise _wrong(number, "a block must have one label, on the line of the action played")
    if not played:
        return {}, None, len(actions)
    found: Any = labels[played[0]]
    return _features(number, lines[0]), (played[0], *found[1:]), len(actions)


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


def _features(number: int, line: str) -> dict[str, float]:
    """Names and values; names in a namespace are written ``space^name``."""
    found: dict[str, float] = {}
    for part in line.split("|")[1:]:
        words = part.split()
        space, scale = "", 1.0
        if part[:1].strip():  # a namespace touches its bar
            space, _, scaled = words.pop(0).partition(":")
            scale = _value(number, scaled)
        for word in words:
            name, _, value = word.partition(":")
            key = f"{space}^{name}" if space not in ("", "x") else name
            found[key] = found.get(key, 0.0) + scale * _value(number, value)
    return found


def _value(number: int, text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        raise _wrong(number, "the value of a feature must be a number") from None


def _wrong(number: int, rule: str) -> InvalidInput:
    # The line itself may be private: only its number is told.
    return InvalidInput(f"line {number}: {rule}; this one has not. Correct the log.")
