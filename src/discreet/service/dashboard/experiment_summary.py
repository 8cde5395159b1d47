"""Summary of an experiment in words, for its first page and for the list of a server."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.design.action_names import action_name
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget, Participation
from discreet.privacy.ledger import Spent
from discreet.releases.lift import Lift
from discreet.service.dashboard.lift_answer import LiftAnswer, answered
from discreet.service.dashboard.page_data import release_counts
from discreet.service.dashboard.templating import lasting, minute
from discreet.service.runtime.service import Service
from discreet.service.runtime.status import BatchEntry, ServiceStatus
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
        f"Each decision picks {choice} for a person. Later its {plan.outcome.word} is reported "
        f"({_range(plan)}, {better}), and the policy learns from it."
    )
    if plan.control is None:
        return text
    whose = "decisions" if plan.participation is None else "people"
    share = f"{100 * plan.control.share:g}\N{NO-BREAK SPACE}%"
    return f"{text} {share} of the {whose} are the control group and get {control(plan)}."


def control(plan: Plan) -> str:
    """Name the action of the control share."""
    played = plan.control_action
    if played is None:
        return "an action at random"
    return quoted(action_name(plan, played))


def quoted(action: str | int) -> str:
    """Return an action within a sentence, where a name such as none would be misread."""
    return f"“{action}”" if isinstance(action, str) else f"action {action}"


def _range(plan: Plan) -> str:
    return f"{plan.outcome.low:g} to {plan.outcome.high:g}"


def state(status: ServiceStatus, default: str | int | None) -> Headline:
    """Describe the state of the experiment."""
    if status["ended"]:
        return Headline("ended", "Decisions follow the last release. Nothing more is learned.")
    given = "the first action that is offered" if default is None else quoted(default)
    return {
        "online": Headline("running", "Each release improves the policy that decides."),
        "shadow": Headline(
            "shadow", f"Everyone gets {given}; the policy learns in the background."
        ),
        "frozen": Headline("paused", "Decisions follow the last release. Nothing new is learned."),
    }[status["mode"]]


@dataclass(frozen=True)
class Pace:
    """Decisions per second of the last hour or two; ``stopped`` is the time of the latest decision
    if so long a silence would have a chance below one in a thousand at that pace."""

    per_second: float = 0.0
    stopped: float | None = None


def pace(hours: dict[int, int], latest: float | None, began: float, now: float) -> Pace:
    """Return the pace of decisions, by the hour and the time of the latest one."""
    since = max(began, (now // HOUR - 1) * HOUR)
    count = sum(each for hour, each in hours.items() if hour + HOUR > since)
    if latest is None or latest <= since or not count:
        return Pace(stopped=latest)
    per_second, silence = count / (latest - since), now - latest
    stopped = silence >= SHORTEST and per_second * silence > UNLIKELY
    return Pace(0.0, latest) if stopped else Pace(count / (now - since))


SHORTEST = 30.0
"""Seconds without a decision that say nothing: counts are stored every ten seconds."""
UNLIKELY = -math.log(0.001)


def coming(status: ServiceStatus, next_size: int, flow: Pace) -> Headline:
    """Describe the next release and its time."""
    waiting = [batch for batch in status["batches"] if batch["state"] == "sealed"]
    opened = [batch for batch in status["batches"] if batch["state"] == "open"]
    now, number = status["now"], status["releases"] + 1
    if waiting:
        left = (waiting[0]["due"] or now) - now
        when = f"in {lasting(math.ceil(left))}" if left > 0 else "now"
        return Headline(
            f"release {number} {when}",
            f"It learns from {waiting[0]['taken']:,} decisions and changes who gets what. Its time "
            "is fixed, however many people answer.",
        )
    storing = not status["ended"] and status["mode"] != "frozen"
    if opened and storing:
        batch = opened[0]
        left = batch["slots"] - batch["taken"]
        return Headline(
            f"after {left:,} more decision{'s' * (left != 1)}",
            f"Then {_answers(status)}, then release {number} changes who gets what."
            + _ahead(batch, now, flow),
        )
    if opened and opened[0]["ticks"] is not None:
        rest = _rounded(max(0.0, opened[0]["ticks"] - now))
        return Headline(
            f"release {number} at a fixed time",
            f"Nothing new is stored. The decisions stored before are released: their batch ends in "
            f"about {rest}.",
        )
    if status["ended"]:
        return Headline("nothing", "The experiment has ended: there is no further release.")
    if status["mode"] == "frozen":
        return Headline("nothing", "The experiment is paused. Settings let it run again.")
    return Headline(
        f"after {next_size:,} decisions",
        f"Then {_answers(status)}, then release {number} changes who gets what.",
    )


def _answers(status: ServiceStatus) -> str:
    return f"answers are awaited for {lasting(status['window'])}"


def _ahead(batch: BatchEntry, now: float, flow: Pace) -> str:
    """Estimate when the batch is full at the present pace, or when its time limit ends it."""
    left = batch["slots"] - batch["taken"]
    paced = left / flow.per_second if flow.per_second else math.inf
    ends = (batch["ticks"] or math.inf) - now
    if ends < paced:
        return f" The batch ends in about {_rounded(max(0.0, ends))}, full or not."
    if flow.stopped is not None:
        return f" No decision has come since {minute(flow.stopped)}."
    return f" At the present pace that is in about {_rounded(paced)}." if paced < math.inf else ""


def _rounded(seconds: float) -> str:
    """Return an estimate: days, hours or minutes, without a second unit."""
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
            f"For each person, all releases together. A person counts in at most {often.batches:,} "
            f"release{'s' * (often.batches != 1)}; further releases do not add to it.",
        )
    if not spent.epsilon:
        return Headline(
            short, "For each decision: spent once, with its release. Nothing is released yet."
        )
    return Headline(
        short, "For each decision: spent once, with its release. More releases do not add to it."
    )


@dataclass(frozen=True)
class Summary:
    """Public facts and words; ``hours`` has the decisions of each hour."""

    status: ServiceStatus
    lift: Lift | None
    tried: str
    state: Headline
    coming: Headline
    helped: LiftAnswer
    began: float
    hours: dict[int, int]
    released: dict[int, float]
    deciding: int
    """The release that decides now; 0 at the start."""

    @property
    def releases(self) -> str:
        """``8 releases so far``, and which one decides where it is not the newest."""
        count, now = self.status["releases"], self.deciding
        text = f"{count:,} release{'s' * (count != 1)} so far"
        if now == count:
            return f"{text}."
        decides = f"release {now} decides" if now else "decisions follow the start"
        if self.status["chosen"]:
            return f"{text}; {decides}, as an operator chose."
        return f"{text}; {decides} until the next batch opens."

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
        """Return the time from which decisions are counted, if it is later than the beginning."""
        first = min(self.hours, default=None)
        return first if first is not None and first > self.began else None


async def summary(service: Service) -> Summary:
    """Read the summary from the database and the newest release."""
    plan, status, lift = service.settings.plan, await service.status(), service.lift()
    began, batches, hours, latest, times = await service.state.read(_facts)
    links, unstored = service.state.serving.chain.links, service.state.decided
    if unstored:  # by this worker, in the last seconds
        latest, hour = status["now"], int(status["now"] // HOUR) * HOUR
        hours[hour] = hours.get(hour, 0) + unstored
    flow = pace(hours, latest, began, status["now"])
    return Summary(
        status=status,
        lift=lift,
        tried=tried(plan, status["actions"], status["n_actions"]),
        state=state(status, service.settings.default_name),
        coming=coming(status, service.state.slots.size(batches + 1), flow),
        helped=answered(
            lift,
            None if plan.control is None else control(plan),
            ended=status["ended"] and not status["batches"],
            taken=sum(batch["taken"] for batch in status["batches"]),
        ),
        began=began,
        hours=hours,
        released={
            link.release.number: times[link.number]
            for link in links
            if link.release is not None and link.number in times
        },
        deciding=release_counts(links)[status["serving"]],
    )


def _facts(
    connection: Connection,
) -> tuple[float, int, dict[int, int], float | None, dict[int, float]]:
    """Read the beginning of the experiment, the number of batches that were opened and not given
    up, the decisions of each hour, the time of the latest one, and the times of releases."""
    # The first key is made in the transaction that begins the experiment.
    began = connection.execute("SELECT min(created) FROM keys").fetchone()[0]
    kept = connection.execute("SELECT count(*) FROM batches WHERE state <> 'burned'").fetchone()[0]
    return (
        *(float(began), int(kept), document_table.decisions_by_hour(connection)),
        *(document_table.last_decision(connection), document_table.release_times(connection)),
    )
