"""Losses by group, a public column of public data: for one run, or over seeds at each ε."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.design.outcome import UNIT_LOSS, Outcome
from discreet.errors import InvalidInput
from discreet.features.frames import new_frame
from discreet.releases.plots import INK, axes_for, finish
from discreet.text import epsilon_text
from discreet.types import Axes, Frame, NumpyArray, Values

if TYPE_CHECKING:
    from discreet.data import Dataset


class LossInterval(NamedTuple):
    """Mean, standard error and interval; NaN without a spread."""

    loss: float = math.nan
    standard_error: float = math.nan
    low: float = math.nan
    high: float = math.nan


def over_seeds(losses: Values, confidence: float) -> LossInterval:
    """Student's t over the seeds (seeds,) that have a loss; NaN where one has none."""
    from scipy.special import stdtrit

    known = np.asarray(losses)[~np.isnan(losses)]
    if len(known) < 2:
        return LossInterval(*known.tolist())
    mean, error = float(known.mean()), float(known.std(ddof=1) / math.sqrt(len(known)))
    wide = float(stdtrit(len(known) - 1, 0.5 + confidence / 2)) * error
    return LossInterval(mean, error, mean - wide, mean + wide)


def over_rounds(losses: NumpyArray, confidence: float) -> LossInterval:
    """Wilson's interval of the losses in [0, 1] of one run.

    A loss in [0, 1] with mean m has a variance of at most m(1 − m), with equality for 0 and 1, and
    rounds whose means differ have a mean variance below that of their mean: so the interval is
    wide enough for all of them, also where every loss was 0. [Wilson 1927]

    >>> [round(each, 3) for each in over_rounds(np.zeros(20), 0.95)]
    [0.0, 0.0, 0.0, 0.161]
    """
    from scipy.special import ndtri

    if not (rounds := len(losses)):
        return LossInterval()
    mean, z = float(losses.mean()), float(ndtri(0.5 + confidence / 2))
    variance = mean * (1.0 - mean) / rounds
    middle = (mean + z**2 / (2 * rounds)) / (1 + z**2 / rounds)
    wide = z * math.sqrt(variance + (z / (2 * rounds)) ** 2) / (1 + z**2 / rounds)
    low, high = max(0.0, middle - wide), min(1.0, middle + wide)
    return LossInterval(mean, math.sqrt(variance), min(low, mean), max(high, mean))


SMALLEST, MOST = 20, 50
"""Rounds of a group, with which a loss of 0.5 is known to ±0.22; groups, of which more are nearly
always a number that should be cut into classes."""
OTHERS = "other groups"


@dataclass(frozen=True, eq=False)
class Groups:
    """Names, the largest group first, and for every row the number of its group."""

    names: tuple[str, ...]
    numbers: NumpyArray = field(repr=False)

    @classmethod
    def of(cls, values: Values, rows: int, rounds: int | None = None) -> Groups:
        """Read one value per row; groups with too few rounds are pooled as "other groups".

        >>> Groups.of(["south"] * 30 + ["north"] * 50 + ["east", "west"], 82).names
        ('north', 'south', 'other groups')
        """
        words = _words(values, rows)
        share = (rounds or rows) / rows
        counts = sorted(Counter(words).items(), key=lambda each: (-each[1], each[0]))
        names = [word for word, count in counts if count * share >= SMALLEST]
        if not 1 <= len(names) <= MOST:
            raise InvalidInput(
                f"groups must be at most {MOST}, and one of them must have at least {SMALLEST} "
                f"rounds; got {len(names)} of that size among {len(counts)}. Cut numbers into a "
                "few classes, or take more rows."
            )
        known = {word: number for number, word in enumerate(names)}
        numbers = np.asarray([known.get(word, len(names)) for word in words])
        pooled = (OTHERS,) * (len(names) < len(counts))
        return cls((*names, *pooled), numbers)


def file_groups(data: Dataset, name: str) -> NumpyArray:
    """Return a column of a file as groups; rows without a value are a separate group."""
    values = data.named_column("group", name).astype(object)
    return np.where((values == None) | (values != values), "(missing)", values)  # noqa: E711


def _words(values: Values, rows: int) -> list[str]:
    array = values if isinstance(values, np.ndarray) else np.asarray(values, object)
    if array.shape != (rows,):
        raise InvalidInput(
            f"groups must be one value per context, {rows} of them; got shape {array.shape}. "
            "Pass an array or a series, or name a column of a frame."
        )
    listed = array.tolist()
    if any(each is None or each != each for each in listed):
        raise InvalidInput(
            "groups must be known for every row; some are missing. "
            "Give such rows a separate group, or leave them out."
        )
    return [f"{each:.15g}" if isinstance(each, float) else str(each) for each in listed]


class GroupLoss(NamedTuple):
    """One group at one ε; ``rounds`` are those of the group in one run.

    ``best_fixed`` is the mean loss of the single action that is best *for the group*, and
    ``uniform`` that of random actions in it.
    """

    group: str
    epsilon: float
    rounds: int
    loss: float
    low: float
    high: float
    best_fixed: float
    uniform: float


# Hues that colour-blind readers can distinguish [Okabe and Ito 2008]; the marker differs too.
HUES = ("#7A1F5C", "#D55E00", "#1A80C4", "#009E73", "#E69F00", "#CC79A7", "#8A6D3B", "#888888")
MARKERS = "osD^vP*X"
DISTANCE = 0.08
"""Horizontal distance between groups, so that their intervals can be seen."""


@dataclass(frozen=True)
class GroupLosses:
    """One line per group and ε, losses in [0, 1]; ``table`` has the units of ``outcome``."""

    lines: tuple[GroupLoss, ...]
    confidence: float = 0.95
    outcome: Outcome = UNIT_LOSS

    def __iter__(self) -> Iterator[GroupLoss]:
        return iter(self.lines)

    def to_json(self) -> list[dict[str, object]]:
        """Return one object per group and ε; null where a group has no spread."""
        return [
            {name: None if value != value else value for name, value in line._asdict().items()}
            for line in self.lines
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """The groups, the largest first; "other groups" are those with too few rounds."""
        return tuple(dict.fromkeys(line.group for line in self.lines))

    @property
    def table(self) -> dict[str, NumpyArray]:
        """Columns, named as the outcome is: loss or reward."""
        values = map(np.asarray, zip(*self.lines, strict=True))
        columns = dict(zip(GroupLoss._fields, values, strict=True))
        columns["group"] = columns["group"].astype(object)
        for name in ("loss", "low", "high", "best_fixed", "uniform"):
            columns[name] = self.outcome.value_of(columns[name])
        ends = np.sort([columns["low"], columns["high"]], axis=0)  # a reward falls with the loss
        columns |= {"low": ends[0], "high": ends[1]}
        return {self.outcome.word if name == "loss" else name: columns[name] for name in columns}

    def to_frame(self) -> Frame:
        """Return ``table`` as a frame of the first library of frames that is installed."""
        return new_frame(self.table)

    def plot(self, ax: Axes = None, ink: str = INK) -> Axes:
        """Draw loss against ε for each group on matplotlib axes, new ones unless given.

        Dashed is the best fixed action of each group.
        """
        ax, outcome, names = axes_for(ax), self.outcome, self.names
        for number, name in enumerate(names):
            lines = [line for line in self.lines if line.group == name]
            x = np.arange(len(lines)) + DISTANCE * (number - (len(names) - 1) / 2)
            means = outcome.value_of(np.asarray([line.loss for line in lines]))
            ends = outcome.value_of(np.asarray([(line.low, line.high) for line in lines]))
            hue = HUES[number % len(HUES)]
            ax.errorbar(
                *(x, means, np.abs(ends.T - means)),
                label=f"{name}, {lines[0].rounds:,} rounds",
                **{
                    "fmt": f"{MARKERS[number % len(MARKERS)]}-",
                    "color": hue,
                    "ms": 5,
                    "capsize": 3,
                },
            )
            ax.hlines(
                outcome.value_of(lines[0].best_fixed),
                *(-0.4, len(lines) - 0.6),
                **{"color": hue, "ls": "--", "lw": 1.2, "alpha": 0.7},
                label="best fixed action of that group" if number == 0 else None,
            )
        shown = [epsilon_text(line.epsilon) for line in self.lines if line.group == names[0]]
        ax.set_xticks(range(len(shown)), shown)
        ax.set_xlabel("ε (more privacy to the left)")
        ax.set_ylabel(f"mean {outcome.word} of the group")
        return finish(ax, ink)

    @property
    def header(self) -> tuple[str, ...]:
        """The names of ``cells``."""
        word, interval = self.outcome.word, f"{self.confidence:.0%} interval"
        return ("group", "rounds", "ε", f"mean {word}", interval, "best fixed", "uniform")

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The table as text; a group and its rounds are written once."""
        made: list[tuple[str, ...]] = []
        before = None
        for line in self.lines:
            ends = sorted((line.low, line.high), key=self.outcome.value_of)
            first = (line.group, f"{line.rounds:,}") if line.group != before else ("", "")
            # NaN: the group never came.
            mean, best, uniform, *found = (
                self.outcome.text_of(loss) if loss == loss else "–"
                for loss in (line.loss, line.best_fixed, line.uniform, *ends)
            )
            interval = " … ".join(found) if line.low <= line.high else ""
            made.append((*first, epsilon_text(line.epsilon), mean, interval, best, uniform))
            before = line.group
        return made

    def __repr__(self) -> str:
        rows = [self.header, *self.cells]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )


@dataclass(frozen=True, eq=False)
class PlayedGroups:
    """Groups of the rounds of one run, with losses of best fixed and uniform actions (G, 2)."""

    names: tuple[str, ...]
    numbers: NumpyArray
    plain: NumpyArray

    @classmethod
    def of(
        cls, groups: Groups, order: NumpyArray, truth: NumpyArray, n_actions: int
    ) -> PlayedGroups:
        """Take the rows in ``order``; ``truth`` are all labels (n,) or losses (n, A)."""
        numbers = groups.numbers[order]
        losses = truth[order] if truth.ndim == 2 else truth[order, None] != np.arange(n_actions)
        plain = np.full((len(groups.names), 2), np.nan)
        for number in np.unique(numbers):
            means = losses[numbers == number].mean(axis=0)
            plain[number] = means.min(), means.mean()
        return cls(groups.names, numbers, plain)

    def summed(self, losses: NumpyArray | None = None) -> NumpyArray:
        """Return the losses (T,) of the run, or its rounds, summed by group: (G,)."""
        return np.bincount(self.numbers, losses, minlength=len(self.names))

    def lines(self, losses: NumpyArray, epsilon: float, confidence: float) -> tuple[GroupLoss, ...]:
        """Return a line per group for losses (T,) of the run, with intervals over its rounds."""
        made = []
        for number, name in enumerate(self.names):
            own = losses[self.numbers == number]
            interval = over_rounds(own, confidence)
            made.append(_line(name, epsilon, len(own), interval, self.plain[number]))
        return tuple(made)


def lines_over_seeds(
    played: Sequence[PlayedGroups], lost: NumpyArray, epsilons: Sequence[float], confidence: float
) -> tuple[GroupLoss, ...]:
    """Return lines of runs with summed losses ``lost`` (epsilons, seeds, G)."""
    counts = np.asarray([each.summed() for each in played])
    losses = np.where(counts > 0, lost / np.maximum(counts, 1), np.nan)
    rounds, lines = counts.mean(axis=0), []
    plain = np.stack([each.plain for each in played], axis=-1)  # (G, 2, seeds)
    for group, name in enumerate(played[0].names):
        levels = [over_seeds(each, confidence).loss for each in plain[group]]
        for level, epsilon in enumerate(epsilons):
            mean = over_seeds(losses[level, :, group], confidence)
            lines.append(_line(name, epsilon, rounds[group], mean, levels))
    return tuple(lines)


def _line(
    name: str, epsilon: float, rounds: float, mean: LossInterval, plain: Sequence[float]
) -> GroupLoss:
    best_fixed, uniform = map(float, plain)
    low, high = (min(max(end, 0.0), 1.0) for end in (mean.low, mean.high))  # as losses are
    return GroupLoss(name, epsilon, round(rounds), mean.loss, low, high, best_fixed, uniform)
