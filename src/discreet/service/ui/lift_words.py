"""Did it help? The lift of the control share as a short answer with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.outcome import Outcome
from discreet.releases.lift import Lift
from discreet.service.ui.templating import figure


@dataclass(frozen=True)
class Answer:
    """``short`` is Yes, No, or Too early to say; the others are sentences without a full stop."""

    short: str
    size: str
    interval: str
    policy: str
    control: str


def answer(lift: Lift) -> Answer:
    """What the interval that is valid at any time allows to say."""
    line, outcome = lift.pooled, lift.outcome
    apart, wide = outcome.difference_of(line.difference), outcome.error_of(line.anytime)
    unsure = abs(line.difference) <= line.anytime
    short = "Too early to say" if unsure else "Yes" if line.difference < 0 else "No"
    span = outcome.high - outcome.low
    low, high = max(apart - wide, -span), min(apart + wide, span)
    if wide >= span:
        interval = "the noise is still larger than any difference"
    elif low * high > 0:
        near, far = sorted((abs(low), abs(high)))
        interval = (
            f"between {figure(near, outcome)} and {_aside(math.copysign(far, apart), outcome)}"
        )
    else:
        interval = f"between {_aside(low, outcome)} and {_aside(high, outcome)}"
    return Answer(
        short,
        f"The mean {outcome.word} may still be higher or lower than that of the control"
        if unsure
        else f"The mean {outcome.word} is {_aside(apart, outcome)} than that of the control",
        interval,
        *(figure(outcome.value_of(each), outcome) for each in (line.policy, line.control)),
    )


def _aside(value: float, outcome: Outcome) -> str:
    """``0.023 lower``."""
    return f"{figure(abs(value), outcome)} {'higher' if value > 0 else 'lower'}"
