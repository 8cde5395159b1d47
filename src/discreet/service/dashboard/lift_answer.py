"""Answer to "Did it help?" for people: a verdict, a sentence, figures and a forecast."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.design.outcome import Outcome
from discreet.releases.lift import Lift, within
from discreet.text import about

EARLY = "Too early to say"
CERTAIN = ", with 95\N{NO-BREAK SPACE}% certainty, however often you look."


@dataclass(frozen=True)
class LiftAnswer:
    """``short`` is the verdict, ``text`` a sentence, ``facts`` are figures with their intervals,
    and ``more`` says how many decisions narrow the interval."""

    short: str
    text: str
    facts: tuple[tuple[str, str, str], ...] = ()
    more: str = ""


def answered(
    lift: Lift | None, control: str | None, *, ended: bool = False, taken: int = 0
) -> LiftAnswer:
    """Describe the lift, or the reason why there is none.

    ``control`` names the action of the control group, if there is one, and ``taken`` counts the
    decisions since the last release.
    """
    if lift is not None:
        return answer(lift, control or "", ended=ended, taken=taken)
    if control is not None:
        return LiftAnswer(EARLY, "The first release compares the policy with the control group.")
    return LiftAnswer(
        "Not compared",
        "This experiment has no control group, so there is nothing to compare with. Give the next "
        "one a control share before it begins.",
    )


def answer(lift: Lift, control: str = "", *, ended: bool = False, taken: int = 0) -> LiftAnswer:
    """Describe the lift by its interval that is valid at any time."""
    line, outcome = lift.pooled, lift.outcome
    unsure = line.helps is None
    short = "Yes" if line.helps else "No" if not unsure else "Unclear" if ended else EARLY
    more = "" if ended or not unsure else _more(lift, taken)
    if not line.known:
        text = f"So few {outcome.plural} are known that the noise exceeds every difference."
        return LiftAnswer(short, text, more=more)
    difference, wide = outcome.difference_of(line.difference), outcome.error_of(line.anytime)
    span = outcome.high - outcome.low
    low, high = max(difference - wide, -span), min(difference + wide, span)
    if wide >= span:
        interval = "the noise is still larger than any difference."
    elif not unsure:
        near, far = sorted((abs(low), abs(high)))
        interval = (
            f"between {outcome.figure(near)} and {_aside(math.copysign(far, difference), outcome)}"
        ) + CERTAIN
    else:
        interval = f"between {_aside(low, outcome)} and {_aside(high, outcome)}" + CERTAIN
    size = "may still be higher or lower" if unsure else f"is {_aside(difference, outcome)}"
    return LiftAnswer(
        short,
        f"The mean {outcome.word} {size} than that of the control group: {interval}",
        _facts_of(lift, control, (low, high)),
        more,
    )


def _facts_of(
    lift: Lift, control: str, ends: tuple[float, float]
) -> tuple[tuple[str, str, str], ...]:
    """Names, values and intervals of the figures that a board asks for."""
    line, outcome = lift.pooled, lift.outcome
    relative, sides = lift.relative_figures
    figure = outcome.figure
    means = [
        (name, figure(outcome.value_of(within(loss))), _means(loss, wide, outcome))
        for name, loss, wide in (
            ("Policy", line.policy, line.policy_error),
            (f"Control, {control}", line.control, line.control_error),
        )
    ]
    lifted = figure(outcome.difference_of(line.difference), "+")
    return (
        *means,
        ("Difference", lifted, f"{figure(ends[0], '+')} to {figure(ends[1], '+')}"),
        ("Relative", relative, sides),
        (f"{lift.gained_word.capitalize()} so far", *lift.gained_figures),
    )


def _means(loss: float, wide: float, outcome: Outcome) -> str:
    ends = sorted(outcome.value_of(within(loss + sign * wide)) for sign in (-1.0, 1.0))
    return f"{outcome.figure(ends[0])} to {outcome.figure(ends[1])}"


def _more(lift: Lift, taken: int) -> str:
    """Forecast how many decisions halve the interval, if all stays as it was."""
    if lift.more_decisions is None:
        return ""
    count = about(max(1, lift.more_decisions - taken))
    if not lift.pooled.known:
        return f"About {count} more decisions until there are figures, if all people answer."
    return (
        f"About {count} more decisions until the interval is half as wide, if as many people "
        "answer as before and the means stay as they are."
    )


def _aside(value: float, outcome: Outcome) -> str:
    """``0.023 lower``."""
    return f"{outcome.figure(abs(value))} {'higher' if value > 0 else 'lower'}"
