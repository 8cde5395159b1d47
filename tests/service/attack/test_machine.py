"""Any order of requests, pauses, restarts and burns: the service does what a small model does."""

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as some
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from discreet.errors import (
    DecisionClosed,
    InvalidInput,
    LossConflict,
    ServiceError,
    UnknownDecision,
)
from discreet.service.runtime import lifecycle, requests
from discreet.service.runtime.service import Service
from discreet.service.secrets import vault
from discreet.service.storage import sqlite
from service.attack.harness import context, write_settings
from service.attack.model import Model

FIRST, WINDOW, MEMORY, EVERY = 2, 10.0, 60.0, 13.0
NAMES = some.none() | some.sampled_from("abcd")
LOSSES = some.sampled_from([0.0, 0.25, 1.0])


class Hands:
    """A clock whose hands the test moves."""

    now = 0.0

    def time(self):
        return 4e9 + self.now  # later than any real moment

    def monotonic(self):
        return self.now


class Life(RuleBasedStateMachine):
    """An experiment from its beginning."""

    decisions = Bundle("decisions")

    @initialize(
        waiting=some.sampled_from(["gap", "pipeline"]), every=some.sampled_from([None, EVERY])
    )
    def begin(self, waiting, every):
        self.folder, self.hands = Path(tempfile.mkdtemp()), Hands()
        self.honest, sqlite.time = (sqlite.time, requests.TIMES), self.hands
        requests.TIMES = 1  # one slot in a lease, however fast they are asked for
        self.loop = asyncio.new_event_loop()
        self.settings = write_settings(
            self.folder,
            first_batch=FIRST,
            window=WINDOW,
            settle=0.0,
            remember=MEMORY,
            lease=1,
            waiting=waiting,
            every=every and f"{every}s",
        )
        lifecycle.begin(self.settings)
        self.model = Model(
            self.settings.plan.schedule.length, WINDOW, self.settings.waiting, MEMORY, every
        )
        self._start()

    def _start(self):
        self.service = Service(self.settings)
        self.run(self.service.start(upkeep=False))

    def run(self, work):
        return self.loop.run_until_complete(work)

    def teardown(self):
        if hasattr(self, "service"):
            self.run(self.service.stop())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            sqlite.time, requests.TIMES = self.honest
            shutil.rmtree(self.folder)

    @rule(target=decisions, name=NAMES, number=some.integers(0, 9))
    def decide(self, name, number):
        batch, repeated = self.model.decide(name)
        requested = self.service.decisions.decide("key", context(number), idempotency=name)
        if repeated == "used":
            with pytest.raises(ServiceError, match="Idempotency-Key must be new"):
                self.run(requested)
            return multiple()
        made = self.run(requested)
        if repeated is not None:
            assert made.decision == repeated
        else:
            assert made.stored == (batch is not None)
            self.model.decided(name, made.decision, batch)
        return made.decision

    @rule(decision=decisions, loss=LOSSES)
    def observe(self, decision, loss):
        expected = self.model.observe(decision, loss)
        try:
            stored = self.run(self.service.decisions.observe(decision, loss))
            assert expected == ("kept" if stored else "unstored")
        except DecisionClosed:
            assert expected == "over"
        except LossConflict:
            assert expected == "conflict"

    @rule(decision=decisions, place=some.integers(0, 20))
    def forge(self, decision, place):
        at = place % len(decision)
        other = "A" if decision[at] != "A" else "B"
        forged = decision[:at] + other + decision[at + 1 :]
        with pytest.raises(UnknownDecision):
            self.run(self.service.decisions.observe(forged, 0.5))

    @rule(seconds=some.sampled_from([1.0, 4.0, WINDOW, MEMORY]))
    def wait(self, seconds):
        self.hands.now += seconds
        self.model.now += seconds

    @rule()
    def upkeep(self):
        # It may have to look first, and one release is made at a time.
        for _ in range(3 + len(self.model.live)):
            self.run(self.service.upkeep.once())
        self.model.upkeep()
        self.run(self.service.upkeep.once())
        kept = {key[1] for key in self.service.state.vault.batches(vault.NAMES)}
        assert all(b.live or self._remembered(b) for b in self.model.batches if b.id in kept)

    @rule(batch=some.integers(0, 4))
    def burn(self, batch):
        found = next((each for each in self.model.live if each.id == batch), None)
        if found is None:
            with pytest.raises(InvalidInput):
                self.run(self.service.burn(batch))
        else:
            self.run(self.service.burn(batch))
            found.state, found.ended = "burned", self.model.now
            self.model.look()

    @rule(mode=some.sampled_from(["online", "frozen", "shadow"]))
    def set_mode(self, mode):
        self.run(self.service.set_mode(mode))
        self.model.mode = mode
        self.model.look()

    @rule()
    def restart(self):
        self.run(self.service.stop())
        self._start()
        self.model.restart()

    @invariant()
    def agree(self):
        if not hasattr(self, "service"):
            return
        status = self.run(self.service.status())
        begin = 4e9
        shown = [(b["batch"], b["slots"], b["taken"], b["state"]) for b in status["batches"]]
        live = self.model.live
        assert shown == [(b.id, b.size, b.taken, b.state) for b in live]
        closes = [b["closes"] and b["closes"] - begin for b in status["batches"]]
        assert closes == [b.closes for b in live]
        assert status["releases"] == self.model.releases
        rows = self.run(self.service.state.read(_counts))
        received = [loss for b in live for loss in b.losses.values() if loss is not None]
        assert rows == (sum(len(b.losses) for b in live), len(received))
        assert {key[1] for key in self.service.state.vault.batches()} == {b.id for b in live}
        named = {key[1] for key in self.service.state.vault.batches(vault.NAMES)}
        late = {b.id for b in self.model.batches if b.ended is None or self._remembered(b)}
        assert late <= named  # the rest is destroyed by the next upkeep

    def _remembered(self, batch):
        return self.model.now < batch.ended + MEMORY


def _counts(connection):
    tables = ("records", "answers")
    return tuple(connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables)


def lives(count):
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=count,
            stateful_step_count=40,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],  # a failing life is short enough to read
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_it_does_what_the_model_does():
    lives(25)


@pytest.mark.long
def test_it_does_what_the_model_does_in_a_thousand_lives():
    lives(1000)


def test_a_second_answer_that_is_believed_is_noticed(monkeypatch):
    from discreet.service.storage import journal

    # The first answer is not looked at again.
    monkeypatch.setattr(journal.Journal, "_stored", lambda *_: {})
    with pytest.raises((AssertionError, KeyError)):
        lives(50)
