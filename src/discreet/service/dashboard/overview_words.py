"""What the first page says in words: what is tried, what comes next, what privacy costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from discreet.action_names import action_name
from discreet.formatting import epsilon_text
from discreet.plan import Plan
from discreet.privacy.budget import Budget
from discreet.privacy.ledger import Spent
from discreet.privacy.participation import Participation
from discreet.service.dashboard.templating import lasting

MOST_NAMED = 6
"""The most actions that a sentence names."""


@dataclass(frozen=True)
class Told:
    """A few words in large letters, and a sentence below them."""

    short: str
    text: str


def tried(plan: Plan, actions: list[str] | None, count: int) -> str:
    """Which actions there are, what is heard of them, and who is compared with them."""
    named = [f"“{name}”" for name in actions or []]
    if 2 <= len(named) <= MOST_NAMED:
        choice = f"one of {', '.join(named[:-1])} or {named[-1]}"
    else:
        choice = f"one of {count:,} actions"
    better = "smaller is better" if plan.outcome.best == "low" else "larger is better"
    said = (
        f"Each decision picks {choice} for the person who asks, and learns from the "
        f"{plan.outcome.word} that is reported later, {_range(plan)}: {better}."
    )
    if plan.control is None:
        return said
    whose = "decisions" if plan.participation is None else "people"
    share = f"{100 * plan.control.share:g}\N{NO-BREAK SPACE}%"
    return f"{said} {share} of the {whose} get {control(plan)}, to compare."


def control(plan: Plan) -> str:
    """What the control share gets."""
    played = plan.control_action
    if played is None:
        return "an action at random"
    return quoted(action_name(plan, played))


def quoted(action: str | int) -> str:
    """An action within a sentence, where a name such as none would be misread."""
    return f"“{action}”" if isinstance(action, str) else f"action {action}"


def _range(plan: Plan) -> str:
    return f"{plan.outcome.low:g} to {plan.outcome.high:g}"


def state(status: dict[str, Any], default: str | int | None) -> Told:
    """Whether it runs, and what that means for people."""
    if status["ended"]:
        return Told("ended", "What was learned goes on deciding. Nothing new is learned.")
    given = "the first action that is offered" if default is None else quoted(default)
    return {
        "online": Told("running", "What was learned so far decides, and each answer adds to it."),
        "shadow": Told("shadow", f"Everyone gets {given}; the policy learns beside it."),
        "frozen": Told("paused", "What was learned so far decides. Nothing new is learned."),
    }[status["mode"]]


def coming(status: dict[str, Any], next_size: int) -> Told:
    """What comes next, and when."""
    waiting = [batch for batch in status["batches"] if batch["state"] == "sealed"]
    opened = [batch for batch in status["batches"] if batch["state"] == "open"]
    now, number = status["now"], status["releases"] + 1
    if waiting:
        left = waiting[0]["due"] - now
        when = f"in {lasting(math.ceil(left))}" if left > 0 else "now"
        return Told(
            f"release {number} {when}",
            f"It changes who gets what. It learns from {waiting[0]['taken']:,} decisions, "
            "and comes at that time however many people answer.",
        )
    storing = not status["ended"] and status["mode"] != "frozen"
    if opened and storing:
        batch = opened[0]
        left = batch["slots"] - batch["taken"]
        return Told(
            f"after {left:,} more decision{'s' * (left != 1)}",
            f"Then {_answers(status)}, then release {number} changes who gets what."
            + _pace(batch, now),
        )
    if opened and opened[0]["ticks"] is not None:
        left = _rounded(max(0.0, opened[0]["ticks"] - now))
        return Told(
            f"release {number} by the clock",
            f"Nothing new is learned. What was stored before is released: its batch ends in about "
            f"{left}.",
        )
    if status["ended"]:
        return Told("nothing", "The experiment has ended: there is no further release.")
    if status["mode"] == "frozen":
        return Told("nothing", "The experiment is paused. Settings let it run again.")
    return Told(
        f"after {next_size:,} decisions",
        f"Then {_answers(status)}, then release {number} changes who gets what.",
    )


def _answers(status: dict[str, Any]) -> str:
    return f"answers are awaited for {lasting(status['window'])}"


def _pace(batch: dict[str, Any], now: float) -> str:
    """When a batch will be full if decisions go on as they came, or when a clock ends it."""
    passed, left = now - batch["opened"], batch["slots"] - batch["taken"]
    paced = left * passed / batch["taken"] if batch["taken"] > 1 and passed > 0 else math.inf
    ends = (batch["ticks"] or math.inf) - now
    if ends < paced:
        return f" The clock ends the batch in about {_rounded(max(0.0, ends))}, full or not."
    return f" At this pace that is in about {_rounded(paced)}." if paced < math.inf else ""


def _rounded(seconds: float) -> str:
    """An estimate: days, hours or minutes, without a second unit."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        if seconds >= length or unit == "second":
            count = max(1, round(seconds / length))
            return f"{count:,} {unit}{'s' * (count != 1)}"
    raise AssertionError


def privacy(spent: Spent, budget: Budget, often: Participation | None) -> Told:
    """What all releases together may cost whoever is protected: a person who takes part ``often``,
    or, where that is None, each decision by itself."""
    if math.isinf(budget.epsilon):
        return Told("none", "ε = ∞: what people say is not protected. This is an experiment only.")
    short = f"ε = {epsilon_text(spent.epsilon)} of {epsilon_text(budget.epsilon)}"
    if often is not None:
        return Told(
            short,
            f"Each person's part. A person counts in at most {often.batches:,} "
            f"release{'s' * (often.batches != 1)}; further releases do not add to it.",
        )
    if not spent.epsilon:
        return Told(short, "Each decision's part. It is spent once, with its release; none is yet.")
    return Told(short, "Each decision's part: spent once, with its release, and not growing.")
