"""The lift of the policy over the control, from published releases: asking spends no budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from discreet.design.outcome import UNIT_LOSS, Outcome
from discreet.design.schedule import Schedule
from discreet.errors import CorruptRelease, InvalidInput
from discreet.features.frames import new_frame
from discreet.privacy.budget import ONCE, Participation
from discreet.releases.lift_intervals import (
    CONTROL,
    DIFFERENCE,
    JOINT,
    POLICY,
    UNKNOWN,
    LiftEstimate,
    PooledSums,
    more_decisions,
    quotient,
)
from discreet.releases.policy_view import PolicyView
from discreet.releases.release import DecidingRelease, Release
from discreet.types import Frame, JsonObject, Numbers, NumpyArray
from discreet.validate import in_range, intact

FORMAT = "discreet-lift/1"
OF_DECISIONS = (
    "decisions are independent of each other; where the same people come back, which a plan with "
    'unit="decision" cannot know, the intervals are too narrow'
)
OF_PEOPLE = (
    "people are independent of each other, and those who return vary as others do; all losses of "
    "one person may be equal"
)


@dataclass(frozen=True)
class LiftLine:
    """Mean losses of policy and control, and half-widths of intervals of their difference:
    ``fixed`` for one look at a time chosen before, ``anytime`` for any number of looks.

    Losses are in [0, 1]; their noisy means may be a little outside. Where the counts of observed
    losses are within their noise, means are NaN and half-widths infinite. A line of one batch has
    no ``anytime``, nor what follows it: the sequence is over batches. What follows is valid at any
    time as well: half-widths of the two means; of the difference and of the control's mean
    together; and the losses of the policy that were observed, with the half-width of their noise.
    """

    number: int
    records: int
    policy: float
    control: float
    fixed: float
    anytime: float
    policy_error: float = math.inf
    control_error: float = math.inf
    joint: float = math.inf
    joint_control: float = math.inf
    answers: float = math.nan
    answers_error: float = math.inf

    @property
    def difference(self) -> float:
        """Loss of the policy less that of the control: below zero where the policy helps."""
        return self.policy - self.control

    @property
    def known(self) -> bool:
        """True if the counts of observed losses are above their noise."""
        return not math.isinf(self.anytime)

    @property
    def helps(self) -> bool | None:
        """True if the interval for any time is below zero; None if it contains zero."""
        return self.difference < 0 if abs(self.difference) > self.anytime else None


@dataclass(frozen=True, repr=False)
class Lift:
    """Difference between the mean outcomes of policy and control, with intervals.

    ``batches`` has a line for each release, and ``so_far`` one for all releases up to it: the mean
    of the differences within batches, weighted as docs/privacy/lift.md says. Lines are in losses;
    ``text``, ``table`` and plots are in the units that people report, so that a lift above zero is
    more reward. ``assumes`` says what the intervals take for granted, and ``more_decisions`` after
    how many more the interval for any time is half as wide.
    """

    batches: tuple[LiftLine, ...]
    so_far: tuple[LiftLine, ...]
    confidence: float
    outcome: Outcome = UNIT_LOSS
    assumes: str = OF_DECISIONS
    more_decisions: int | None = None

    @property
    def pooled(self) -> LiftLine:
        """All releases together."""
        return self.so_far[-1]

    @property
    def text(self) -> str:
        """``policy 0.231, control 0.254, lift −0.023 ± 0.011; valid at any time``."""
        line = self.pooled
        if not line.known:
            return "lift is not known yet; the counts of observed losses are within their noise"
        means = f"policy {self.mean_text(line.policy)}, control {self.mean_text(line.control)}"
        return f"{means}, lift {self.difference_text(line.anytime)}; valid at any time"

    @property
    def verdict(self) -> str:
        """Conclusion from the interval that is valid at any time, in words."""
        if not self.pooled.known:
            return "it is not known yet whether the policy helps"
        helps = self.pooled.helps
        if helps is None:
            return "the releases do not tell yet whether the policy helps"
        return f"the policy {'helps' if helps else 'does worse than the control'}"

    def relative(self, line: LiftLine) -> LiftEstimate:
        """The lift as a share of the control's mean; NaN unless that mean is surely above zero."""
        outcome, difference = self.outcome, self.outcome.difference_of(line.difference)
        control, wide = outcome.value_of(line.control), outcome.error_of(line.joint_control)
        least, most = max(outcome.low, control - wide), min(outcome.high, control + wide)
        if not 0.0 < least <= most or control <= 0.0:
            return UNKNOWN
        wide = outcome.error_of(line.joint)
        low, high = quotient(difference - wide, difference + wide, least, most)
        floor, top = quotient(outcome.low, outcome.high, least, most)  # of the policy's mean
        return LiftEstimate(difference / control, max(low, floor - 1.0), min(high, top - 1.0))

    def gained(self, line: LiftLine) -> LiftEstimate:
        """The lift times the outcomes that the policy's decisions had: above zero is better."""
        fewest = max(0.0, line.answers - line.answers_error)
        most = max(fewest, line.answers + line.answers_error)
        if not math.isfinite(most) or not line.known:
            return UNKNOWN
        better, wide = self.outcome.error_of(-line.difference), self.outcome.error_of(line.joint)
        low, high = better - wide, better + wide
        ends = low * (fewest if low > 0 else most), high * (most if high > 0 else fewest)
        return LiftEstimate(better * max(0.0, line.answers), *ends)

    @property
    def relative_figures(self) -> tuple[str, str]:
        """``+9.1 %`` and ``+4.4 % to +13.5 %``, or that it is not known yet, and why."""
        why, text = "the control's mean is not surely above zero", "{:+.1f}\N{NO-BREAK SPACE}%"
        return self.relative(self.pooled).figures(lambda x: text.format(100 * x), why)

    @property
    def gained_figures(self) -> tuple[str, str]:
        """A sum and its interval, to whole numbers where it is large."""
        found, small = self.gained(self.pooled), self.outcome.figure
        why = "the lift is not known yet"
        return found.figures(lambda x: f"{x:,.0f}" if abs(x) >= 100 else small(x), why)

    @property
    def gained_word(self) -> str:
        return "saved" if self.outcome.best == "low" else "gained"

    @property
    def relative_text(self) -> str:
        """``relative lift −9.1 % (−13.5 % to −4.4 %); saved so far 310 (120 to 500)``."""
        words = "relative lift {} ({}); " + self.gained_word + " so far {} ({})"
        return words.format(*self.relative_figures, *self.gained_figures)

    def mean_text(self, loss: float) -> str:
        """A mean within the range, or a dash where it is unknown."""
        return self.outcome.figure(self.mean_of(loss))

    def difference_text(self, wide: float) -> str:
        """``−0.023 ± 0.011`` of all releases with this half-width, or a dash."""
        if not math.isfinite(wide):
            return "–"
        outcome, difference = self.outcome, self.outcome.difference_of(self.pooled.difference)
        return f"{outcome.figure(difference, '+')} ± {outcome.figure(outcome.error_of(wide))}"

    def __repr__(self) -> str:
        fixed = self.difference_text(self.pooled.fixed)
        return (
            f"Lift(mean {self.outcome.word}: {self.text}; {fixed} for one look at a time fixed "
            f"before; {self.confidence:.0%} intervals; {self.verdict}; assumed: {self.assumes})"
        )

    def mean_of(self, loss: float) -> float:
        """A mean within the range, in the units of ``outcome``."""
        return float(self.outcome.value_of(min(max(loss, 0.0), 1.0)))

    def _row(self, batch: LiftLine, line: LiftLine) -> dict[str, float]:
        """Figures of a batch and of all up to it, in the units of ``outcome``."""
        wide, difference = self.outcome.error_of, self.outcome.difference_of
        row = {
            "number": batch.number,
            "records": batch.records,
            "policy": self.mean_of(batch.policy),
            "control": self.mean_of(batch.control),
            "lift": difference(batch.difference),
            "half_width": wide(batch.fixed),
            "policy_so_far": self.mean_of(line.policy),
            "control_so_far": self.mean_of(line.control),
            "lift_so_far": difference(line.difference),
            "half_width_fixed_time": wide(line.fixed),
            "half_width_any_time": wide(line.anytime),
            "policy_half_width_any_time": wide(line.policy_error),
            "control_half_width_any_time": wide(line.control_error),
        }
        for name, found in (("relative", self.relative(line)), ("gained", self.gained(line))):
            row |= {f"{name}_so_far": found.value, f"{name}_low": found.low}
            row[f"{name}_high"] = found.high
        return row

    @property
    def _rows(self) -> list[dict[str, float]]:
        return [self._row(*lines) for lines in zip(self.batches, self.so_far, strict=True)]

    @property
    def table(self) -> dict[str, NumpyArray]:
        """A row per release, in the units of ``outcome``: its own batch, and all up to it.

        Means are within the range; differences are those of the lines. NaN and infinity stand for
        what is not known yet.
        """
        rows = self._rows
        return {name: np.asarray([row[name] for row in rows]) for name in rows[0]}

    def to_json(self) -> JsonObject:
        """``table`` row by row, with the words, as a document for everyone.

        Null stands for what is not known yet.
        """
        return {
            "format": FORMAT,
            "outcome": {"kind": type(self.outcome).__name__, **asdict(self.outcome)},
            "confidence": self.confidence,
            "batches": [
                {name: value if math.isfinite(value) else None for name, value in row.items()}
                for row in self._rows
            ],
            "text": self.text,
            "verdict": self.verdict,
            "relative_text": self.relative_text,
            "more_decisions": self.more_decisions,
            "assumes": self.assumes,
        }

    def to_frame(self) -> Frame:
        """``table`` as a frame of the first library that is installed."""
        return new_frame(self.table)

    def plot(self, ax: object = None) -> Any:
        """Draw the lift so far, release by release, on matplotlib axes; return them."""
        from discreet.releases.plots import draw_lift

        return draw_lift(self, ax)


def lift(released: PolicyView, *, confidence: float = 0.95) -> Lift:
    """Compare policy and control: mean losses or rewards, and intervals of their difference.

    The intervals cover sampling and privacy noise. The one that is ``valid at any time`` holds for
    all releases at once, so that looking every day is no mistake; the other one is narrower, and
    holds for one look at a time that was fixed before. ``assumes`` of the result says what the
    intervals take for granted. [docs/lift.md]

    Args:
        released: The releases of a plan with a ``Control``.
        confidence: Of the intervals, in [0.5, 1).

    Returns:
        A ``Lift``: ``text``, ``verdict``, ``table``, ``plot()``, ``to_frame()``.

    Raises:
        InvalidInput: The plan has no control share, or nothing was released yet.

    >>> from discreet import Budget, Control, Learner, Plan, UnitBall
    >>> plan = Plan(n_actions=2, features=UnitBall(1), budget=Budget.none(), control=Control(0.5))
    >>> learner = Learner(plan, draws=np.random.default_rng(0))
    >>> for _ in range(100):
    ...     decision = learner.decide([0.3])
    ...     learner.observe(decision.id, loss=float(decision.action))
    >>> lift(learner.released).text  # doctest: +ELLIPSIS
    'policy 0..., control 0..., lift −0... ± 0...; valid at any time'
    """
    in_range("confidence", confidence, 0.5, 1.0, open_high=True)
    plan = released.plan or {}
    control = plan.get("control")
    if control is None:
        raise InvalidInput(
            "released must come from a plan with a control share; this plan has none. "
            "Begin the next experiment with Plan(control=Control(share=0.1))."
        )
    items = released.items[released.schedule.imported_batches :]  # a log is in neither part
    if not items:
        raise InvalidInput(
            "released must hold a release; nothing was released yet. Ask after the first release."
        )
    with intact(
        "control of a plan must have a share; this one has none. "
        "Read it with the version of discreet that wrote it."
    ):
        share, often = float(control["share"]), None
        if plan.get("batches_per_user") is not None:
            often = Participation(int(plan["batches_per_user"]), int(plan["records_per_batch"]))
    coming = next_sizes(released.schedule, released)
    return lift_of(items, share, often, released.outcome, confidence, coming)


AHEAD = 256
"""The most batches of a forecast."""


def lift_of(
    items: Sequence[Release | DecidingRelease],
    share: float,
    often: Participation | None = None,
    outcome: Outcome = UNIT_LOSS,
    confidence: float = 0.95,
    coming: Sequence[int] = (),
) -> Lift:
    """Return the lift of releases of a plan with this share of control and this bound on people.

    ``coming`` are the sizes of the next batches, for the forecast.
    """
    parts = [item.part_losses for item in items if item.part_losses is not None]
    if len(parts) < len(items):
        raise CorruptRelease(
            "releases must tell the losses of policy and control; one does not. Fetch them again."
        )
    sums = np.stack([np.asarray(each.sums) for each in parts])
    variance = np.asarray([float(each.variance) for each in parts])
    records = np.asarray([item.records for item in items])
    split, most, alpha = np.array([1.0 - share, share]), often or ONCE, 1.0 - confidence
    slots, numbers = records[:, None] * split, [item.number for item in items]
    whole = PooledSums(sums, variance, slots, most)
    # Each batch alone, as a sequence of one: (B, 1, …).
    alone = PooledSums(sums[:, None], variance[:, None], slots[:, None], most)
    single = np.full(len(numbers), np.nan)
    later = np.asarray(coming, dtype=float)[:, None] * split
    return Lift(
        _lines(numbers, records, alone.excess[:, 0], alone.fixed(DIFFERENCE, alpha)[:, 0], single),
        _lines(
            *(numbers, np.cumsum(records), whole.excess, whole.fixed(DIFFERENCE, alpha)),
            *(whole.anytime(weights, alpha) for weights in (DIFFERENCE, POLICY, CONTROL)),
            whole.anytime(DIFFERENCE, (1.0 - JOINT) * alpha),
            whole.anytime(CONTROL, JOINT * alpha),
            *whole.answers(JOINT * alpha),
        ),
        confidence,
        outcome,
        OF_DECISIONS if often is None else OF_PEOPLE,
        more_decisions(sums, variance, slots, most, confidence, later) if coming else None,
    )


def next_sizes(schedule: Schedule, released: PolicyView) -> list[int]:
    """Return sizes of the next batches, up to sixteen times as many records as there are."""
    first = len(released.items) + 1
    sizes = [schedule.length(k) for k in range(first, first + AHEAD) if schedule.fitted(k)]
    return sizes[: int(np.searchsorted(np.cumsum(sizes), 16 * released.rounds)) + 1]


def _lines(
    numbers: list[int], records: NumpyArray, excess: Numbers, *others: Numbers
) -> tuple[LiftLine, ...]:
    """A line for each release."""
    columns = np.column_stack([0.5 + excess, *others]).tolist()
    parts = zip(numbers, records.tolist(), columns, strict=True)
    return tuple(LiftLine(number, count, *line) for number, count, line in parts)
