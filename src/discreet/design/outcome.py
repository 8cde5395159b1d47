"""Outcome of a decision: a loss or a reward, in a declared public range.

Rewards exist at the border only. What comes in becomes a loss in [0, 1] at once, and what is
shown is translated back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from discreet.errors import InvalidInput, kind_of
from discreet.text import listed
from discreet.types import JsonMapping, Numbers, NumpyArray, Values
from discreet.validate import as_float, in_range, intact, nearest, one_of

FINEST = 1e-6
"""Share of the range below which a mean is shown as zero."""
MOST_GUARDRAILS = 3
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")


def _numbers(values: object) -> NumpyArray:
    """Return an array of floats, with NaN for everything else."""
    try:
        numbers = np.asarray(values)
    except ValueError:
        return np.asarray(np.nan)
    if numbers.dtype.kind in "OU" and numbers.ndim == 1:
        return np.asarray([as_float(value) for value in np.asarray(values, dtype=object)])
    return numbers.astype(np.float64) if numbers.dtype.kind in "fiub" else np.asarray(np.nan)


def _checked_range(name: str, low: object, high: object) -> tuple[float, float]:
    ends = as_float(low), as_float(high)
    if not 0 < ends[1] - ends[0] < math.inf:  # false for NaN, and for ∞ − ∞
        raise InvalidInput(
            f"{name} must be two finite numbers low < high; got {low!r}, {high!r}. "
            "Declare a public range."
        )
    return ends


@dataclass(frozen=True, repr=False)
class Outcome:
    """A range that is fixed before the first person arrives; ``clip`` clamps what lies outside."""

    low: float
    high: float
    clip: bool = False

    word: ClassVar[str]
    """What it is called where people send it or read it."""
    plural: ClassVar[str]
    best: ClassVar[str]
    """The end of the range that is the loss 0."""

    def __post_init__(self) -> None:
        low, high = _checked_range(f"range of the {self.word}", self.low, self.high)
        if not isinstance(self.clip, bool):
            raise InvalidInput(
                f"clip must be True or False; got {self.clip!r}. "
                f"True clamps a {self.word} outside the range, False refuses it."
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def __repr__(self) -> str:
        if np.ndim(self.low):  # in a stack of plans
            return f"{type(self).__name__}({self.low!r}, {self.high!r}, clip={self.clip!r})"
        clip = ", clip=True" * self.clip
        return f"{type(self).__name__}({self.low:.12g}, {self.high:.12g}{clip})"

    @property
    def range(self) -> str:
        """``[0, 50]``."""
        return f"[{self.low:.12g}, {self.high:.12g}]"

    def reported(self, loss: object, reward: object) -> Values:
        """Return the loss or the reward, if it is the one that this outcome declares."""
        value, other = (loss, reward) if self.word == "loss" else (reward, loss)
        if value is not None and other is None:
            return value
        wrong = "reward" if self.word == "loss" else "loss"
        got = "both" if value is not None else "neither" if other is None else f"a {wrong}"
        raise InvalidInput(
            f"observe must get a {self.word}, which the plan declares in {self.range}; "
            f"got {got}. Call observe(…, {self.word}=…) with the {self.word} alone."
        )

    def loss_of(self, value: object) -> float:
        """One reported value as a loss in [0, 1]; refuses what the range does not allow."""
        number = value if type(value) is float else as_float(value)
        if self.clip and math.isfinite(number):
            number = min(max(number, self.low), self.high)
        if not self.low <= number <= self.high:  # NaN is refused here too
            raise self._outside(value)
        # The two ends give exactly 0 and 1, and the default range changes no bit.
        return abs(number - self._best) / (self.high - self.low)

    def losses_of(self, values: object, shape: tuple[int, ...]) -> NumpyArray:
        """``loss_of`` for an array of a known shape: all of it, or nothing."""
        numbers = _numbers(values)
        if self.clip:
            clipped = np.clip(numbers, self.low, self.high)
            numbers = np.where(np.isfinite(numbers), clipped, np.nan)
        if numbers.shape != shape:
            raise InvalidInput(
                f"{self.plural} must be {self._rule('numbers')} of shape {shape}; got shape "
                f"{numbers.shape}. Report one {self.word} per id, and with full feedback one per "
                "action."
            )
        outside = np.argwhere(~((numbers >= self.low) & (numbers <= self.high)))
        if len(outside):
            first = tuple(outside[0])
            row = f"row {first[0]}: " if first else ""
            raise self._outside(np.asarray(values, dtype=object)[first], row)
        return np.abs(numbers - self._best) / (self.high - self.low)

    def value_of(self, loss: Numbers) -> Numbers:
        """A loss in [0, 1], or an array of them, in the units of what people report."""
        return self._best + self.difference_of(loss)

    def difference_of(self, losses: Numbers) -> Numbers:
        """A difference of losses in those units: where losses fall, rewards rise."""
        return losses * (self.high - self.low) * (1.0 if self.best == "low" else -1.0)

    def error_of(self, standard_error: Numbers) -> Numbers:
        """A standard error of losses in those units."""
        return standard_error * (self.high - self.low)

    def figure(self, value: float, sign: str = "") -> str:
        """Return a value in those units to a thousandth of the range; ``sign`` as in a format.

        >>> Reward(0, 1).figure(0.12345), Reward(0, 200).figure(-2.345, "+")
        ('0.123', '−2.3')
        """
        digits = max(0, 3 - math.floor(math.log10(self.high - self.low)))
        return f"{value:{sign},.{digits}f}".replace("-", "−").replace("nan", "–")

    def text_of(self, loss: float) -> str:
        """A mean loss in those units: to a thousandth of the range, or to three digits.

        >>> Reward(0, 200).text_of(0.9), Reward(0, 200).text_of(0.985432)
        ('20.0', '2.91')
        """
        value = float(self.value_of(loss))
        digits = max(0, 4 - math.ceil(math.log10(self.high - self.low)))
        if abs(value) > FINEST * (self.high - self.low):
            digits = max(digits, 2 - math.floor(math.log10(abs(value))))
        return f"{value:,.{digits}f}"

    @property
    def _best(self) -> float:
        return self.low if self.best == "low" else self.high

    def _rule(self, noun: str) -> str:
        return f"finite {noun}" if self.clip else f"{noun} in {self.range}"

    def _outside(self, value: object, row: str = "") -> InvalidInput:
        got, step = kind_of(value), f"Report the {self.word} of the decision as a number."
        if math.isfinite(as_float(value)):
            kind = f"{type(self).__name__}(low, high)"
            got = "a number outside"
            step = (
                f"Declare a fixed public range that holds all {self.plural}: Plan(outcome={kind})."
            )
        return InvalidInput(f"{row}{self.word} must be a {self._rule('number')}; got {got}. {step}")


@dataclass(frozen=True, repr=False)
class Loss(Outcome):
    """Smaller is better: ``low`` is the loss 0, ``high`` the loss 1.

    What lies outside is refused (``InvalidInput``), or with ``clip`` moved to the nearer end.

    >>> Loss().loss_of(0.25), Loss(0, 60).loss_of(15), Loss(0, 60).value_of(0.5)
    (0.25, 0.25, 30.0)
    """

    low: float = 0.0
    high: float = 1.0

    word: ClassVar[str] = "loss"
    plural: ClassVar[str] = "losses"
    best: ClassVar[str] = "low"


@dataclass(frozen=True, repr=False)
class Reward(Outcome):
    """Larger is better: ``high`` is the loss 0, ``low`` the loss 1.

    What lies outside is refused (``InvalidInput``), or with ``clip`` moved to the nearer end.

    >>> Reward(0, 50).loss_of(12.5), Reward(0, 50).value_of(0.75)
    (0.75, 12.5)
    """

    word: ClassVar[str] = "reward"
    plural: ClassVar[str] = "rewards"
    best: ClassVar[str] = "high"


UNIT_LOSS = Loss()
"""A loss in [0, 1], the outcome of a plan that declares none."""
OUTCOMES: Mapping[str, type[Outcome]] = {"Loss": Loss, "Reward": Reward}


def declared(plan: JsonMapping | None) -> Outcome:
    """Return the outcome that the document of a plan declares, by default losses in [0, 1]."""
    found = (plan or {}).get("outcome")
    if found is None:
        return UNIT_LOSS
    with intact(
        "outcome of a plan must be a Loss or a Reward with its range; this one is not. "
        "Read it with the version of discreet that wrote it."
    ):
        return OUTCOMES[found["kind"]](float(found["low"]), float(found["high"]), found["clip"])


def unit_loss(value: object, name: str, outcome: Outcome) -> float:
    """Return a single loss in [0, 1]; the error translates a value in the units of ``outcome``."""
    try:
        return UNIT_LOSS.loss_of(value)
    except InvalidInput:
        step = "0 stands for the best outcome that the plan declares, and 1 for the worst."
        if outcome.low <= as_float(value) <= outcome.high:
            step += f" For a {outcome.word} of {value} write {name}={outcome.loss_of(value):.12g}."
        raise InvalidInput(f"{name} must be a number in [0, 1]; got {value!r}. {step}") from None


@dataclass(frozen=True)
class Guardrail:
    """A secondary outcome, such as complaints, that is compared next to the main one.

    Its ``name`` is reported with the loss or the reward of a decision, in [``low``, ``high``].
    ``worse`` is the bad direction, "higher" or "lower". The alert rule: the policy is worse than
    the control by more than ``limit``, in the units of the range, for all of the interval.

    Raises ``InvalidInput`` for other names, ranges, directions and limits.

    >>> Guardrail("latency", 0, 10, limit=0.5).loss_of(2.5)
    0.25
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    worse: str = "higher"
    limit: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidInput(
                "name of a guardrail must be a letter with up to 39 letters, digits or _ behind "
                f"it; got {self.name!r}. Write Guardrail('complaints')."
            )
        one_of(f"worse of {self.name}", self.worse, ("higher", "lower"))
        low, high = _checked_range(f"range of {self.name}", self.low, self.high)
        in_range(f"limit of {self.name}", self.limit, 0.0, high - low, open_high=True)

    @cached_property
    def outcome(self) -> Outcome:
        """The range, with the better end as the loss 0."""
        return (Loss if self.worse == "higher" else Reward)(self.low, self.high)

    def loss_of(self, value: object) -> float:
        """One reported value as a loss in [0, 1]; NaN where it was not observed: None or NaN."""
        if value is None or (isinstance(value, (float, np.floating)) and value != value):
            return math.nan
        try:
            return self.outcome.loss_of(value)
        except InvalidInput:
            raise InvalidInput(
                f"{self.name} must be a number in {self.outcome.range}; got "
                f"{kind_of(value) if math.isnan(as_float(value)) else 'a number outside'}. "
                "Leave it out where it is not known."
            ) from None

    @property
    def text(self) -> str:
        """The range, the bad direction and the limit in words."""
        limit = f" by more than {self.limit:g}" if self.limit else ""
        return f"{self.name} in {self.outcome.range}, where {self.worse}{limit} is worse"


def checked_guardrails(given: object) -> tuple[Guardrail, ...]:
    """Return the guardrails of a plan: at most three, with different names."""
    found = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    wrong = [each for each in found if not isinstance(each, Guardrail)]
    names = [each.name for each in found if isinstance(each, Guardrail)]
    if wrong or not 1 <= len(found) <= MOST_GUARDRAILS or len(set(names)) < len(names):
        got = repr(wrong[0]) if wrong else ", ".join(names) or "none"
        raise InvalidInput(
            f"guardrails must be one to {MOST_GUARDRAILS} Guardrail objects of different names; "
            f"got {got}. Write guardrails=[Guardrail('complaints')]."
        )
    return found


def refuse_unknown_guardrails(declared: Sequence[Guardrail], given: object) -> None:
    """Refuse names of reported guardrails that the plan does not declare."""
    names = [each.name for each in declared]
    if given is None or (isinstance(given, Mapping) and set(given) <= set(names)):
        return
    got = next(each for each in given if each not in names) if isinstance(given, Mapping) else ""
    raise InvalidInput(
        f"guardrails must be values by name, declared in the plan as {listed(names or ['none'])}; "
        f"got {repr(got) if got else kind_of(given)}. {nearest(got, names)}"
    )


def declared_guardrails(plan: JsonMapping | None) -> tuple[Guardrail, ...]:
    """Return the guardrails that the document of a plan declares."""
    found = []
    with intact(
        "guardrails of a plan must have names, ranges, directions and limits; these do not. "
        "Read it with the version of discreet that wrote it."
    ):
        for each in (plan or {}).get("guardrails") or ():
            low, high, limit = (float(each[name]) for name in ("low", "high", "limit"))
            found.append(Guardrail(each["name"], low, high, each["worse"], limit))
    return tuple(found)
