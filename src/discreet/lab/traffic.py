"""Simulated traffic: a labelled set is played against a running service at a fixed rate.

The loop is open: requests are sent at the rate, independent of response times.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from discreet.client import Client, Decision
from discreet.data import Dataset, load
from discreet.data.lookup import GENERATORS
from discreet.design.outcome import UNIT_LOSS, Outcome
from discreet.errors import InvalidInput, ServiceError
from discreet.types import JsonMapping, JsonObject, NumpyArray
from discreet.validate import whole

THREADS = 64
"""Largest number of concurrent requests; waiting for a free thread counts as latency."""

T = TypeVar("T")


@dataclass(frozen=True)
class Habits:
    """Shares of late, missing and duplicate losses."""

    late: float = 0.0
    late_by: float = 0.0
    missing: float = 0.0
    duplicates: float = 0.0


@dataclass
class Played:
    """Record of a run. ``losses`` has (seconds since the start, loss, release) of each decision."""

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
    """Request a decision for every context; its loss is 0 if the action is the label, else 1.

    A service with rewards gets its highest and its lowest reward.
    """
    played, draws, began = Played(), np.random.default_rng(seed), time.monotonic()

    async def ask(kind: str, due: float, request: Callable[[], T]) -> T | None:
        """Send one request; its latency counts from the time it was due."""
        answer, code = None, "200"
        try:
            answer = await asyncio.get_running_loop().run_in_executor(pool, request)
        except ServiceError as error:
            code = f"{error.status} {error.code}" if error.status else "no answer"
        played.latency[kind].append(time.monotonic() - due)
        played.answers[kind][code] += 1
        return answer

    async def person(row: int, due: float, late: float, missing: float, twice: float) -> None:
        """Request one decision and report its loss."""
        user = f"person {row}" if users else None
        decision: Decision | None = await ask(
            "decide", due, lambda: client.decide(contexts[row], user=user)
        )
        if decision is None:
            return
        loss = float(decision.action != labels[row])
        played.losses.append((due - began, loss, decision.release))
        played.stored += decision.stored
        if missing < habits.missing:
            played.missing += 1
            return
        if late < habits.late:
            await asyncio.sleep(habits.late_by)
        value = {outcome.word: outcome.value_of(loss)}
        for _ in range(1 + (twice < habits.duplicates)):
            await ask("observe", time.monotonic(), lambda: client.observe(decision, **value))

    async def everybody() -> None:
        people = []
        for row in range(len(contexts)):
            due = began + row / rate
            await asyncio.sleep(due - time.monotonic())
            missing, late, twice = draws.random(3)
            people.append(asyncio.create_task(person(row, due, late, missing, twice)))
        await asyncio.gather(*people)
        played.seconds = time.monotonic() - began

    with ThreadPoolExecutor(THREADS, thread_name_prefix="traffic") as pool:
        asyncio.run(everybody())
    return played


PARTS = 10
"""Number of intervals over which the loss is averaged."""
EXPECTED = ("200", "410 over")
"""Answers of a healthy service; 410 is for a loss that came too late."""


def summary(played: Played) -> JsonObject:
    """Return loss over time, latencies in milliseconds and answers by code."""
    return {
        "seconds": played.seconds,
        "decided": len(played.losses),
        "stored": played.stored,
        "missing": played.missing,
        "loss": float(np.mean([loss for _, loss, _ in played.losses])) if played.losses else None,
        "loss_over_time": _over_time(played),
        "latency_ms": {kind: _percentiles(each) for kind, each in played.latency.items()},
        "answers": {kind: dict(sorted(each.items())) for kind, each in played.answers.items()},
        "errors": sum(
            sum(each.values()) - sum(each[code] for code in EXPECTED)
            for each in played.answers.values()
        ),
    }


def _over_time(played: Played) -> list[JsonObject]:
    """Return the mean loss of intervals with equally many decisions, in the order of requests."""
    parts = np.array_split(np.reshape(sorted(played.losses), (-1, 3)), PARTS)
    return [
        {
            "until": float(part[-1, 0]),
            "decisions": len(part),
            "loss": float(part[:, 1].mean()),
            "release": int(part[:, 2].max()),
        }
        for part in parts
        if len(part)
    ]


def _percentiles(seconds: list[float]) -> dict[str, float] | None:
    if not seconds:
        return None
    found = 1000 * np.quantile(seconds, [0.5, 0.9, 0.99, 1.0])
    return dict(zip(("p50", "p90", "p99", "max"), found.tolist(), strict=True))


def first_rows(name: str, rows: int | None) -> Dataset:
    """Return the first rows of a set; a generated one is made with this number of rows."""
    if rows is None or name in GENERATORS:
        return load(name, rows=rows)
    data = load(name)
    if whole("rows", rows, 1) > data.rows:
        raise InvalidInput(f"rows must be at most {data.rows}; got {rows}. Play fewer.")
    known = None if data.expected is None else data.expected[:rows]
    return replace(data, contexts=data.contexts[:rows], labels=data.labels[:rows], expected=known)


def contexts(data: Dataset, schema: JsonMapping) -> list[Any]:
    """Return every row as a context that the service accepts.

    An array service takes the numbers as they are. Else the first field takes the first column,
    and so on: a number is stretched to the declared range, all else is cut at quantiles: a
    category into its values, a flag into two, a hashed word into ten, a date into hours.
    """
    if data.n_actions > schema["n_actions"]:
        raise InvalidInput(
            f"data must have at most as many classes as the service has actions, "
            f"{schema['n_actions']}; {data.name} has {data.n_actions}. Choose another set."
        )
    features = schema["features"]
    wide = features["dimension"] if features["kind"] == "UnitBall" else len(features["fields"])
    exact = features["kind"] == "UnitBall"
    if data.dimension < wide or (exact and data.dimension != wide):
        raise InvalidInput(
            f"data must have {'' if exact else 'at least '}{wide} columns for the schema of the "
            f"service; {data.name} has {data.dimension}. Choose another set."
        )
    if exact:
        return list(data.contexts.tolist())
    fields = features["fields"]
    columns = [_column(field, data.contexts[:, place]) for place, field in enumerate(fields)]
    names = [field["name"] for field in fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def labels(data: Dataset, schema: JsonMapping) -> list[int | str]:
    """Return the right action of every row; class 0 is the first action of the service."""
    names = schema["actions"]
    numbers: list[int] = data.labels.tolist()
    return [number if names is None else names[number] for number in numbers]


def _column(field: JsonMapping, values: NumpyArray) -> list[Any]:
    if field["kind"] == "Number":
        low, high = float(field["low"]), float(field["high"])
        spread = float(np.ptp(values)) or 1.0
        numbers = low + (high - low) * (values - values.min()) / spread
        return list(np.clip(numbers, low, high).tolist())
    words: list[Any] = {
        "Flag": [False, True],
        "Category": field.get("values", []),
        "Hashed": [f"word {place}" for place in range(10)],
        "Date": [f"2026-01-{1 + hour:02}T{hour:02}:00" for hour in range(24)],
    }[field["kind"]]
    cuts = np.quantile(values, np.arange(1, len(words)) / len(words))
    return [words[place] for place in np.searchsorted(cuts, values, side="right")]
