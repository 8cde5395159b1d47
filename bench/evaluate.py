"""One evaluation of fried (40,768 rounds) and the memory of the process.

    python bench/evaluate.py [--data FOLDER] [--quick] [--rates] [--json]

For comparison: a Python loop over all rounds that only adds up the losses. Also the cost of the
default plan relative to ReplayBonusPO with one fit per batch and to plain geometry, played in
turns, and of a fit with learned geometry relative to a plain one: at most 3 is the goal.

With --rates it measures only evaluations and fits of the default plan in CPU time, as rates that
``compare.py`` compares with another commit: at least 1/1.2 of those before a change of the default.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.data import load
from discreet.privacy.noise import Noise

# In commits before November 18, 2026, it is in another module.
Batch = import_module(
    "discreet." + ("batch" if find_spec("discreet.batch") else "rows.batch")
).Batch

SIZES = ((2_000, 5, 20), (20_000, 5, 5), (40_000, 2, 5))
"""Rows, actions and repetitions of an evaluation with ten columns."""
PLAIN = dc.PooledRidge(geometry="plain", floor=0.4)


def least_seconds(calls: list[Callable[[], object]], times: int) -> list[float]:
    """The least CPU time of each call, called in turns."""
    least = [float("inf")] * len(calls)
    for _ in range(times):
        for i, call in enumerate(calls):
            start = time.process_time()
            call()
            least[i] = min(least[i], time.process_time() - start)
    return least


def costs_of_the_default(contexts: np.ndarray, labels: np.ndarray, times: int) -> dict[str, float]:
    """CPU time of the default plan over that of ReplayBonusPO with Ridge, and of plain geometry."""
    problem = {
        "n_actions": 2,
        "features": dc.UnitBall(contexts.shape[1]),
        "budget": dc.Budget(epsilon=1.0, delta=1e-5),
    }
    plans = [dc.Plan(**problem, oracle=each) for each in (dc.PooledRidge(), dc.Ridge(), PLAIN)]
    default, single, plain = least_seconds(
        [partial(dc.evaluate, plan, contexts, labels, seed=0) for plan in plans], times
    )
    return {
        "default / ReplayBonusPO": default / single,
        "default / plain geometry": default / plain,
    }


def rates() -> dict[str, float]:
    """Rounds per second of evaluations, and fits per second, of the default plan in CPU time."""
    measured = {}
    for rows, actions, times in SIZES:
        rng = np.random.default_rng(0)
        contexts = rng.uniform(-1.0, 1.0, size=(rows, 10)) / math.sqrt(10)
        labels = (contexts @ rng.normal(size=(10, actions))).argmax(1)
        budget = dc.Budget(epsilon=1.0, delta=1e-6)
        plan = dc.Plan(n_actions=actions, features=dc.UnitBall(10), budget=budget)
        (seconds,) = least_seconds([partial(dc.evaluate, plan, contexts, labels, seed=0)], times)
        measured[f"{rows:,} rows, {actions} actions, rounds/s"] = rows / seconds
    for name, noise, times in (("float", dc.SeededNoise(0), 200), ("exact", dc.SecureNoise(), 20)):
        for rows in (100, 2_000):
            (seconds,) = least_seconds([fit_of(dc.PooledRidge(), 11, rows, noise)], times)
            measured[f"{name} fit of {rows:,} rows/s"] = 1.0 / seconds
    return measured


def cost_of_a_fit(p: int, rows: int, noise: Noise, times: int) -> float:
    """CPU time of a fit with learned geometry over that of a plain one, after one release each."""
    calls = [fit_of(oracle, p, rows, noise) for oracle in (dc.PooledRidge(), PLAIN)]
    learned, plain = least_seconds(calls, times)
    return learned / plain


def fit_of(oracle: dc.PooledRidge, p: int, rows: int, noise: Noise) -> Callable[[], object]:
    """A fit of so many rows, after one release."""
    rng = np.random.default_rng(0)
    features = dc.UnitBall(p - 1).map(rng.normal(size=(rows, p - 1)))
    observed = rng.integers(2, size=(rows, 1)) == np.arange(2)
    batch = Batch(features, rng.integers(2, size=(rows, 2)).astype(float), observed)
    mechanism = oracle.calibrate(dc.Problem(2, p), dc.Budget(1.0, 1e-5))
    before = mechanism.fit(batch, noise.for_batch(1)).statistics
    return partial(mechanism.fit, batch, noise.for_batch(2), (before,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="a folder with fried.npz (X, y)")
    parser.add_argument("--quick", action="store_true", help="one repetition")
    parser.add_argument("--rates", action="store_true", help="only rates of the default plan")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    arguments = parser.parse_args()
    measured = rates() if arguments.rates else costs(arguments)
    for name, value in measured.items():
        print(f"{name:40} {value:>14,.3f}")
    if arguments.json:
        print(json.dumps(measured))


def costs(arguments: argparse.Namespace) -> dict[str, float]:
    """One evaluation of fried, its memory, and the cost of the default relative to other plans."""
    if arguments.data:
        with np.load(Path(arguments.data) / "fried.npz") as file:
            contexts, labels = file["X"].astype(np.float64), file["y"].astype(np.int64)
    else:
        data = load("fried:40768")
        contexts, labels = data.contexts, data.labels
    plan = dc.Plan(
        n_actions=2,
        features=dc.UnitBall(contexts.shape[1]),
        policy=dc.VanillaPO(scale=32.0),
        oracle=dc.Ridge(ridge=0.01),
        budget=dc.Budget(epsilon=1.0, delta=1e-5),
    )
    seconds, loop = [], []
    for _ in range(1 if arguments.quick else 5):
        start = time.perf_counter()
        result = dc.evaluate(plan, contexts, labels, seed=0)
        seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        total = 0.0
        for loss in result.losses:
            total += loss
        loop.append(time.perf_counter() - start)
    times = 1 if arguments.quick else 7
    return {
        "rounds": len(labels),
        "loss": result.loss,
        "seconds": float(np.median(seconds)),
        "rounds/s": len(labels) / float(np.median(seconds)),
        **costs_of_the_default(contexts, labels, times),
        **{
            f"fit p={p} n={rows} {name}": cost_of_a_fit(p, rows, noise, times)
            for name, noise in (("float", dc.SeededNoise(0)), ("exact", dc.SecureNoise()))
            for p in (10, 50)
            for rows in (1000, 20000)
        },
        "ratio to a bare loop": float(np.median(np.asarray(loop) / np.asarray(seconds))),
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    main()
