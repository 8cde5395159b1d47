"""Summary of an experiment in words, for its first page and for the list of a server."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from discreet.client.chain import Link
from discreet.client.pages import counted, minute
from discreet.design.action_names import action_name
from discreet.plan.plan import Plan
from discreet.releases.lift import Lift
from discreet.service.runtime.service import Service
from discreet.service.runtime.status import ServiceStatus
from discreet.service.storage import document_table
from discreet.service.storage.database import Connection
from discreet.service.storage.document_table import HOUR
from discreet.text import about, duration, roughly

DAY = 86_400
SHORTEST = 30.0
"""Seconds without a decision that say nothing: counts are stored every ten seconds."""
UNLIKELY = -math.log(0.001)
EARLY = "Too early to say"
MODES = {"online": "running", "shadow": "shadow", "frozen": "paused", "ended": "ended"}
"""Modes as the pages call them."""
DOCUMENT_KINDS = {
    "genesis": "start",
    "release": "release",
    "burn": "batch given up",
    "restore": "backup restored",
    "actions": "actions changed",
}


def document_names(links: Iterable[Link]) -> dict[int, str]:
    """Return the names by number; a document between two releases names the release before it."""
    found, count = {}, 0
    for link in links:
        if link.release is not None:
            count = link.release.number
            found[link.number] = f"release {count}"
        else:
            after = f" after release {count}" if count else ""
            found[link.number] = DOCUMENT_KINDS.get(link.kind, link.kind) + after
    return found


@dataclass(frozen=True)
class Headline:
    """An answer in a few words and in a sentence. That to "Did it help?" may have figures with
    their intervals, and how many ``more`` decisions narrow the interval."""

    short: str
    text: str
    facts: tuple[tuple[str, str, str], ...] = ()
    more: str = ""


def answer(
    lift: Lift | None, control: str | None = "", *, ended: bool = False, taken: int = 0
) -> Headline:
    """Describe the lift by its interval for any time, or say why there is none.

    ``taken`` counts the decisions since the last release.
    """
    if control is None:
        return Headline(
            "Not compared",
            "This experiment has no control group, so there is nothing to compare with. Give the "
            "next one a control share before it begins.",
        )
    if lift is None:
        return Headline(EARLY, "The first release compares the policy with the control group.")
    line, outcome, unsure = lift.pooled, lift.outcome, lift.pooled.helps is None
    short = "Yes" if line.helps else "No" if not unsure else "Unclear" if ended else EARLY
    more = _more(lift, taken) if unsure and not ended else ""
    if not line.known:
        text = f"So few {outcome.plural} are known that the noise exceeds every difference."
        return Headline(short, text, more=more)
    difference, wide = outcome.difference_of(line.difference), outcome.error_of(line.anytime)
    span = outcome.high - outcome.low
    low, high = max(difference - wide, -span), min(difference + wide, span)

    def aside(value: float) -> str:
        return f"{outcome.figure(abs(value))} {'higher' if value > 0 else 'lower'}"

    def mean(name: str, loss: float, error: float) -> tuple[str, str, str]:
        middle, *ends = (lift.mean_of(loss + k * error) for k in (0.0, -1.0, 1.0))
        first, last = map(outcome.figure, sorted(ends))
        return name, outcome.figure(middle), f"{first} to {last}"

    ends = aside(low), aside(high)
    if not unsure:
        near, far = sorted((low, high), key=abs)
        ends = outcome.figure(abs(near)), aside(math.copysign(far, difference))
    interval = "the noise is still larger than any difference."
    if wide < span:
        certain = "with 95\N{NO-BREAK SPACE}% certainty, however often you look."
        interval = f"between {ends[0]} and {ends[1]}, {certain}"
    size = "may still be higher or lower" if unsure else f"is {aside(difference)}"
    text = f"The mean {outcome.word} {size} than that of the control group: {interval}"
    signed = [outcome.figure(each, "+") for each in (difference, low, high)]
    facts = (
        mean("Policy", line.policy, line.policy_error),
        mean(f"Control, {control}", line.control, line.control_error),
        ("Difference", signed[0], f"{signed[1]} to {signed[2]}"),
        ("Relative", *lift.relative_figures),
        (f"{lift.gained_word.capitalize()} so far", *lift.gained_figures),
    )
    return Headline(short, text, facts, more)


def _more(lift: Lift, taken: int) -> str:
    """Forecast how many decisions halve the interval, if all stays as it was."""
    if lift.more_decisions is None:
        return ""
    until = "there are figures, if all people answer."
    if lift.pooled.known:
        until = "the interval is half as wide, if as many people answer as before and the means "
        until += "stay as they are."
    return f"About {about(max(1, lift.more_decisions - taken))} more decisions until {until}"


def control(plan: Plan) -> str | None:
    """Name the action of the control share, if there is one."""
    if plan.control is None:
        return None
    played = plan.control_action
    return "an action at random" if played is None else quoted(action_name(plan, played))


def quoted(action: str | int) -> str:
    """Return an action within a sentence, where a name such as none would be misread."""
    return f"“{action}”" if isinstance(action, str) else f"action {action}"


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


def coming(status: ServiceStatus, next_size: int, flow: Pace) -> Headline:
    """Describe the next release and its time."""
    first = {batch["state"]: batch for batch in reversed(status["batches"])}
    waiting, opened = first.get("sealed"), first.get("open")
    now, number = status["now"], status["releases"] + 1
    then = f"Then answers are awaited for {duration(status['window'])}, then release {number} "
    then += "changes who gets what."
    if waiting:
        left = (waiting["due"] or now) - now
        when = f"in {duration(math.ceil(left))}" if left > 0 else "now"
        text = f"It learns from {waiting['taken']:,} decisions and changes who gets what. Its time "
        text += "is fixed, however many people answer."
        return Headline(f"release {number} {when}", text)
    ends = (opened["ticks"] or math.inf) - now if opened else math.inf
    paused = status["ended"] or status["mode"] == "frozen"
    if opened and not paused:
        left = opened["slots"] - opened["taken"]
        paced = left / flow.per_second if flow.per_second else math.inf
        when = ""
        if ends < paced:  # its time limit ends it
            when = f" The batch ends in about {roughly(ends / DAY)}, full or not."
        elif flow.stopped is not None:
            when = f" No decision has come since {minute(flow.stopped)}."
        elif paced < math.inf:
            when = f" At the present pace that is in about {roughly(paced / DAY)}."
        return Headline(f"after {counted(left, 'more decision')}", then + when)
    if ends < math.inf:
        text = "Nothing new is stored. The decisions stored before are released: their batch ends "
        return Headline(
            f"release {number} at a fixed time", f"{text}in about {roughly(ends / DAY)}."
        )
    if status["ended"]:
        return Headline("nothing", "The experiment has ended: there is no further release.")
    if paused:
        return Headline("nothing", "The experiment is paused. Settings let it run again.")
    return Headline(f"after {counted(next_size, 'decision')}", then)


@dataclass(frozen=True)
class Summary:
    """Public facts and words; ``hours`` has the decisions of each hour, and ``deciding`` is the
    release that decides now, 0 at the start. ``control`` and ``default`` name actions."""

    plan: Plan
    status: ServiceStatus
    lift: Lift | None
    control: str | None
    default: str
    coming: Headline
    helped: Headline
    began: float
    hours: dict[int, int]
    released: dict[int, float]
    deciding: int

    @property
    def state(self) -> str:
        return "ended" if self.status["ended"] else MODES[self.status["mode"]]

    @property
    def releases(self) -> str:
        """``8 releases so far``, and which one decides where it is not the newest."""
        count, now = self.status["releases"], self.deciding
        text = f"{counted(count, 'release')} so far"
        if now == count:
            return f"{text}."
        decides = f"release {now} decides" if now else "none of them decides"
        chosen = self.status["chosen"]
        until = ", as an operator chose" if chosen else " until the next batch opens"
        return f"{text}; {decides}{until}."

    @property
    def decisions(self) -> int:
        return sum(self.hours.values())

    @property
    def latest(self) -> int:
        since = self.status["now"] - DAY
        return sum(count for hour, count in self.hours.items() if hour > since)


async def summary(service: Service) -> Summary:
    """Read the summary from the database and the newest release."""
    plan, status, lift = service.settings.plan, await service.status(), service.lift()
    began, batches, hours, latest, times = await service.state.read(_facts)
    default, named = service.settings.default_name, control(plan)
    chain, unstored = service.state.serving.chain, service.state.decided
    if unstored:  # by this worker, in the last seconds
        latest, hour = status["now"], int(status["now"] // HOUR) * HOUR
        hours[hour] = hours.get(hour, 0) + unstored
    flow = pace(hours, latest, began, status["now"])
    return Summary(
        plan=plan,
        status=status,
        lift=lift,
        control=named,
        default="the first action that is offered" if default is None else quoted(default),
        coming=coming(status, service.state.slots.size(batches + 1), flow),
        helped=answer(
            lift,
            named,
            ended=status["ended"] and not status["batches"],
            taken=sum(batch["taken"] for batch in status["batches"]),
        ),
        began=began,
        hours=hours,
        released={
            link.release.number: times[link.number]
            for link in chain.links
            if link.release is not None and link.number in times
        },
        deciding=len(chain.until(status["serving"]).releases),
    )


def _facts(c: Connection) -> tuple[float, int, dict[int, int], float | None, dict[int, float]]:
    """Read the beginning, batches that were not given up, and times of decisions and releases."""
    # The first key is made in the transaction that begins the experiment.
    began = float(c.execute("SELECT min(created) FROM keys").fetchone()[0])
    unburned = int(c.execute("SELECT count(*) FROM batches WHERE state <> 'burned'").fetchone()[0])
    hours, times = document_table.decisions_by_hour(c), document_table.release_times(c)
    return began, unburned, hours, document_table.last_decision(c), times
