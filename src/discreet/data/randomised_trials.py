"""Randomised trials as logs of decisions: the action of every row was drawn by chance.

The package contains no trial: each is a .csv or .parquet file that the reader has. Declared ranges
scale columns and outcomes. They do not depend on the rows, so a plan on these contexts stays
private.

- ``actg175``: four treatments of HIV; the loss is an event (a fall of CD4 cells, AIDS or death).
  The file is in the Python package lifelines. [Hammer et al. 1996]
- ``star``: three kinds of classes in kindergarten; the reward is the test score.
  Data set STAR of the R package AER. [Krueger 1999]
- ``randhie``: five rates of coinsurance; the loss is the logarithm of medical spending in the
  first year. Data set RandHIE of the R package sampleSelection. [Newhouse 1993]
  ``randhie_years`` has all years, and several rows per person.
- ``hillstrom``: no e-mail or one of two; the reward is a visit, a conversion or the spend within
  two weeks. [Hillstrom 2008]
- ``social_pressure``: no postcard or one of four; the reward is a vote. Several voters make a
  household. Data set shaming of the R package primer.data. [Gerber et al. 2008]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from discreet.data.files import sample_columns
from discreet.design.outcome import UNIT_LOSS, Loss, Outcome, Reward
from discreet.errors import InvalidInput
from discreet.types import Floats, NumpyArray
from discreet.validate import one_of

Columns = Mapping[str, NumpyArray]
Values = str | Callable[[Columns], NumpyArray]
"""The name of a column, or a function of columns."""
Kind = tuple[float, float] | tuple[str, ...]
"""The range of a number, or the values of a category."""


@dataclass(frozen=True)
class Trial:
    """Columns of a trial: its actions, outcomes, contexts and users."""

    action: str
    actions: tuple[str, ...]
    outcomes: Mapping[str, tuple[Values, Outcome]]
    """Values and declared range of each outcome; the first is the default."""
    contexts: Mapping[str, Kind]
    only: tuple[str, float] | None = None
    """A column and the value that the rows of the trial have there."""
    users: Values | None = None
    """The person or the household of each row, where several rows share one."""


def _numbers(column: NumpyArray) -> Floats:
    """Numbers, NaN where there is none."""
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    return np.array([_number(each) for each in column], dtype=np.float64)


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _score(columns: Columns) -> Floats:
    """Sum of the points in reading and mathematics."""
    return _numbers(columns["readk"]) + _numbers(columns["mathk"])


def _log_spending(columns: Columns) -> Floats:
    """Logarithm of one plus the dollars."""
    return np.asarray(np.log1p(_numbers(columns["meddol"])))


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


TRIALS: dict[str, Trial] = {
    "actg175": Trial(
        "arms",
        ("0", "1", "2", "3"),
        {"event": ("cens", Loss(0, 1))},
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
        {"score": (_score, Reward(700, 1200, clip=True))},
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
        {"log_spending": (_log_spending, Loss(0, np.log1p(20_000.0), clip=True))},
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
        {
            "visit": ("visit", Reward(0, 1)),
            "conversion": ("conversion", Reward(0, 1)),
            "spend": ("spend", Reward(0, 500, clip=True)),
        },
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
    "social_pressure": Trial(
        "treatment",
        ("No Postcard", "Civic Duty", "Hawthorne", "Self", "Neighbors"),
        {"voted": ("primary_06", Reward(0, 1))},
        {
            "sex": ("Female", "Male"),
            "age": (18, 90),
            "primary_00": (0, 1),
            "general_00": (0, 1),
            "primary_02": (0, 1),
            "general_02": (0, 1),
            "primary_04": (0, 1),
            "hh_size": (1, 8),
        },
        users=_households,
    ),
}
TRIALS["randhie_years"] = replace(TRIALS["randhie"], only=None, users="zper")


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
        """Mean loss of every action; the least is that of the best fixed one."""
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
    values, declared = trial.outcomes[one_of("outcome", chosen, trial.outcomes)]
    columns = _WithNames(name, sample_columns(str(path)))
    played = [_word(each) for each in columns[trial.action]]
    measured = _numbers(_values(columns, values))
    known = np.isfinite(measured) & np.array([each in trial.actions for each in played])
    if trial.only is not None:
        known &= _numbers(columns[trial.only[0]]) == trial.only[1]
    places = {each: place for place, each in enumerate(trial.actions)}
    actions = np.array([places.get(each, 0) for each in played])[known]
    scaled = [_scaled(columns[title], kind) for title, kind in trial.contexts.items()]
    contexts = np.hstack(scaled)[known]
    shares = np.bincount(actions, minlength=len(places)) / max(1, len(actions))
    users = None
    if trial.users is not None:
        users = np.unique(_values(columns, trial.users)[known], return_inverse=True)[1]
    return RandomisedLog(
        name,
        contexts / contexts.shape[1] ** 0.5,
        actions,
        declared.losses_of(measured[known], (len(actions),)),
        shares[actions],
        trial.actions,
        declared,
        users,
    )


class _WithNames(dict[str, NumpyArray]):
    """Columns of a file, with a refusal that names the trial where one is missing."""

    def __init__(self, name: str, columns: Columns) -> None:
        super().__init__(columns)
        self._name = name

    def __missing__(self, title: str) -> NumpyArray:
        raise InvalidInput(
            f"file must have the columns of {self._name}; {title} is not there. "
            "Give the file that docs/data.md names."
        )


def _values(columns: Columns, values: Values) -> NumpyArray:
    return columns[values] if isinstance(values, str) else values(columns)


def _word(value: object) -> str:
    """``0`` for 0.0: files write whole numbers in both ways."""
    number = _number(value)
    return f"{number:g}" if np.isfinite(number) else str(value)


def _scaled(column: NumpyArray, kind: Kind) -> Floats:
    """A number within [−1, 1], or an indicator for each value of a category: (n, k)."""
    if isinstance(kind[0], str):
        return np.stack([column.astype(str) == value for value in kind], axis=1).astype(float)
    low, high = float(kind[0]), float(kind[1])
    places = (2.0 * _numbers(column) - low - high) / (high - low)
    return np.clip(np.nan_to_num(places, nan=0.0), -1.0, 1.0)[:, None]
