"""Decisions with a schema of eight columns beside plain arrays: python bench/schema.py [--json].

Row by row, a learner decides dicts and arrays of as many features; the ratio of the rates is that
of medians. A frame is decided by a learner in one call; the best time is reported.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import discreet as dc

ROUNDS = 5
"""Repetitions, interleaved; the median is reported, since machines are noisy."""
DEVICES = ["phone", "tablet", "desk"]
COLUMNS = [
    dc.Number("age", 0, 100),
    dc.Number("visits", 0, 50, clip=True),
    dc.Number("income", 1_000, 1_000_000, log=True, clip=True),
    dc.Number("hours", 0, 24, indicator=True),
    dc.Flag("member"),
    dc.Category("device", DEVICES, other=True),
    dc.Category("plan", [1, 2, 3]),
]
LAST = {"Date": dc.Date("at"), "Hashed": dc.Hashed("town", 32)}


def columns(n: int) -> dict[str, Any]:
    """Made-up people."""
    rng = np.random.default_rng(0)
    hours = rng.uniform(0, 24, n)
    hours[rng.random(n) < 0.1] = np.nan
    start = np.datetime64("2026-01-01T00:00:00")
    return {
        "age": rng.integers(0, 101, n),
        "visits": rng.poisson(5, n),
        "income": np.exp(rng.normal(10, 1, n)),
        "hours": hours,
        "member": rng.random(n) < 0.5,
        "device": rng.choice([*DEVICES, "watch"], n),
        "plan": rng.integers(1, 4, n),
        "at": start + rng.integers(0, 31_536_000, n).astype("timedelta64[s]"),
        "town": np.array([f"town {place}" for place in rng.zipf(1.5, n) % 5000]),
    }


def plan_for(features: Any) -> dc.Plan:
    return dc.Plan(n_actions=3, features=features, budget=dc.Budget(epsilon=1.0, delta=1e-5))


def experienced(features: Any, contexts: Any, releases: int = 10) -> dc.Learner:
    """A learner after some releases, whose policy therefore has something to read."""
    learner = dc.Learner(plan_for(features))
    while len(learner.released.items) < releases:
        decisions = learner.decide(contexts)
        learner.observe(decisions.id, np.full(len(contexts), 0.5))
    return learner


def row_by_row(learner: dc.Learner, rows: Any) -> float:
    """Decisions per second, one call each."""
    start = time.perf_counter()
    for row in rows:
        learner.decide(row)
    return len(rows) / (time.perf_counter() - start)


def whole_frame(learner: dc.Learner, frame: Any) -> tuple[float, float]:
    """Seconds to map a frame, and for a learner to decide it."""
    start = time.perf_counter()
    learner.plan.features.map(frame)
    mapped = time.perf_counter() - start
    start = time.perf_counter()
    learner.decide(frame)
    return mapped, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--frame", type=int, default=100_000, help="rows of the frame")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    arguments = parser.parse_args()
    rows = 256 if arguments.quick else arguments.rows
    made = columns(2_000 if arguments.quick else arguments.frame)
    result: dict[str, float] = {}
    for kind, last in LAST.items():
        schema = dc.Schema([*COLUMNS, last])
        names = [field.name for field in schema.fields]
        frame = pd.DataFrame({name: made[name] for name in names})
        dicts = frame.head(rows).to_dict("records")
        if kind == "Date":
            for each in dicts:
                each["at"] = each["at"].isoformat()
        arrays = np.random.default_rng(2).normal(size=(rows, schema.p - 1)) / 10
        named = experienced(schema, frame.head(4096))
        plain = experienced(dc.UnitBall(schema.p - 1), arrays)
        rates: dict[str, list[float]] = {"dicts": [], "arrays": []}
        for _ in range(1 if arguments.quick else ROUNDS):
            rates["arrays"].append(row_by_row(plain, arrays))
            rates["dicts"].append(row_by_row(named, dicts))
        medians = {name: float(np.median(each)) for name, each in rates.items()}
        result |= {f"{kind}, {name} rows/s": rate for name, rate in medians.items()}
        result[f"{kind}, ratio"] = medians["dicts"] / medians["arrays"]
        for library, one in {"pandas": frame, "polars": pl.from_pandas(frame)}.items():
            mapped, decided = np.min([whole_frame(named, one) for _ in range(ROUNDS)], axis=0)
            result[f"{kind}, {library} frame mapped s"] = mapped
            result[f"{kind}, {library} frame decided s"] = decided
    for name, value in result.items():
        print(f"{name:36} {value:>14,.3f}")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
