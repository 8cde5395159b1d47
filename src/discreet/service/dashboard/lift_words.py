"""Did it help? The lift of the control share as a short answer with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.outcome import Outcome
from discreet.releases.lift import Lift, within
from discreet.service.dashboard.templating import figure

CERTAIN = ", with 95\N{NO-BREAK SPACE}% certainty, however often you look."


@dataclass(frozen=True)
class Answer:
    """``short`` is Yes, No, Too early to say, or Nobody can say; ``text`` is a sentence. The mean
    outcomes of both parts are empty before there is a lift."""

    short: str
    text: str
    policy: str = ""
    control: str = ""


def answered(lift: Lift | None, *, compared: bool) -> Answer:
    """What there is to say, whether or not there is a lift yet; ``compared`` with a control."""
    if lift is not None:
        return answer(lift)
    if compared:
        return Answer(
            "Too early to say", "The first release tells how the policy fared beside the control."
        )
    return Answer(
        "Nobody can say",
        "This experiment has no control share, so there is nobody to compare with. Give the next "
        "one a control share before it begins.",
    )


def answer(lift: Lift) -> Answer:
    """What the interval that is valid at any time allows to say."""
    line, outcome = lift.pooled, lift.outcome
    if math.isinf(line.anytime):
        return Answer("Too early to say", f"{lift.text[0].upper()}{lift.text[1:]}.", "–", "–")
    apart, wide = outcome.difference_of(line.difference), outcome.error_of(line.anytime)
    unsure = line.helps is None
    short = "Too early to say" if unsure else "Yes" if line.helps else "No"
    span = outcome.high - outcome.low
    low, high = max(apart - wide, -span), min(apart + wide, span)
    if wide >= span:
        interval = "the noise is still larger than any difference."
    elif low * high > 0:
        near, far = sorted((abs(low), abs(high)))
        interval = (
            f"between {figure(near, outcome)} and {_aside(math.copysign(far, apart), outcome)}"
        ) + CERTAIN
    else:
        interval = f"between {_aside(low, outcome)} and {_aside(high, outcome)}" + CERTAIN
    size = "may still be higher or lower" if unsure else f"is {_aside(apart, outcome)}"
    return Answer(
        short,
        f"The mean {outcome.word} {size} than that of the control: {interval}",
        *(figure(outcome.value_of(within(each)), outcome) for each in (line.policy, line.control)),
    )


def _aside(value: float, outcome: Outcome) -> str:
    """``0.023 lower``."""
    return f"{figure(abs(value), outcome)} {'higher' if value > 0 else 'lower'}"
