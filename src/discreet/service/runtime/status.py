"""ServiceStatus of the experiment: its public state in figures and sentences."""

from __future__ import annotations

import math
from typing import TypedDict

from discreet.batches.batch_status import UNSTORED, clock_words, full_sentence, open_sentence
from discreet.design.action_names import action_name
from discreet.design.window import may_open
from discreet.errors import CorruptRelease
from discreet.plan.config import to_config
from discreet.plan.plan import Plan
from discreet.privacy.budget import Participation
from discreet.releases.guardrails import GuardrailLift, guardrails
from discreet.service.runtime.release_transaction import LATE
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.settings import ENDED as ENDED_MODE
from discreet.service.storage.batches import BatchState, log_waits, under_way
from discreet.service.storage.database import Connection
from discreet.text import duration

PLAN_ENDED = (
    "The experiment is over, as planned: decisions follow the last policy, and nothing more is "
    "learned."
)


ENDED_EARLY = (
    "An operator has ended the experiment: decisions follow the last policy, and nothing more is "
    "learned. Batches that wait are still released."
)


class BatchEntry(TypedDict):
    """Public facts of a batch under way; times are in seconds since 1970."""

    batch: int
    epoch: int
    slots: int
    taken: int
    state: str
    release: int
    opened: float
    sealed: float | None
    closes: float | None
    due: float | None
    ticks: float | None


class FileState(TypedDict):
    """Comparison of the experiment file with the settings that are served."""

    readable: bool
    differs: list[str]


class ServiceStatus(TypedDict):
    """Public state of an experiment, as ``GET /v1/status`` returns it."""

    experiment: str
    unit: str
    participation: object
    actions: list[str] | None
    n_actions: int
    outcome: object
    epoch: int
    mode: str
    control: object
    ended: bool
    serving: int
    rule: str | None
    chosen: bool
    newest: int
    releases: int
    waiting: str
    journal: str
    window: float
    settle: float
    anchor: str
    now: float
    close_every: float | None
    batches: list[BatchEntry]
    ready: bool
    unready: dict[str, str]
    refused: str | None
    alerts: list[str]
    faults: list[str]
    file: FileState
    text: str


async def status(state: WorkerState) -> ServiceStatus:
    """Return batches, slots taken, the time of the next release, and faults to repair."""
    now, missed, live, ended = await state.read(lambda connection: _facts(state, connection))
    file, often = state.file, state.settings.plan.participation
    return {
        "experiment": state.settings.experiment,
        "unit": state.settings.unit,
        "participation": often and often.to_json() | {"text": often.text, "missed": missed},
        "actions": actions_in_use(state),
        "n_actions": len(state.serving.chain.available_actions.places),
        "outcome": to_config(state.settings.plan.outcome),
        "epoch": state.epoch,
        "mode": state.mode,
        "control": to_config(state.settings.plan.control),
        "ended": ended,
        "serving": state.deciding(),
        "rule": _rule(state),
        "chosen": state.serving.chosen is not None,
        "newest": state.serving.newest,
        "releases": len(state.serving.at(state.serving.newest).items),
        "waiting": state.settings.waiting,
        "journal": state.settings.journal,
        "window": state.settings.window,
        "settle": state.settings.settle,
        "anchor": "beside" if state.anchor_in_folder else "elsewhere",
        "now": now,
        "close_every": state.settings.plan.schedule.seconds,
        "batches": [shown(batch, state.settings.plan.schedule.seconds) for batch in live],
        "ready": state.ready,
        "unready": state.unready,
        "refused": state.refused,
        "alerts": [each.guardrail.name for each in compared_guardrails(state) if each.alert],
        "faults": faults(state),
        "file": {
            "readable": file is None or file.readable,
            "differs": [] if file is None else file.differs,
        },
        "text": " ".join(
            [
                *_sentences(state, live, now, ended),
                *filter(None, [_rule(state)]),
                *_of_people(often, missed),
                *_of_control(state.settings.plan),
            ]
        ),
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
    return {
        "batch": batch.id,
        "slots": batch.size,
        "epoch": batch.epoch,
        "taken": batch.taken,
        "state": batch.state,
        "release": batch.release,
        "opened": batch.opened,
        "sealed": batch.sealed,
        "closes": batch.closes,
        "due": batch.due,
        "ticks": None if every is None or batch.state != "open" else batch.opened + every,
    }


def _facts(state: WorkerState, connection: Connection) -> tuple[float, int, list[BatchState], bool]:
    now, missed = connection.execute(
        f"SELECT {state.database.now}, missed FROM experiment"
    ).fetchone()
    return float(now), int(missed), under_way(connection), _ended(state, connection)


def _ended(state: WorkerState, connection: Connection) -> bool:
    return state.mode == ENDED_MODE or state.slots.ended(connection)


def _of_people(often: Participation | None, missed: int) -> list[str]:
    """Return sentences on what a user may contribute, and how restored backups reduce it."""
    if often is None:
        return []
    sentences = [
        f"One user counts with {often.text}; further requests are served and not learned from."
    ]
    if missed:
        lost = f"{missed:,} release{'s' * (missed > 1)}"
        left = max(often.batches - missed, 0)
        sentences.append(
            f"Restored backups lacked {lost}, which every user counts as having entered: "
            + (
                f"at most {left:,} more batches of each user."
                if left
                else "nothing more is learned."
            )
        )
    return sentences


def compared_guardrails(state: WorkerState) -> tuple[GuardrailLift, ...]:
    """Return the comparisons by guardrails, from releases that may be shown; none before the first
    release of decisions."""
    released = state.serving.chain.deciding
    begun = len(released.items) > released.schedule.imported_batches
    return guardrails(released) if begun and state.settings.plan.guardrails else ()


def _of_control(plan: Plan) -> list[str]:
    """Return a sentence on the control share, if there is one."""
    text = control_words(plan)
    return [f"{text[0].upper()}{text[1:]}: the control group."] if text else []


def control_words(plan: Plan) -> str:
    """Return for instance ``10 % of the decisions get action none``; empty without a control."""
    if plan.control is None:
        return ""
    played = plan.control_action
    what = "actions at random" if played is None else f"action {action_name(plan, played)}"
    whose = "decisions" if plan.participation is None else "users"
    return f"{100 * plan.control.share:g} % of the {whose} get {what}"


def _sentences(state: WorkerState, live: list[BatchState], now: float, ended: bool) -> list[str]:
    sentences, outcomes = faults(state), state.settings.plan.outcome.plural
    waiting = [batch for batch in live if batch.state == "sealed"]
    log = log_waits(state.settings.plan.schedule, live)
    if log:
        sentences.append(
            f"The imported log is released first: {len(live):,} of its batches are left."
        )
    elif waiting:
        sentences.append(_waiting_sentence(waiting, outcomes, now))
    every = state.settings.plan.schedule.seconds
    for batch in live:
        if batch.state == "open":
            left = None if every is None else math.ceil(batch.opened + every - now)
            closes = "" if left is None else clock_words(left, batch.taken)
            sentences.append(open_sentence(batch.id, batch.taken, batch.size, closes))
    if state.mode == ENDED_MODE:
        sentences.append(ENDED_EARLY)
    elif ended:
        sentences.append(PLAN_ENDED)
    elif state.mode == "frozen":
        sentences.append(
            "The experiment is paused: decisions follow the policy, and are not stored."
        )
    elif all(batch.state == "sealed" for batch in live):
        if may_open(state.settings.waiting, len(live)) and not log:
            sentences.append("No batch is open: the next decision opens one.")
        else:
            sentences.append(UNSTORED)
    if state.mode == "shadow":
        default = state.settings.default_name
        named = f", {default}" if isinstance(default, str) else ""
        sentences.append(f"In shadow mode everyone receives the default action{named}.")
    if state.names.incomplete:
        hours = state.settings.remember / 3600
        sentences.append(
            f"A backup was restored less than {hours:,.3g} hours ago: requests with an "
            "Idempotency-Key are served and not stored, since some may have been made before."
        )
    if state.serving.chosen is not None:
        sentences.append(
            f"An operator went back to an older policy (document {state.serving.chosen})."
        )
    if state.anchor_in_folder:
        sentences.append("The anchor is in the folder that it protects: move it to another disk.")
    return sentences


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


_REMEDIES = {
    "start": "The service is starting or stopping: wait.",
    "database": "The database cannot be read ({}): decisions fail. Start its server, mount its "
    "disk, or free some space; the service then continues by itself.",
    "storage": "No row can be stored in the database ({}): decisions fail. Free some space "
    "on its disk, or let this user write there; the service tries again every few seconds.",
    "vault": "The vault is not as it was ({}): decisions fail. Mount its disk or put the vault "
    "back; if the key of an open batch is lost, burn the batch.",
}
_OF_CHAIN = {
    "incomplete": "The documents in the database do not verify, or one that decides is missing: "
    "decisions fail. Restore the database.",
    "set back": "The database lacks what was published, or is another: nothing is decided or "
    "stored. Bring the newest database back; if it is lost, put a backup in place and run "
    "discreet restore.",
    "file replaced": "The file of the database was replaced or removed while it was served: "
    "nothing is decided or stored. Put that file back; or stop the service, put the right one in "
    "place, and run discreet restore.",
}


def faults(state: WorkerState) -> list[str]:
    """Return the faults that an operator should repair, with remedies; reads no database, and
    contains no value of the file or of the environment."""
    sentences, file = [], state.file
    for name, fault in state.unready.items():
        sentences.append(_OF_CHAIN[fault] if name == "chain" else _REMEDIES[name].format(fault))
    if state.anchor_fault == "behind":
        sentences.append(
            "The anchor is older than what was published, or of another experiment: nothing is "
            "released. Put the newest anchor back."
        )
    elif state.anchor_fault is not None:
        sentences.append(
            f"The anchor cannot be read ({state.anchor_fault}): nothing is released, and a "
            "database that is set back may go unnoticed. Bring its disk back."
        )
    if state.refused == LATE:
        sentences.append(
            "The last fit did not end within its deadline and was ended: nothing was spent and no "
            "row was deleted. The service fits again in a new process."
        )
    elif state.refused is not None:
        sentences.append(
            f"The last fit was refused for its {state.refused}: nothing was spent and no row was "
            "deleted. The service fits again; restart it if the refusal stays."
        )
    if file is not None and not file.readable:
        sentences.append(
            "The experiment file is missing or cannot be read: the service runs on its content at "
            "the start, and a restart would fail. Repair the file."
        )
    elif file is not None and file.differs:
        sentences.append(
            f"The experiment file was edited ({', '.join(file.differs)}). The edit has no effect "
            "before a restart, and a restart refuses another plan or unit."
        )
    return sentences
