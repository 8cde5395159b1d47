"""Any order of decisions, late losses, closings and saves: a learner does what a model does."""

import tempfile
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import discreet as dc
from batches.clocked_learners import FREE
from small_plans import small_plan
from store_state import state_of

MARK = 4096
"""The context of decision n is n/4096, so that a row in a fit tells whose it is."""
REFUSALS = {
    "unknown": dc.UnknownDecision,
    "closed": dc.DecisionClosed,
    "conflict": dc.LossConflict,
}
LOSSES = st.sampled_from([0.0, 0.25, 1.0])
WINDOWS = st.sampled_from([0, 1, 5, 12, 1_000, "10s", None])


@dataclass
class Waiting:
    number: int
    size: int
    opened: float = 0.0
    losses: dict = field(default_factory=dict)
    """Ids in the order of decisions; None until a loss is observed."""
    sealed: tuple | None = None
    closed: bool = False


@dataclass
class Model:
    """Batches under way in plain Python: dictionaries and counts, no arrays."""

    first: int
    horizon: int | None
    waiting: str
    decisions_window: int | None
    seconds_window: float | None
    automatic: bool
    every: float | None = None
    decisions: int = 0
    now: float = 0.0
    opened: int = 0
    ids: int = 0
    """One more than the last id."""
    since: float = 0.0
    """When the batch that is open, or opens next, began."""
    live: list = field(default_factory=list)
    released: list = field(default_factory=list)
    """Number, ids and losses of every release."""

    def tick(self):
        """What the clock does: a batch with slots ends, one without goes on to the next tick."""
        while self.every is not None and self.since + self.every <= self.now:
            last = self.live[-1] if self.live else None
            if last is not None and last.sealed is not None and self.waiting == "gap":
                return  # nothing is open
            self.since += self.every
            if last is not None and last.sealed is None:
                last.sealed, last.size = (self.decisions, self.since), len(last.losses)
                if self.waiting == "pipeline" and self._another:
                    self.ids = self._next_start  # numbers that nobody took stay unused

    def over(self, batch, coming=0):
        if batch.sealed is None:
            return False
        made, since = self.decisions + coming - batch.sealed[0], self.now - batch.sealed[1]
        counted = self.decisions_window is not None and made > self.decisions_window
        timed = self.seconds_window is not None and since >= self.seconds_window
        return batch.closed or counted or timed

    def ready(self, coming=0):
        if not self.live or self.live[0].sealed is None:
            return False
        answered = None not in self.live[0].losses.values()
        return (self.automatic and answered) or self.over(self.live[0], coming)

    def release(self):
        batch = self.live.pop(0)
        if self.waiting == "gap":
            self.since = self.now
        self.released.append((batch.number, dict(batch.losses)))

    def decide(self, count):
        """The ids that must be returned."""
        self.tick()
        while self.automatic and self.ready(count):
            self.release()
        ids = [self._slot() for _ in range(count)]
        self.decisions += count
        for batch in self.live:
            if batch.sealed is None and len(batch.losses) == batch.size:
                batch.sealed = (self.decisions, self.now)
                self.since = self.now
        return ids

    def _slot(self):
        last = self.live[-1] if self.live else None
        if last is None or len(last.losses) == last.size:
            if last is not None and self.waiting == "gap":
                return -1
            if not self._another:
                return -1
            size, self.ids = self.first << self.opened, self._next_start
            self.opened += 1
            last = Waiting(self.opened, size)
            self.live.append(last)
        last.losses[self.ids] = None
        self.ids += 1
        return self.ids - 1

    @property
    def _another(self):
        """Whether a batch may follow those that were opened."""
        ends = self.first * (2 ** (self.opened + 1) - 1)
        return self.horizon is None or ends < self.horizon

    @property
    def _next_start(self):
        return self.first * (2**self.opened - 1)

    @property
    def _oldest(self):
        """The first id of the oldest batch under way."""
        number = self.live[0].number if self.live else self.opened + 1
        return self.first * (2 ** (number - 1) - 1)

    def observe(self, reports):
        """The word for what must come of losses by id; all of them are kept, or none."""
        self.tick()
        reports = {id: loss for id, loss in reports.items() if id != -1}
        # The numbers that a clock left unused count as past once their batch was released.
        if any(id < -1 or id >= max(self.ids, self._oldest) for id in reports):
            return "unknown"
        homes = {id: batch for batch in self.live for id in batch.losses}
        if any(id < self._oldest for id in reports):
            return "closed"
        if any(id not in homes for id in reports):
            return "unknown"  # between two batches: a slot that nobody took
        if any(id not in homes or self.over(homes[id]) for id in reports):
            return "closed"
        if any(homes[id].losses[id] not in (None, loss) for id, loss in reports.items()):
            return "conflict"
        for id, loss in reports.items():
            homes[id].losses[id] = loss
        return "kept"


class Conversation(RuleBasedStateMachine):
    @initialize(
        first=st.integers(1, 3),
        horizon=st.none() | st.integers(1, 60),
        waiting=st.sampled_from(["pipeline", "pipeline", "gap"]),
        window=WINDOWS,
        releases=st.sampled_from(["automatic", "on_request"]),
        every=st.sampled_from([None, "7s", "15s"]),
    )
    def begin(self, first, horizon, waiting, window, releases, every):
        seconds = 10.0 if isinstance(window, str) else None
        counted = None if isinstance(window, str) else window
        automatic = releases == "automatic"
        ticks = every and float(every[:-1])
        self.model = Model(first, horizon, waiting, counted, seconds, automatic, ticks)
        rules = {"horizon": horizon, "releases": releases, "close_every": every}
        plan = small_plan(**FREE, **rules, oracle=dc.Ridge(), first_batch=first, growth=2.0)
        self.clock = lambda: self.model.now
        self.fitted = []
        self.listen(dc.Learner(plan, waiting=waiting, window=window, clock=self.clock))

    def listen(self, learner):
        """Note whose rows and which losses each fit reads."""
        honest = learner._store.fit

        def fit(batch, released, ledger):
            rows = np.rint(batch.features[:, 1] * np.sqrt(2) * MARK).astype(int).tolist()
            ids = [self.came[row] for row in rows]
            losses = np.where(batch.observed, batch.losses, 0.0).sum(axis=1).tolist()
            observed = batch.observed.any(axis=1).tolist()
            known = [loss if seen else None for loss, seen in zip(losses, observed, strict=True)]
            number = len(released.items) + 1
            assert batch.records == len(ids)  # no slot that nobody took
            self.fitted.append((number, dict(zip(ids, known, strict=True))))
            return honest(batch, released, ledger)

        learner._store.fit = fit
        self.learner = learner

    def contexts(self, count):
        """Contexts that carry a number of their own, which ``fitted`` turns back into ids."""
        self.came = getattr(self, "came", [])
        return (np.arange(count)[:, None] + len(self.came)) / MARK

    @rule(count=st.integers(0, 12), single=st.booleans())
    def decide(self, count, single):
        contexts = self.contexts(1 if single else count)
        expected = self.model.decide(len(contexts))
        decided = self.learner.decide(contexts[0] if single else contexts)
        self.came += expected
        assert np.atleast_1d(decided.id).tolist() == expected
        assert np.atleast_1d(decided.stored).tolist() == [id >= 0 for id in expected]

    def tell(self, reports):
        ids, losses = np.array(list(reports), dtype=np.int64), np.array(list(reports.values()))
        call = (ids, losses) if len(reports) != 1 else (int(ids[0]), float(losses[0]))
        expected = self.model.observe(reports)
        if expected == "kept":
            self.learner.observe(*call)
            return
        self.learner.status()  # what a clock does happens first
        before = state_of(self.learner._store)
        with pytest.raises(REFUSALS[expected]):
            self.learner.observe(*call)
        assert state_of(self.learner._store) == before

    @rule(data=st.data())
    def observe_anybody(self, data):
        ids = st.integers(-3, self.model.ids + 1)
        self.tell(data.draw(st.dictionaries(ids, LOSSES, min_size=1, max_size=4)))

    @rule(loss=LOSSES, share=st.sampled_from([1, 1, 2, 3]), late=st.integers(0, 12))
    def observe_those_who_came_before(self, loss, share, late):
        """Losses of all batches at once, as they come in with a delay."""
        open_ids = [
            id
            for batch in self.model.live
            if not self.model.over(batch)
            for id, loss_before in batch.losses.items()
            if loss_before is None and id % share == 0 and id < self.model.ids - late
        ]
        self.tell(dict.fromkeys(open_ids, loss))

    @rule(seconds=st.sampled_from([1.0, 6.0, 10.0]))
    def wait(self, seconds):
        self.model.now += seconds

    @rule()
    def set_the_clock_back(self):
        """It shows the old time until it is past it again: nothing ends twice, or later."""
        honest, self.learner._store._clock = self.learner._store._clock, lambda: -1e6
        before = state_of(self.learner._store)
        self.learner.status()
        assert state_of(self.learner._store) == before
        self.learner._store._clock = honest

    @rule()
    def close(self):
        self.model.tick()
        if self.model.live and self.model.live[0].sealed is not None:
            self.learner.close()
            self.model.live[0].closed = True
        else:
            with pytest.raises(dc.NotReady):
                self.learner.close()

    @rule()
    def release(self):
        self.model.tick()
        if self.model.ready():
            size = self.model.live[0].size
            self.model.release()
            assert self.learner.release().records == size
        else:
            self.learner.status()  # what a clock does happens first
            before = state_of(self.learner._store)
            with pytest.raises(dc.NotReady):
                self.learner.release()
            assert state_of(self.learner._store) == before

    @rule()
    def save_and_load(self):
        before = state_of(self.learner._store)
        with tempfile.TemporaryDirectory() as folder:
            self.learner.save(f"{folder}/state")
            self.listen(dc.Learner.load(f"{folder}/state", clock=self.clock))
        assert state_of(self.learner._store) == before

    @invariant()
    def agrees(self):
        if not hasattr(self, "learner"):
            return
        assert self.fitted == self.model.released  # in order, no row twice, none lost
        assert [number for number, _ in self.fitted] == list(range(1, len(self.fitted) + 1))
        assert len(self.learner.ledger.entries) == len(self.fitted)
        self.model.tick()
        status = self.learner.status()
        assert (status.releases, status.decisions) == (len(self.fitted), self.model.decisions)
        shown = [(each.number, each.size, each.taken) for each in status.batches if each.taken]
        assert shown == [(b.number, b.size, len(b.losses)) for b in self.model.live]
        for shown, batch in zip(status.batches, self.model.live, strict=False):
            assert (shown.state == "closed") == self.model.over(batch)
            assert (shown.state == "open") == (batch.sealed is None)


def test_a_slot_that_a_clock_left_unused_is_past_when_its_batch_is():
    state = Conversation()
    state.begin(2, 7, "pipeline", 0, "automatic", "7s")
    state.decide(3, False)
    state.wait(10.0)
    state.decide(0, True)  # the last batch of this horizon is released
    state.tell({0: 0.0, 3: 0.0})
    state.agrees()


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
