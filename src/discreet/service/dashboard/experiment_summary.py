"""Summary of an experiment in words, for its first page and for the list of a server."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from discreet.design.action_names import action_name
from discreet.design.outcome import Outcome
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget, Participation
from discreet.privacy.ledger import Spent
from discreet.releases.lift import Lift, within
from discreet.service.dashboard.templating import lasting
from discreet.service.runtime.service import Service
from discreet.service.storage import document_table
from discreet.service.storage.database import Connection
from discreet.service.storage.document_table import HOUR
from discreet.text import epsilon_text

MOST_NAMED = 6
"""The most actions that a sentence names."""


@dataclass(frozen=True)
class Headline:
    """A few words in large letters, and a sentence below them."""

    short: str
    text: str


def tried(plan: Plan, actions: list[str] | None, count: int) -> str:
    """Describe the actions, the outcome that is reported, and the control share."""
    named = [f"“{name}”" for name in actions or []]
    if 2 <= len(named) <= MOST_NAMED:
        choice = f"one of {', '.join(named[:-1])} or {named[-1]}"
    else:
        choice = f"one of {count:,} actions"
    better = "smaller is better" if plan.outcome.best == "low" else "larger is better"
    text = (
        f"Each decision picks {choice} for the person who asks, and learns from the "
        f"{plan.outcome.word} that is reported later, {_range(plan)}: {better}."
    )
    if plan.control is None:
        return text
    whose = "decisions" if plan.participation is None else "people"
    share = f"{100 * plan.control.share:g}\N{NO-BREAK SPACE}%"
    return f"{text} {share} of the {whose} get {control(plan)}, to compare."


def control(plan: Plan) -> str:
    """Name the action of the control share."""
    played = plan.control_action
    if played is None:
        return "an action at random"
    return quoted(action_name(plan, played))


def quoted(action: str | int) -> str:
    """An action within a sentence, where a name such as none would be misread."""
    return f"“{action}”" if isinstance(action, str) else f"action {action}"


def _range(plan: Plan) -> str:
    return f"{plan.outcome.low:g} to {plan.outcome.high:g}"


def state(status: dict[str, Any], default: str | int | None) -> Headline:
    """Describe the state of the experiment."""
    if status["ended"]:
        return Headline("ended", "What was learned goes on deciding. Nothing new is learned.")
    given = "the first action that is offered" if default is None else quoted(default)
    return {
        "online": Headline(
            "running", "What was learned so far decides, and each answer adds to it."
        ),
        "shadow": Headline("shadow", f"Everyone gets {given}; the policy learns beside it."),
        "frozen": Headline("paused", "What was learned so far decides. Nothing new is learned."),
    }[status["mode"]]


def coming(status: dict[str, Any], next_size: int) -> Headline:
    """Describe the next release and its time."""
    waiting = [batch for batch in status["batches"] if batch["state"] == "sealed"]
    opened = [batch for batch in status["batches"] if batch["state"] == "open"]
    now, number = status["now"], status["releases"] + 1
    if waiting:
        left = waiting[0]["due"] - now
        when = f"in {lasting(math.ceil(left))}" if left > 0 else "now"
        return Headline(
            f"release {number} {when}",
            f"It changes who gets what. It learns from {waiting[0]['taken']:,} decisions, "
            "and comes at that time however many people answer.",
        )
    storing = not status["ended"] and status["mode"] != "frozen"
    if opened and storing:
        batch = opened[0]
        left = batch["slots"] - batch["taken"]
        return Headline(
            f"after {left:,} more decision{'s' * (left != 1)}",
            f"Then {_answers(status)}, then release {number} changes who gets what."
            + _pace(batch, now),
        )
    if opened and opened[0]["ticks"] is not None:
        left = _rounded(max(0.0, opened[0]["ticks"] - now))
        return Headline(
            f"release {number} by the clock",
            f"Nothing new is learned. What was stored before is released: its batch ends in about "
            f"{left}.",
        )
    if status["ended"]:
        return Headline("nothing", "The experiment has ended: there is no further release.")
    if status["mode"] == "frozen":
        return Headline("nothing", "The experiment is paused. Settings let it run again.")
    return Headline(
        f"after {next_size:,} decisions",
        f"Then {_answers(status)}, then release {number} changes who gets what.",
    )


def _answers(status: dict[str, Any]) -> str:
    return f"answers are awaited for {lasting(status['window'])}"


def _pace(batch: dict[str, Any], now: float) -> str:
    """Estimate when the batch is full at the present rate, or when the clock ends it."""
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


def privacy(spent: Spent, budget: Budget, often: Participation | None) -> Headline:
    """Describe the cost of all releases together for one person, who takes part ``often``.

    Where ``often`` is None, each decision is protected by itself.
    """
    if math.isinf(budget.epsilon):
        return Headline(
            "none", "ε = ∞: what people say is not protected. This is an experiment only."
        )
    short = f"ε = {epsilon_text(spent.epsilon)} of {epsilon_text(budget.epsilon)}"
    if often is not None:
        return Headline(
            short,
            f"Each person's part. A person counts in at most {often.batches:,} "
            f"release{'s' * (often.batches != 1)}; further releases do not add to it.",
        )
    if not spent.epsilon:
        return Headline(
            short, "Each decision's part. It is spent once, with its release; none is yet."
        )
    return Headline(short, "Each decision's part: spent once, with its release, and not growing.")


CERTAIN = ", with 95\N{NO-BREAK SPACE}% certainty, however often you look."


@dataclass(frozen=True)
class LiftAnswer:
    """``short`` is Yes, No, Too early to say, or Nobody can say; ``text`` is a sentence. The mean
    outcomes of both parts are empty before there is a lift."""

    short: str
    text: str
    policy: str = ""
    control: str = ""


def answered(lift: Lift | None, *, compared: bool) -> LiftAnswer:
    """Describe the lift, or the reason why there is none; ``compared``: with a control share."""
    if lift is not None:
        return answer(lift)
    if compared:
        return LiftAnswer(
            "Too early to say", "The first release tells how the policy fared beside the control."
        )
    return LiftAnswer(
        "Nobody can say",
        "This experiment has no control share, so there is nobody to compare with. Give the next "
        "one a control share before it begins.",
    )


def answer(lift: Lift) -> LiftAnswer:
    """Describe the lift by its interval that is valid at any time."""
    line, outcome = lift.pooled, lift.outcome
    if not line.known:
        return LiftAnswer("Too early to say", f"{lift.text[0].upper()}{lift.text[1:]}.", "–", "–")
    apart, wide = outcome.difference_of(line.difference), outcome.error_of(line.anytime)
    unsure = line.helps is None
    short = "Too early to say" if unsure else "Yes" if line.helps else "No"
    span = outcome.high - outcome.low
    low, high = max(apart - wide, -span), min(apart + wide, span)
    if wide >= span:
        interval = "the noise is still larger than any difference."
    elif not unsure:
        near, far = sorted((abs(low), abs(high)))
        interval = (
            f"between {outcome.figure(near)} and {_aside(math.copysign(far, apart), outcome)}"
        ) + CERTAIN
    else:
        interval = f"between {_aside(low, outcome)} and {_aside(high, outcome)}" + CERTAIN
    size = "may still be higher or lower" if unsure else f"is {_aside(apart, outcome)}"
    return LiftAnswer(
        short,
        f"The mean {outcome.word} {size} than that of the control: {interval}",
        *(outcome.figure(outcome.value_of(within(each))) for each in (line.policy, line.control)),
    )


def _aside(value: float, outcome: Outcome) -> str:
    """``0.023 lower``."""
    return f"{outcome.figure(abs(value))} {'higher' if value > 0 else 'lower'}"


@dataclass(frozen=True)
class Summary:
    """Public facts and words; ``hours`` has the decisions of each hour."""

    status: dict[str, Any]
    lift: Lift | None
    tried: str
    state: Headline
    coming: Headline
    helped: LiftAnswer
    began: float
    hours: dict[int, int]

    @property
    def decisions(self) -> int:
        return sum(self.hours.values())

    @property
    def latest(self) -> int:
        """Decisions of the last 24 hours."""
        since = self.status["now"] - 24 * HOUR
        return sum(count for hour, count in self.hours.items() if hour > since)

    @property
    def counted_since(self) -> int | None:
        """The time from which decisions are counted, if it is later than the beginning."""
        first = min(self.hours, default=None)
        return first if first is not None and first > self.began else None


async def summary(service: Service) -> Summary:
    """Read the summary from the database and the newest release."""
    plan, status, lift = service.settings.plan, await service.status(), service.lift()
    began, batches, hours = await service.state.read(_facts)
    return Summary(
        status=status,
        lift=lift,
        tried=tried(plan, status["actions"], status["n_actions"]),
        state=state(status, service.settings.default_name),
        coming=coming(status, service.state.slots.size(batches + 1)),
        helped=answered(lift, compared=plan.control is not None),
        began=began,
        hours=hours,
    )


def _facts(connection: Connection) -> tuple[float, int, dict[int, int]]:
    """Read the beginning of the experiment, the number of batches that were opened and not given
    up, and the decisions of each hour."""
    # The first key is made in the transaction that begins the experiment.
    began = connection.execute("SELECT min(created) FROM keys").fetchone()[0]
    kept = connection.execute("SELECT count(*) FROM batches WHERE state <> 'burned'").fetchone()[0]
    return float(began), int(kept), document_table.decisions_by_hour(connection)
