"""Clocks that are set, forwards and backwards: no release early, late or twice."""

import asyncio

import pytest

from discreet.service.runtime.service import Service
from discreet.service.storage import sqlite
from service.attack.harness import context
from service.conftest import time_passes

WINDOW = 3600.0
JUMPS = [sign * size for size in (1.0, 86_400.0, 366 * 86_400.0) for sign in (1, -1)]


class Wall:
    """The clock of the system, which somebody sets, and the seconds that really pass."""

    def __init__(self):
        self.shift, self.passed = 0.0, 0.0

    def time(self):
        return 4e9 + self.passed + self.shift

    def monotonic(self):
        return self.passed

    def passes(self, settings, seconds):
        """Seconds pass; those of a server are its own, and nobody sets its clock here."""
        self.passed += seconds
        if settings.postgres:
            time_passes(settings, seconds)


@pytest.fixture
def wall(monkeypatch):
    wall = Wall()
    monkeypatch.setattr(sqlite, "time", wall)
    return wall


async def sealed(service):
    while (await service.decisions.decide("caller", context(1))).stored:
        pass
    await service.state.refresh()


async def released_in_time(service, wall):
    """One release, when the window of the sealed batch is over and not before."""
    before = service.state.serving.newest
    for seconds in (0.0, WINDOW / 2):
        wall.passes(service.settings, seconds)
        assert not await service.upkeep.once(), "a release before its time"
    wall.passes(service.settings, WINDOW / 2)
    assert await service.upkeep.once(), "no release at its time"
    assert service.state.serving.newest == before + 1
    for _ in range(3):
        assert not await service.upkeep.once()


async def running(settings, act):
    service = Service(settings)
    await service.start(upkeep=False)
    try:
        await act(service)
    finally:
        await service.stop()


def jumped(settings, wall, jump):
    """A jump between seal and release."""

    async def jumps(service):
        await sealed(service)
        wall.shift = jump
        await released_in_time(service, wall)

    asyncio.run(running(settings, jumps))


@pytest.mark.parametrize("jump", JUMPS)
def test_a_jump_while_it_runs(begun, wall, jump):
    jumped(begun(window=WINDOW), wall, jump)


@pytest.mark.parametrize("jump", [jump for jump in JUMPS if jump < 0])
def test_a_jump_backwards_while_it_is_stopped(begun, wall, jump):
    """Time goes on from the latest moment that was seen: neither early nor a year late."""
    settings = begun(window=WINDOW)
    asyncio.run(running(settings, sealed))
    wall.shift = jump
    asyncio.run(running(settings, lambda service: released_in_time(service, wall)))


def test_a_clock_that_follows_the_system_is_noticed(begun, wall, monkeypatch):
    settings = begun(window=WINDOW)
    if settings.postgres:
        return  # the server's clock is the only one
    monkeypatch.setattr(sqlite.Clock, "now", lambda _: wall.time())
    with pytest.raises(AssertionError, match="before its time"):
        jumped(settings, wall, 2 * WINDOW)
