"""Randomised trials as logs of decisions: the action of every row was drawn by chance.

Nothing is shipped: each trial is a .csv file that the reader has. Columns are scaled by ranges that
are declared here, not read off the rows, so that a plan on these contexts stays private.

- ``actg175``: four treatments of HIV; the loss is an event (a fall of CD4 cells, AIDS or death).
  The file is in the Python package lifelines. [Hammer et al. 1996]
- ``star``: three kinds of classes in kindergarten; the loss is one less the scaled test score.
  Data set STAR of the R package AER. [Krueger 1999]
- ``randhie``: five rates of coinsurance; the loss is a scaled logarithm of medical spending in the
  first year. Data set RandHIE of the R package sampleSelection. [Newhouse 1993]
- ``hillstrom``: no e-mail or one of two; the loss is no visit within two weeks. [Hillstrom 2008]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.files import sample_columns
from discreet.errors import InvalidInput
from discreet.types import Floats
from discreet.validate import one_of

Columns = Mapping[str, np.ndarray[Any, Any]]
Kind = tuple[float, float] | tuple[str, ...]
"""The range of a number, or the values of a category."""


@dataclass(frozen=True)
class Trial:
    """Where a trial's actions and losses are, and what its contexts are made of."""

    action: str
    actions: tuple[str, ...]
    loss: Callable[[Columns], Floats]
    contexts: Mapping[str, Kind]
    only: tuple[str, float] | None = None
    """A column and the value that the rows of the trial have there."""


def _numbers(column: np.ndarray[Any, Any]) -> Floats:
    """Numbers, NaN where there is none."""
    return np.array([_number(each) for each in column], dtype=np.float64)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _score(columns: Columns) -> Floats:
    """Reading and mathematics: 700 to 1,200 points."""
    return 1.0 - (_numbers(columns["readk"]) + _numbers(columns["mathk"]) - 700.0) / 500.0


def _spending(columns: Columns) -> Floats:
    """log(1 + dollars) over log(1 + 20,000)."""
    return np.asarray(np.log1p(_numbers(columns["meddol"])) / np.log1p(20_000.0))


TRIALS: Mapping[str, Trial] = {
    "actg175": Trial(
        "arms",
        ("0", "1", "2", "3"),
        lambda columns: _numbers(columns["cens"]),
        {
            "age": (12, 70),
            "wtkg": (40, 120),
            "hemo": (0, 1),
            "homo": (0, 1),
            "drugs": (0, 1),
            "karnof": (70, 100),
            "z30": (0, 1),
            "preanti": (0, 2500),
            "race": (0, 1),
            "gender": (0, 1),
            "symptom": (0, 1),
            "cd40": (0, 800),
            "cd80": (0, 2500),
        },
    ),
    "star": Trial(
        "stark",
        ("regular", "small", "regular+aide"),
        _score,
        {
            "gender": ("male", "female"),
            "ethnicity": ("cauc", "afam"),
            "lunchk": ("free", "non-free"),
            "schoolk": ("inner-city", "suburban", "rural", "urban"),
            "experiencek": (0, 30),
        },
    ),
    "randhie": Trial(
        "coins",
        ("0", "25", "50", "95", "100"),
        _spending,
        {
            "linc": (6, 11),
            "xage": (0, 65),
            "female": (0, 1),
            "black": (0, 1),
            "educdec": (0, 25),
            "lfam": (0, 3),
            "mhi": (0, 100),
            "disea": (0, 40),
            "physlm": (0, 1),
        },
        only=("year", 1.0),
    ),
    "hillstrom": Trial(
        "segment",
        ("No E-Mail", "Mens E-Mail", "Womens E-Mail"),
        lambda columns: 1.0 - _numbers(columns["visit"]),
        {
            "recency": (1, 12),
            "history": (0, 1500),
            "mens": (0, 1),
            "womens": (0, 1),
            "newbie": (0, 1),
            "zip_code": ("Rural", "Surburban", "Urban"),
            "channel": ("Phone", "Web", "Multichannel"),
        },
    ),
}


@dataclass(frozen=True, eq=False)
class RandomisedLog:
    """Contexts (n, d) in the unit ball, actions, losses and propensities (n,) of a trial.

    A propensity is the share of the rows that had the action.
    """

    name: str
    contexts: Floats = field(repr=False)
    actions: np.ndarray[Any, Any] = field(repr=False)
    losses: Floats = field(repr=False)
    propensities: Floats = field(repr=False)
    action_names: tuple[str, ...] = ()

    @property
    def n_actions(self) -> int:
        return len(self.action_names)

    def action_losses(self) -> Floats:
        """The mean loss of every action: the least is that of the best fixed one."""
        return np.array([self.losses[self.actions == a].mean() for a in range(self.n_actions)])


def randomised_log(name: str, path: str | Path) -> RandomisedLog:
    """A trial from its file; rows without an action or an outcome are left out.

    A number that is missing counts as the middle of its range.
    """
    trial = TRIALS[one_of("name", name, TRIALS)]
    columns = sample_columns(str(path))
    needed = (trial.action, *trial.contexts, *((trial.only[0],) if trial.only else ()))
    lacking = [each for each in needed if each not in columns]
    if lacking:
        raise InvalidInput(
            f"file must have the columns of {name}; {', '.join(lacking)} is not there. "
            "Give the file that data.md names."
        )
    played = [_word(each) for each in columns[trial.action]]
    losses = trial.loss(columns)
    known = np.isfinite(losses) & np.array([each in trial.actions for each in played])
    if trial.only is not None:
        known &= _numbers(columns[trial.only[0]]) == trial.only[1]
    places = {each: place for place, each in enumerate(trial.actions)}
    actions = np.array([places.get(each, 0) for each in played])[known]
    mapped = [_scaled(columns[title], kind) for title, kind in trial.contexts.items()]
    contexts = np.hstack(mapped)[known]
    shares = np.bincount(actions, minlength=len(places)) / max(1, len(actions))
    return RandomisedLog(
        name,
        contexts / contexts.shape[1] ** 0.5,
        actions,
        np.clip(losses[known], 0.0, 1.0),
        shares[actions],
        trial.actions,
    )


def _word(value: Any) -> str:
    """``0`` for 0.0: files write whole numbers in both ways."""
    number = _number(value)
    return f"{number:g}" if np.isfinite(number) else str(value)


def _scaled(column: np.ndarray[Any, Any], kind: Kind) -> Floats:
    """A number within [−1, 1], or an indicator for each value of a category: (n, k)."""
    if isinstance(kind[0], str):
        return np.array([[float(str(each) == value) for value in kind] for each in column])
    low, high = float(kind[0]), float(kind[1])
    places = (2.0 * _numbers(column) - low - high) / (high - low)
    return np.clip(np.nan_to_num(places, nan=0.0), -1.0, 1.0)[:, None]
