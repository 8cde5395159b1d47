"""Status of batches under way, in public words, for learner and service.

Slots taken, decisions made and clocks are public. Losses are not, and nothing here reads one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from discreet.batches.batch_slots import BatchSlots
from discreet.batches.memory_store import MemoryStore
from discreet.text import duration

UNSTORED = "Until that release, decisions are served and not stored."
AT_HORIZON = (
    "The last batch before the horizon is never fitted: decisions are served and not stored."
)


def open_sentence(number: int, taken: int, size: int, closes: str = "") -> str:
    """Describe a batch with free slots; ``closes`` are words about its clock."""
    return f"Batch {number} is open: {taken:,} of {size:,} decisions so far{closes}."


def clock_words(left: float, taken: int) -> str:
    """Describe what the clock will do to an open batch in ``left`` seconds."""
    when = f"in {duration(max(0.0, left))}"
    return f"; it closes {when}, full or not" if taken else f"; its time limit begins again {when}"


def full_sentence(number: int, outcomes: str, end: str, word: str = "full") -> str:
    """Describe a full or closed batch: the outcomes it waits for, and the end of the waiting."""
    return f"Batch {number} is {word} and waits for {outcomes}; {end}"


@dataclass(frozen=True)
class BatchStatus:
    """Status of one batch under way. ``state`` is open, waiting (for losses) or closed (to them).

    A waiting batch is closed by the decision after ``closes_after`` more, or ``closes_in`` seconds
    from now; both are None without a window. An open one is closed to slots ``closes_in`` seconds
    from now if the plan has a clock; ``by_clock`` means that this happened before it was full.
    """

    number: int
    size: int
    taken: int
    state: str
    closes_after: int | None = None
    closes_in: float | None = None
    by_clock: bool = False

    @property
    def end(self) -> str:
        """Describe the end of the waiting."""
        if self.closes_after is not None:
            return f"after {self.closes_after:,} more decisions"
        if self.closes_in is not None:
            return f"in {duration(self.closes_in)}"
        return "when close() declares the rest missing"


@dataclass(frozen=True)
class LearnerStatus:
    """Status of a learner; ``str`` gives its sentences."""

    releases: int
    decisions: int
    batches: tuple[BatchStatus, ...]
    sentences: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def learner_status(store: MemoryStore) -> LearnerStatus:
    """Return the status of a learner's store."""
    store.seal_by_clock()
    releases = len(store.released.items)
    batches = tuple(_status(store, batch) for batch in store.batches)
    sentences = [f"Release {releases} is the newest: it decides until the next one."]
    if releases == 0:
        knows = "with the prior" if store.released.prior else "without having learnt anything"
        sentences = [f"Nothing was released yet: the policy decides {knows}."]
    sentences += filter(None, [store.released.rule_text])
    sentences += [_sentence(store, each) for each in batches]
    if not batches or batches[-1].state != "open":
        sentences.append(UNSTORED if store.waiting == "gap" and batches else AT_HORIZON)
    return LearnerStatus(releases, store.now().decisions, batches, tuple(sentences))


def _status(store: MemoryStore, batch: BatchSlots) -> BatchStatus:
    now, sealed, window, schedule = store.now(), batch.sealed, store.window, store.plan.schedule
    after = left = None
    state = "open" if sealed is None else "closed" if store.over(batch) else "waiting"
    if sealed is None and schedule.seconds is not None:
        left = schedule.seconds - (now.seconds - batch.opened)
    if sealed is not None and state == "waiting" and window.decisions is not None:
        after = window.decisions - (now.decisions - sealed.decisions)
    if sealed is not None and state == "waiting" and window.seconds is not None:
        left = window.seconds - (now.seconds - sealed.seconds)
    early = batch.size < schedule.length(batch.number)
    return BatchStatus(batch.number, batch.size, batch.taken, state, after, left, early)


def _sentence(store: MemoryStore, batch: BatchStatus) -> str:
    if batch.state == "open":
        closes = "" if batch.closes_in is None else clock_words(batch.closes_in, batch.taken)
        return open_sentence(batch.number, batch.taken, batch.size, closes)
    word = "closed at its time limit" if batch.by_clock else "full"
    by = "the next decide" if store.plan.releases == "automatic" else "release()"
    if batch.number > len(store.released.items) + 1:
        by += f", after batch {batch.number - 1},"
    outcomes = store.plan.outcome.plural
    if batch.state == "closed":
        return f"Batch {batch.number} is {word} and takes no more {outcomes}; {by} releases it."
    early = "when all have come, or else " if store.on_last_answer else ""
    end = f"{by} releases it {early}{batch.end}."
    return full_sentence(batch.number, outcomes, end, word)
