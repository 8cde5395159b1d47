"""One person's loss, silence or context changes their own batch's release, and nothing else."""

import asyncio

import numpy as np
import pytest

from discreet.client.chain import Chain
from discreet.design.schedule import WAITING
from discreet.privacy.noise import SeededNoise
from discreet.service.runtime import fit_process
from discreet.service.runtime.service import Service
from discreet.service.storage import sqlite
from discreet.service.storage.document_table import after
from discreet.service.storage.journal import Journal
from service.attack.harness import context

BATCHES = 4
VICTIM = (2, 3)
"""Batch and place of the person who changes their mind."""


class Arrivals:
    """A clock that shows when the person arrives who is served now."""

    now = 0.0

    def time(self):
        return 4e9  # later than the real time at which the experiment began

    def monotonic(self):
        return self.now


class Repeatable(SeededNoise):
    """The same noise in both histories, charged as if it were private."""

    def claim(self, event):
        return event


def history(settings, change, monkeypatch):
    """When batches began and ended, what they were fitted on, and what was published."""
    arrivals, fitted, honest = Arrivals(), {}, fit_process.read_batch
    lengths = [settings.plan.schedule.length(batch) for batch in range(1, BATCHES + 1)]
    places = [(batch, place) for batch, size in enumerate(lengths, 1) for place in range(size)]

    def read_batch(connection, plan, sealer, epoch, batch, *rest):
        fitted[batch] = honest(connection, plan, sealer, epoch, batch, *rest)
        return fitted[batch]

    async def one_by_one(service, times):
        for batch, place in places:
            arrivals.now += 1.0
            await person(service, place, change if (batch, place) == VICTIM else None)
            await service.state.refresh()
            times.append((await service.status())["batches"])
            if place == settings.plan.schedule.length(batch) - 1 and settings.waiting == "gap":
                arrivals.now += settings.window
            times.append((await service.upkeep.once(), service.state.serving.newest))
        arrivals.now += settings.window
        while await service.upkeep.once():
            times.append(service.state.serving.newest)

    async def run():
        service, times = Service(settings), []
        await service.start(upkeep=False)
        try:
            await one_by_one(service, times)
            published = await service.state.read(lambda connection: after(connection, -1))
            return times, Chain(service.state.serving.chain.key).extended(published).released.items
        finally:
            await service.stop()

    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "time", arrivals)
        patched.setattr(fit_process, "SecureNoise", lambda: Repeatable(7))
        patched.setattr(fit_process, "read_batch", read_batch)
        times, released = asyncio.run(run())
    return times, fitted, released


async def person(service, place, change):
    """Everybody does the same, but for the one who changes."""
    number = 999_999 if change == "context" else place
    decision = await service.decisions.decide("caller", context(number))
    assert decision.stored
    if change != "silence":
        await service.decisions.observe(decision.decision, 0.75 if change == "loss" else 0.25)


def rows(batch):
    """Everything of a batch that a fit reads, one row a slot."""
    received = np.where(batch.observed, batch.losses, -1.0)
    return np.concatenate([batch.features, received], axis=1)


def compare(begin, monkeypatch, change, waiting):
    """Two histories that differ in one person."""
    # In shadow mode no release moves an action, so that later batches can be the same.
    # Nor does it stretch the rows of later batches, which would be public too.
    words = {"mode": "shadow", "first_batch": 4, "geometry": "plain", "waiting": waiting}
    # A person comes every second: with a pipeline three batches are under way.
    words |= {"window": 60.0 if waiting == "gap" else 8.0, "settle": 0.0}
    times, fitted, released = history(begin("before", **words), None, monkeypatch)
    times_, fitted_, released_ = history(begin("after", **words), change, monkeypatch)
    assert times == times_, "batches or release times moved"
    most = max(len(each) for each in times if isinstance(each, list))
    assert most == (1 if waiting == "gap" else 3), "as many batches as the settings say"
    for batch, one, other in zip(range(1, BATCHES + 1), released, released_, strict=True):
        different = (rows(fitted[batch]) != rows(fitted_[batch])).any(axis=1)
        expected = [VICTIM[1]] if batch == VICTIM[0] else []
        assert np.flatnonzero(different).tolist() == expected, f"rows of batch {batch}"
        sums, sums_ = one.statistics.response, other.statistics.response
        equal = np.allclose(sums, sums_, rtol=0.0, atol=1e-9)
        assert equal == (batch != VICTIM[0]), f"release of batch {batch}"
        assert (one.records, one.event) == (other.records, other.event)


ON_SQLITE = pytest.mark.parametrize("begun", ["sqlite"], indirect=True)
"""Where the clock can be told what to show."""


@ON_SQLITE
@pytest.mark.parametrize("waiting", WAITING)
@pytest.mark.parametrize("change", ["loss", "silence", "context"])
def test_nothing_else_changes(begun, monkeypatch, change, waiting):
    compare(begun, monkeypatch, change, waiting)


@ON_SQLITE
@pytest.mark.parametrize("waiting", WAITING)
def test_answers_that_move_a_release_are_noticed(begun, monkeypatch, waiting):
    honest = Journal.observe

    def observe(self, connection, items):
        connection.execute("UPDATE batches SET opened = opened + 1 WHERE state = 'open'")
        return honest(self, connection, items)

    monkeypatch.setattr(Journal, "observe", observe)
    with pytest.raises(AssertionError, match="times moved"):
        compare(begun, monkeypatch, "silence", waiting)
