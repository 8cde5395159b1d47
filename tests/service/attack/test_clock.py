"""Clocks that are set, forwards and backwards: no release early, late or twice."""

import asyncio
import time

import pytest

from discreet.service.runtime.service import Service
from discreet.service.storage import clock
from service.attack.harness import context

WINDOW = 0.5
SLEWED = 0.01
"""Seconds by which the system's clock, which PostgreSQL reads, may differ from ours in a window."""
JUMPS = [sign * size for size in (1.0, 86_400.0, 366 * 86_400.0) for sign in (1, -1)]


class Wall:
    """The clock of the system, which somebody sets."""

    def __init__(self):
        self.shift = 0.0

    def time(self):
        return time.time() + self.shift

    def monotonic(self):
        return time.monotonic()


@pytest.fixture
def wall(monkeypatch):
    wall = Wall()
    monkeypatch.setattr(clock, "time", wall)
    return wall


async def sealed(service):
    """The moment before the decision that sealed the batch, however slow what follows is."""
    since, asked = None, time.monotonic()
    while (await service.decisions.decide("caller", context(1))).stored:
        since, asked = asked, time.monotonic()
    await service.state.refresh()
    return since


async def released_after(service, since):
    """Seconds until the release of the sealed batch, and that there is no second one."""
    before = service.state.serving.newest
    while not await service.upkeep.once():
        assert time.monotonic() - since < 30
        await asyncio.sleep(0.01)
    took = time.monotonic() - since
    assert service.state.serving.newest == before + 1
    for _ in range(3):
        assert not await service.upkeep.once()
    return took


async def jumped(settings, wall, jump):
    """Seconds from sealing to release, with a jump between them."""
    service = Service(settings)
    await service.start(upkeep=False)
    try:
        since = await sealed(service)
        wall.shift = jump
        return await released_after(service, since)
    finally:
        await service.stop()


@pytest.mark.parametrize("jump", JUMPS)
def test_a_jump_while_it_runs(begun, wall, jump):
    took = asyncio.run(jumped(begun(window=WINDOW, settle=0.0), wall, jump))
    assert WINDOW - SLEWED <= took < WINDOW + 20


@pytest.mark.parametrize("jump", [jump for jump in JUMPS if jump < 0])
def test_a_jump_backwards_while_it_is_stopped(begun, wall, jump):
    """Time goes on from the latest moment that was seen: neither early nor a year late."""
    settings = begun(window=WINDOW, settle=0.0)

    async def run(act):
        service = Service(settings)
        await service.start(upkeep=False)
        try:
            return await act(service)
        finally:
            await service.stop()

    since = asyncio.run(run(sealed))
    wall.shift = jump
    took = asyncio.run(run(lambda service: released_after(service, since)))
    assert WINDOW - SLEWED <= took < WINDOW + 20


def test_a_clock_that_follows_the_system_is_noticed(begun, wall, monkeypatch):
    settings = begun(window=3600, settle=0.0)
    if settings.postgres:
        return  # the server's clock is the only one
    monkeypatch.setattr(clock.Clock, "now", lambda _: wall.time())
    assert asyncio.run(jumped(settings, wall, 7200.0)) < 60
