"""Randomised trials as logs of decisions: the action of every row was drawn by chance.

The package contains no trial: docs/data.md names the files. Declared ranges scale columns and
outcomes. They do not depend on the rows, so a plan on these contexts stays private. [Hammer et al.
1996; Krueger 1999; Newhouse 1993; Hillstrom 2008; Gerber et al. 2008]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from discreet.data.dataset import number
from discreet.data.files import sample_columns
from discreet.design.outcome import UNIT_LOSS, Loss, Outcome, Reward
from discreet.errors import InvalidInput
from discreet.text import read_toml
from discreet.types import Floats, JsonObject, NumpyArray
from discreet.validate import one_of

Columns = Mapping[str, NumpyArray]
HOUSEHOLD = "household"
"""Users that ``_households`` numbers."""


@dataclass(frozen=True)
class Trial:
    """Columns of a trial, as ``trials.toml`` explains them."""

    action: str
    actions: tuple[str, ...]
    outcomes: Mapping[str, JsonObject]
    contexts: Mapping[str, list[float] | list[str]]
    only: Mapping[str, float] = field(default_factory=dict)
    users: str | None = None
    """Column of the person of each row, or ``HOUSEHOLD``, where several rows share one."""


def _trials() -> dict[str, Trial]:
    known = read_toml(Path(__file__).with_name("trials.toml"), "trials")
    known["randhie_years"] = {**known["randhie"], "only": {}, "users": "zper"}
    return {
        name: Trial(**{**each, "actions": tuple(each["actions"])}) for name, each in known.items()
    }


TRIALS = _trials()


@dataclass(frozen=True, eq=False)
class RandomisedLog:
    """Contexts (n, d) in the unit ball, actions, losses and propensities (n,) of a trial.

    A propensity is the share of the rows that had the action. ``outcome`` is the declared range of
    what was measured. ``users`` (n,) numbers the people or households that have several rows; None
    where every row is another person.
    """

    name: str
    contexts: Floats = field(repr=False)
    actions: NumpyArray = field(repr=False)
    losses: Floats = field(repr=False)
    propensities: Floats = field(repr=False)
    action_names: tuple[str, ...] = ()
    outcome: Outcome = UNIT_LOSS
    users: NumpyArray | None = field(default=None, repr=False)

    @property
    def n_actions(self) -> int:
        return len(self.action_names)

    def action_losses(self) -> Floats:
        """Return the mean loss of every action; the least is that of the best fixed one."""
        return np.array([self.losses[self.actions == a].mean() for a in range(self.n_actions)])


def randomised_log(name: str, path: str | Path, outcome: str | None = None) -> RandomisedLog:
    """Read a trial from its file, without rows that lack an action or an outcome.

    A missing number of a context counts as the middle of its range.

    Args:
        name: A key of ``TRIALS``.
        path: A .csv or .parquet file; docs/data.md names the sources.
        outcome: A measured outcome, such as "spend" of ``hillstrom``; by default the first.

    Returns:
        A ``RandomisedLog``, whose losses are in [0, 1] by the declared range of the outcome.

    Raises:
        InvalidInput: The name or the outcome is unknown, or the file lacks columns.
    """
    trial = TRIALS[one_of("name", name, TRIALS)]
    chosen = next(iter(trial.outcomes)) if outcome is None else outcome
    facts = trial.outcomes[one_of("outcome", chosen, trial.outcomes)]
    columns = sample_columns(str(path))
    households = ("cluster", "hh_size") if trial.users == HOUSEHOLD else ()
    own = () if households or trial.users is None else (trial.users,)
    for title in (trial.action, *facts["columns"], *trial.only, *trial.contexts, *households, *own):
        if title not in columns:
            raise InvalidInput(
                f"file must have the columns of {name}; {title} is not there. "
                "Give the file that docs/data.md names."
            )
    numbers = {each: number for number, each in enumerate(trial.actions)}
    played = np.array([numbers.get(_word(each), -1) for each in columns[trial.action]])
    measured, declared = _measured(columns, facts)
    known = np.isfinite(measured) & (played >= 0)
    for title, value in trial.only.items():
        known &= _numbers(columns[title]) == value
    actions = played[known]
    scaled = [_scaled(columns[title], kind) for title, kind in trial.contexts.items()]
    contexts = np.hstack(scaled)[known]
    shares = np.bincount(actions, minlength=len(numbers)) / max(1, len(actions))
    users = None
    if trial.users is not None:
        people = _households(columns) if households else columns[trial.users]
        users = np.unique(people[known], return_inverse=True)[1]
    contexts = contexts / contexts.shape[1] ** 0.5
    losses = declared.losses_of(measured[known], (len(actions),))
    own_facts = trial.actions, declared, users
    return RandomisedLog(name, contexts, actions, losses, shares[actions], *own_facts)


def _measured(columns: Columns, facts: JsonObject) -> tuple[Floats, Outcome]:
    """Return the outcome of every row, and its declared range."""
    first, *others = (_numbers(columns[title]) for title in facts["columns"])
    measured = sum(others, first)
    low, high, clip = float(facts["low"]), float(facts["high"]), facts.get("clip", False)
    if facts.get("log"):
        measured, high = np.log1p(measured), np.log1p(high)
    kind = Loss if facts["kind"] == "Loss" else Reward
    return measured, kind(low, high, clip=clip)


def _numbers(column: NumpyArray) -> Floats:
    """Numbers, NaN where there is none."""
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    found = [number(str(each)) for each in column]
    return np.array([np.nan if each is None else each for each in found], dtype=np.float64)


def _households(columns: Columns) -> NumpyArray:
    """Numbers of the households, whose ``hh_size`` members are in consecutive rows of the file."""
    size = _numbers(columns["hh_size"])
    same = np.ones(len(size), dtype=bool)
    for title in ("cluster", "hh_size", "treatment"):
        same[1:] &= columns[title][1:] == columns[title][:-1]
    same[0] = False
    rows = np.arange(len(size))
    place = rows - np.maximum.accumulate(np.where(same, 0, rows))
    household = np.cumsum(place % size == 0) - 1
    if not (np.bincount(household)[household] == size).all():
        raise InvalidInput(
            "file must have the members of a household in consecutive rows; some households have "
            "another number of rows than hh_size. Give the file in its original order."
        )
    return household


def _word(value: object) -> str:
    """``0`` for 0.0: files write whole numbers in both ways."""
    found = number(str(value))
    return str(value) if found is None or not np.isfinite(found) else f"{found:g}"


def _scaled(column: NumpyArray, kind: list[float] | list[str]) -> Floats:
    """A number within [−1, 1], or an indicator for each value of a category: (n, k)."""
    if isinstance(kind[0], str):
        return np.stack([column.astype(str) == value for value in kind], axis=1).astype(float)
    low, high = float(kind[0]), float(kind[1])
    places = (2.0 * _numbers(column) - low - high) / (high - low)
    return np.clip(np.nan_to_num(places, nan=0.0), -1.0, 1.0)[:, None]
