"""Losses by group, beside what needs no context: for one run, or over seeds at each ε."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.design.outcome import UNIT_LOSS, Outcome
from discreet.features.frames import new_frame
from discreet.simulate.intervals import LossInterval, over_rounds, over_seeds
from discreet.simulate.public_groups import Groups
from discreet.text import epsilon_text, html_table


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


@dataclass(frozen=True)
class GroupLosses:
    """One line per group and ε, losses in [0, 1]; ``table`` has the units of ``outcome``."""

    lines: tuple[GroupLoss, ...]
    confidence: float = 0.95
    outcome: Outcome = UNIT_LOSS
    library: str | None = None

    def __iter__(self) -> Iterator[GroupLoss]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def to_json(self) -> list[dict[str, Any]]:
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
    def table(self) -> dict[str, np.ndarray[Any, Any]]:
        """Columns, named as the outcome is: loss or reward."""
        columns = dict(
            zip(GroupLoss._fields, map(np.asarray, zip(*self.lines, strict=True)), strict=True)
        )
        columns["group"] = columns["group"].astype(object)
        value = self.outcome.value_of
        ends = value(columns["low"]), value(columns["high"])
        return {
            **{name: columns[name] for name in ("group", "epsilon", "rounds")},
            self.outcome.word: value(columns["loss"]),
            "low": np.minimum(*ends),
            "high": np.maximum(*ends),
            "best_fixed": value(columns["best_fixed"]),
            "uniform": value(columns["uniform"]),
        }

    def to_frame(self) -> Any:
        """``table`` as a frame of the library that was played, else of the first installed."""
        return new_frame(self.table, self.library)

    def plot(self, ax: Any = None) -> Any:
        """Draw loss against ε for each group on matplotlib axes, new ones unless given."""
        from discreet.simulate.group_plot import draw

        return draw(self, ax)

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
            mean, best, uniform = map(self._text, (line.loss, line.best_fixed, line.uniform))
            interval = " … ".join(map(self._text, ends)) if line.low <= line.high else ""
            made.append((*first, epsilon_text(line.epsilon), mean, interval, best, uniform))
            before = line.group
        return made

    def _text(self, loss: float) -> str:
        return self.outcome.text_of(loss) if loss == loss else "–"  # NaN: the group never came

    def __repr__(self) -> str:
        rows = [self.header, *self.cells]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )

    def _repr_html_(self) -> str:
        return html_table("Losses by group", self.cells, self.header)


@dataclass(frozen=True, eq=False)
class PlayedGroups:
    """The groups of the rounds of one run; what needs no context: best fixed and uniform (G, 2)."""

    groups: Groups
    plain: np.ndarray[Any, Any]

    @classmethod
    def of(cls, groups: Groups, order: Any, truth: Any, n_actions: int) -> PlayedGroups:
        """For the rows in ``order``, with all labels (n,) or losses (n, A) as ``truth``."""
        places = groups.places[order]
        losses = truth[order] if truth.ndim == 2 else truth[order, None] != np.arange(n_actions)
        plain = np.full((len(groups.names), 2), np.nan)
        for place in np.unique(places):
            means = losses[places == place].mean(axis=0)
            plain[place] = means.min(), means.mean()
        return cls(Groups(groups.names, places), plain)

    @property
    def rounds(self) -> np.ndarray[Any, Any]:
        return np.bincount(self.groups.places, minlength=len(self.groups.names))

    def lost(self, losses: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The losses (T,) of the run, summed by group: (G,)."""
        return np.bincount(self.groups.places, losses, minlength=len(self.groups.names))

    def lines(
        self, losses: np.ndarray[Any, Any], epsilon: float, confidence: float
    ) -> tuple[GroupLoss, ...]:
        """Those of the losses (T,) of the run, with intervals over its rounds."""
        found = []
        for place, name in enumerate(self.groups.names):
            mean = over_rounds(losses[self.groups.places == place], confidence)
            found.append(_line(name, epsilon, self.rounds[place], mean, self.plain[place]))
        return tuple(found)


def lines_over_seeds(
    played: Sequence[PlayedGroups],
    lost: np.ndarray[Any, Any],
    epsilons: Sequence[float],
    confidence: float,
) -> tuple[GroupLoss, ...]:
    """Lines of runs that lost (epsilons, seeds, G) in all; one ``played`` per seed."""
    counts = np.asarray([each.rounds for each in played])
    losses = np.where(counts > 0, lost / np.maximum(counts, 1), np.nan)
    rounds = counts.mean(axis=0)
    plain = [
        [
            over_seeds([each.plain[group, which] for each in played], confidence).loss
            for which in (0, 1)
        ]
        for group in range(len(rounds))
    ]
    return tuple(
        _line(
            name,
            epsilon,
            rounds[group],
            over_seeds(losses[place, :, group], confidence),
            plain[group],
        )
        for group, name in enumerate(played[0].groups.names)
        for place, epsilon in enumerate(epsilons)
    )


def _line(
    name: str, epsilon: float, rounds: float, mean: LossInterval, plain: Sequence[float]
) -> GroupLoss:
    best_fixed, uniform = map(float, plain)
    low, high = (min(max(end, 0.0), 1.0) for end in (mean.low, mean.high))  # as losses are
    return GroupLoss(name, epsilon, round(rounds), mean.loss, low, high, best_fixed, uniform)
