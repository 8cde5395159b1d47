"""Decide and observe, row by row, beside Vowpal Wabbit on the same stream; then in bulk.

    python bench/decide.py [--rows 4096] [--data FOLDER] [--json]

The stream is fried (FOLDER/fried.npz if given, our generator otherwise). Vowpal Wabbit runs
SquareCB on multi-line examples through its Python API, as its tutorials do: one predict and
one learn per row. Ratios compare rows per second in one process; above 1 we are faster.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import discreet as dc
from discreet.data import load

POLICIES = {
    "SquareCB": dc.SquareCB(scale=16.0, exponent=0.5),
    "VanillaPO": dc.VanillaPO(scale=32.0),
    "ReplayBonusPO": dc.ReplayBonusPO(learning_rate=0.1, bonus=0.01),
    "default plan": None,
}
ROUNDS = 3
"""Repetitions of the row-by-row runs; the median ratio is reported."""
SLICE = 64
"""Rows after which the next contender has its turn, so that a slow moment affects all."""


class Part(NamedTuple):
    """What a contender needed for a slice of the stream, and lost on it."""

    seconds: float
    losses: float


def fried(folder: str | None) -> tuple[np.ndarray, np.ndarray]:
    if folder:
        with np.load(Path(folder) / "fried.npz") as file:
            return file["X"].astype(np.float64), file["y"].astype(np.int64)
    data = load("fried")
    return data.contexts, data.labels


def plan_for(policy: object) -> dc.Plan:
    """A plan with plain ridge; for None the default policy and oracle, which learns a geometry."""
    chosen = {} if policy is None else {"policy": policy, "oracle": dc.Ridge(ridge=0.01)}
    budget = dc.Budget(epsilon=1.0, delta=1e-5)
    return dc.Plan(n_actions=2, features=dc.UnitBall(10), budget=budget, **chosen)


def ours_row_by_row(policy: object, x: np.ndarray, y: np.ndarray) -> Iterator[Part]:
    learner = dc.Learner(plan_for(policy))
    for rows, labels in slices(x, y):
        total, start = 0.0, time.perf_counter()
        for row, label in zip(rows, labels, strict=True):
            decision = learner.decide(row)
            loss = float(decision.action != label)
            total += loss
            learner.observe(decision.id, loss=loss)
        yield Part(time.perf_counter() - start, total)


def vowpal_row_by_row(x: np.ndarray, y: np.ndarray) -> Iterator[Part]:
    import vowpalwabbit

    vw = vowpalwabbit.Workspace("--cb_explore_adf --squarecb -q ca --quiet")
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(x.shape[1])]
    for rows, labels in slices(x, y):
        total, start = 0.0, time.perf_counter()
        for row, label in zip(rows, labels, strict=True):
            shared = "shared |c " + " ".join(
                f"{name}:{value:.6g}" for name, value in zip(names, row, strict=True)
            )
            probabilities = vw.predict([shared, "|a a0", "|a a1"])
            action = int(rng.random() >= probabilities[0])
            loss = float(action != label)
            total += loss
            lines = [shared, "|a a0", "|a a1"]
            lines[1 + action] = f"0:{loss}:{probabilities[action]:.6g} |a a{action}"
            vw.learn(lines)
        yield Part(time.perf_counter() - start, total)
    vw.finish()


def slices(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for first in range(0, len(x), SLICE):
        yield x[first : first + SLICE], y[first : first + SLICE]


def row_by_row(x: np.ndarray, y: np.ndarray) -> dict[str, tuple[float, float]]:
    """Rows per second and mean loss of each contender, all on the same rows, in turns."""
    contenders = {"VowpalWabbit": vowpal_row_by_row(x, y)}
    contenders |= {name: ours_row_by_row(policy, x, y) for name, policy in POLICIES.items()}
    parts = {name: [] for name in contenders}
    for together in zip(*contenders.values(), strict=True):
        for name, part in zip(contenders, together, strict=True):
            parts[name].append(part)
    sums = {name: np.sum(each, axis=0) for name, each in parts.items()}
    return {name: (len(x) / seconds, losses / len(x)) for name, (seconds, losses) in sums.items()}


def bulk(policy: object, x: np.ndarray, y: np.ndarray, releases: int) -> float:
    """Decisions per second for 10,000 rows in one call, after ``releases`` releases."""
    learner = dc.Learner(plan_for(policy), waiting="gap")
    row = 0
    while len(learner.released.items) < releases:
        take = slice(row, row + 4096)
        decisions = learner.decide(x[take])
        kept = decisions.stored
        wrong = (decisions.action != y[take]).astype(float)
        learner.observe(decisions.id[kept], loss=wrong[kept])
        row = (row + int(kept.sum())) % (len(x) - 4096)
        if learner._store.ready():
            learner.release()
    rows = np.resize(x, (10_000, x.shape[1]))
    best = 0.0
    for _ in range(20):
        start = time.perf_counter()
        learner.decide(rows)
        best = max(best, len(rows) / (time.perf_counter() - start))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--data", help="a folder with fried.npz (X, y)")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    arguments = parser.parse_args()
    rows = 256 if arguments.quick else arguments.rows
    x, y = fried(arguments.data)
    result: dict[str, float] = {"rows": rows}
    row_by_row(x[:64], y[:64])  # imports, caches
    rounds = [row_by_row(x[:rows], y[:rows]) for _ in range(ROUNDS)]
    for name in rounds[0]:
        result[f"{name} loss"] = rounds[0][name][1]
        rates = np.array([(each[name][0], each["VowpalWabbit"][0]) for each in rounds])
        result[f"{name} rows/s"] = float(np.median(rates[:, 0]))
        result[f"{name} ratio"] = float(np.median(rates[:, 0] / rates[:, 1]))
    result["SquareCB bulk/s"] = bulk(POLICIES["SquareCB"], x, y, releases=10)
    result["ReplayBonusPO bulk/s"] = bulk(POLICIES["ReplayBonusPO"], x, y, releases=10)
    result["VanillaPO bulk/s"] = bulk(POLICIES["VanillaPO"], x, y, releases=10)
    for name, value in result.items():
        print(f"{name:28} {value:>14,.3f}")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
