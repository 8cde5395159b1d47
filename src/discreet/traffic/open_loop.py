"""Open loop: requests leave at a fixed rate, however long the answers take."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from discreet.client import Client, Decision
from discreet.errors import ServiceError
from discreet.outcome import UNIT_LOSS, Outcome

THREADS = 64
"""The most requests under way at once; waiting for a free place counts as latency."""

T = TypeVar("T")


@dataclass(frozen=True)
class Habits:
    """How people answer: the shares of late, missing and doubled losses."""

    late: float = 0.0
    late_by: float = 0.0
    missing: float = 0.0
    duplicates: float = 0.0


@dataclass
class Played:
    """What happened. ``losses`` has (seconds since the start, loss, release) of each decision."""

    losses: list[tuple[float, float, int]] = field(default_factory=list)
    stored: int = 0
    missing: int = 0
    seconds: float = 0.0
    latency: dict[str, list[float]] = field(default_factory=lambda: {"decide": [], "observe": []})
    answers: dict[str, Counter[str]] = field(
        default_factory=lambda: {"decide": Counter(), "observe": Counter()}
    )


def play(
    client: Client,
    contexts: Sequence[Any],
    labels: Sequence[int | str],
    *,
    rate: float,
    habits: Habits,
    outcome: Outcome = UNIT_LOSS,
    users: bool = False,
    seed: int = 0,
) -> Played:
    """Ask for every context and report its loss: 0 where the action is the label, else 1.

    Where the service hears rewards, those are the highest and the lowest reward.
    """
    player = _Player(client, habits, outcome, users, seed)
    return asyncio.run(player.play(contexts, labels, rate))


class _Player:
    def __init__(
        self, client: Client, habits: Habits, outcome: Outcome, users: bool, seed: int
    ) -> None:
        self._client, self._habits, self._users = client, habits, users
        self._outcome = outcome
        self._draws = np.random.default_rng(seed)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="traffic")
        self._played = Played()

    async def play(
        self, contexts: Sequence[Any], labels: Sequence[int | str], rate: float
    ) -> Played:
        began = time.monotonic()
        people = []
        for row, (context, label) in enumerate(zip(contexts, labels, strict=True)):
            due = began + row / rate
            await asyncio.sleep(due - time.monotonic())
            draws = self._draws.random(3)
            person = self._person(row, context, label, due, due - began, draws)
            people.append(asyncio.create_task(person))
        await asyncio.gather(*people)
        self._played.seconds = time.monotonic() - began
        self._pool.shutdown()
        return self._played

    async def _person(
        self, row: int, context: Any, label: int | str, due: float, since: float, draws: Any
    ) -> None:
        """One decision and what becomes of its loss."""
        played, habits = self._played, self._habits
        user = f"person {row}" if self._users else None
        decision: Decision | None = await self._ask(
            "decide", due, lambda: self._client.decide(context, user=user)
        )
        if decision is None:
            return
        loss = float(decision.action != label)
        played.losses.append((since, loss, decision.release))
        played.stored += decision.stored
        if draws[0] < habits.missing:
            played.missing += 1
            return
        if draws[1] < habits.late:
            await asyncio.sleep(habits.late_by)
        told = {self._outcome.word: self._outcome.value_of(loss)}
        for _ in range(1 + (draws[2] < habits.duplicates)):
            await self._ask(
                "observe", time.monotonic(), lambda: self._client.observe(decision, **told)
            )

    async def _ask(self, kind: str, due: float, request: Callable[[], T]) -> T | None:
        """One request; its time counts from the moment it should have left."""
        answer, code = None, "200"
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._pool, request)
        except ServiceError as error:
            code = f"{error.status} {error.code}" if error.status else "no answer"
        self._played.latency[kind].append(time.monotonic() - due)
        self._played.answers[kind][code] += 1
        return answer
