"""Status of the experiment: its public state in figures and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from discreet.batches.batch_status import UNSTORED, clock_words, full_sentence, open_sentence
from discreet.design.action_names import action_name
from discreet.design.schedule import may_open
from discreet.errors import CorruptRelease
from discreet.plan.config import to_config
from discreet.plan.plan import Plan
from discreet.releases.guardrails import GuardrailLift, guardrails
from discreet.service.runtime.release_transaction import LATE
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.settings import ENDED as ENDED_MODE
from discreet.service.storage.batches import BatchState, log_waits, under_way
from discreet.service.storage.database import Connection
from discreet.text import duration

ServiceStatus = dict[str, Any]
"""Public state of an experiment, as ``GET /v1/status`` returns it."""
BatchEntry = dict[str, Any]
"""Public facts of a batch under way; times are in seconds since 1970."""
PLAN_ENDED = (
    "The experiment is over, as planned: decisions follow the last policy, and nothing more is "
    "learned."
)
REMEDIES = {
    "start": "The service is starting or stopping: wait.",
    "database": "The database cannot be read ({}): decisions fail. Start its server, mount its "
    "disk, or free some space; the service then continues by itself.",
    "storage": "No row can be stored in the database ({}): decisions fail. Free some space "
    "on its disk, or let this user write there; the service tries again every few seconds.",
    "vault": "The vault is not as it was ({}): decisions fail. Mount its disk or put the vault "
    "back; if the key of an open batch is lost, burn the batch.",
    "chain incomplete": "The documents in the database do not verify, or one that decides is "
    "missing: decisions fail. Restore the database.",
    "chain set back": "The database lacks what was published, or is another: nothing is decided or "
    "stored. Bring the newest database back; if it is lost, put a backup in place and run "
    "discreet restore.",
    "chain file replaced": "The file of the database was replaced or removed while it was served: "
    "nothing is decided or stored. Put that file back; or stop the service, put the right one in "
    "place, and run discreet restore.",
    "anchor": "The anchor cannot be read ({}): nothing is released, and a database that is set "
    "back may go unnoticed. Bring its disk back.",
    "anchor behind": "The anchor is older than what was published, or of another experiment: "
    "nothing is released. Put the newest anchor back.",
    "refused": "The last fit was refused for its {}: nothing was spent and no row was deleted. "
    "The service fits again; restart it if the refusal stays.",
    "late": "The last fit did not end within its deadline and was ended: nothing was spent and no "
    "row was deleted. The service fits again in a new process.",
    "file unreadable": "The experiment file is missing or cannot be read: the service runs on its "
    "content at the start, and a restart would fail. Repair the file.",
    "file edited": "The experiment file was edited ({}). The edit has no effect before a restart, "
    "and a restart refuses another plan or unit.",
}
"""Faults that an operator should repair, with remedies."""


async def status(state: WorkerState) -> ServiceStatus:
    """Return batches, slots taken, the time of the next release, and faults to repair."""

    def facts(connection: Connection) -> tuple[float, int, list[BatchState], bool]:
        query = f"SELECT {state.database.now}, missed FROM experiment"
        now, missed = connection.execute(query).fetchone()
        ended = state.mode == ENDED_MODE or state.slots.ended(connection)
        return float(now), int(missed), under_way(connection), ended

    now, missed, live, ended = await state.read(facts)
    settings, plan, serving, file = state.settings, state.settings.plan, state.serving, state.file
    often, every = plan.participation, plan.schedule.seconds
    text = [*faults(state), *_sentences(state, live, now, ended, missed)]
    return {
        "experiment": settings.experiment,
        "unit": settings.unit,
        "participation": often and often.to_json() | {"text": often.text, "missed": missed},
        "actions": actions_in_use(state),
        "n_actions": len(serving.chain.available_actions.places),
        "outcome": to_config(plan.outcome),
        "epoch": state.epoch,
        "mode": state.mode,
        "control": to_config(plan.control),
        "ended": ended,
        "serving": state.deciding(),
        "rule": _rule(state),
        "chosen": serving.chosen is not None,
        "newest": serving.newest,
        "releases": len(serving.at(serving.newest).items),
        "waiting": settings.waiting,
        "journal": settings.journal,
        "window": settings.window,
        "settle": settings.settle,
        "anchor": "beside" if state.anchor_in_folder else "elsewhere",
        "now": now,
        "close_every": every,
        "batches": [shown(batch, every) for batch in live],
        "ready": not state.unready,
        "unready": state.unready,
        "refused": state.refused,
        "alerts": [each.guardrail.name for each in compared_guardrails(state) if each.alert],
        "faults": faults(state),
        "file": {
            "readable": file is None or file.readable,
            "differs": [] if file is None else file.differs,
        },
        "text": " ".join(text),
    }


def _rule(state: WorkerState) -> str | None:
    """Return a sentence on the rule that decides the next request, from its published signal."""
    try:
        return state.serving.at(state.deciding()).rule_text
    except CorruptRelease:  # the document that decides is missing; ``faults`` says so
        return None


def actions_in_use(state: WorkerState) -> list[str] | None:
    """Return the names of the actions; None if they have none, or have features."""
    plan = state.settings.plan
    if plan.actions is None or plan.catalogue is not None:
        return None
    return [str(each) for each in state.serving.chain.available_actions.places]


def shown(batch: BatchState, every: float | None) -> BatchEntry:
    """Return the public facts of a batch: the number of slots taken, never their content; and for
    an open batch the time at which the clock ends it."""
    facts = asdict(batch)
    ticks = None if every is None or batch.state != "open" else batch.opened + every
    return {"batch": facts.pop("id"), "slots": facts.pop("size"), **facts, "ticks": ticks}


def compared_guardrails(state: WorkerState) -> tuple[GuardrailLift, ...]:
    """Return the comparisons by guardrails, from releases that may be shown; none before the first
    release of decisions."""
    released = state.serving.chain.deciding
    begun = len(released.items) > released.schedule.imported_batches
    return guardrails(released) if begun and state.settings.plan.guardrails else ()


def control_words(plan: Plan) -> str:
    """Return for instance ``10 % of the decisions get action none``; empty without a control."""
    if plan.control is None:
        return ""
    played = plan.control_action
    what = "actions at random" if played is None else f"action {action_name(plan, played)}"
    whose = "decisions" if plan.participation is None else "users"
    return f"{100 * plan.control.share:g} % of the {whose} get {what}"


def _sentences(
    state: WorkerState, live: list[BatchState], now: float, ended: bool, missed: int
) -> Iterator[str]:
    settings, plan = state.settings, state.settings.plan
    often, every, default = plan.participation, plan.schedule.seconds, settings.default_name
    waiting = [batch for batch in live if batch.state == "sealed"]
    if log := log_waits(plan.schedule, live):
        yield f"The imported log is released first: {len(live):,} of its batches are left."
    elif waiting:
        yield _waiting_sentence(waiting, plan.outcome.plural, now)
    for batch in live:
        if batch.state == "open":
            left = None if every is None else math.ceil(batch.opened + every - now)
            closes = "" if left is None else clock_words(left, batch.taken)
            yield open_sentence(batch.id, batch.taken, batch.size, closes)
    if state.mode == ENDED_MODE:
        yield (
            "An operator has ended the experiment: decisions follow the last policy, and nothing "
            "more is learned. Batches that wait are still released."
        )
    elif ended:
        yield PLAN_ENDED
    elif state.mode == "frozen":
        yield "The experiment is paused: decisions follow the policy, and are not stored."
    elif len(waiting) == len(live):
        opens = may_open(settings.waiting, len(live)) and not log
        yield "No batch is open: the next decision opens one." if opens else UNSTORED
    if state.mode == "shadow":
        named = f", {default}" if isinstance(default, str) else ""
        yield f"In shadow mode everyone receives the default action{named}."
    if state.names.incomplete:
        yield (
            f"A backup was restored less than {settings.remember / 3600:,.3g} hours ago: requests "
            "with an Idempotency-Key are served and not stored, since some may have been made "
            "before."
        )
    if state.serving.chosen is not None:
        yield f"An operator went back to an older policy (document {state.serving.chosen})."
    if state.anchor_in_folder:
        yield "The anchor is in the folder that it protects: move it to another disk."
    if rule := _rule(state):
        yield rule
    if often is not None:
        yield (
            f"One user counts with {often.text}; further requests are served and not learned from."
        )
    if often is not None and missed:
        yield (
            f"Restored backups lacked {missed:,} release{'s' * (missed > 1)}, which every user "
            f"counts as having entered: at most {max(often.batches - missed, 0):,} more batches "
            "of each user."
        )
    if control := control_words(plan):
        yield f"{control}: the control group."


def _waiting_sentence(waiting: list[BatchState], outcomes: str, now: float) -> str:
    """Return one sentence on all batches that wait; the oldest is released first."""
    left = (waiting[0].due or 0.0) - now
    end = f"in {duration(math.ceil(left))}, however many people answer." if left > 0.0 else "now."
    if len(waiting) == 1:
        word = "closed at its time limit" if waiting[0].by_clock else "full"
        return full_sentence(waiting[0].id, outcomes, f"its release is due {end}", word)
    word = "closed" if any(batch.by_clock for batch in waiting) else "full"
    return (
        f"{len(waiting):,} batches, {waiting[0].id} to {waiting[-1].id}, are {word} and wait for "
        f"{outcomes}; the oldest is released first, due {end}"
    )


def faults(state: WorkerState) -> list[str]:
    """Return the faults that an operator should repair, with remedies; reads no database, and
    contains no value of the file or of the environment."""
    file, refused, anchor = state.file, state.refused, state.anchor_fault
    found = [
        (f"chain {fault}" if name == "chain" else name, fault)
        for name, fault in state.unready.items()
    ]
    if anchor is not None:
        found.append(("anchor behind" if anchor == "behind" else "anchor", anchor))
    if refused is not None:
        found.append(("late" if refused == LATE else "refused", refused))
    if file is not None and not file.readable:
        found.append(("file unreadable", ""))
    elif file is not None and file.differs:
        found.append(("file edited", ", ".join(file.differs)))
    return [REMEDIES[name].format(fault) for name, fault in found]
