"""One evaluation of fried (40,768 rounds) and the memory of the process.

    python bench/evaluate.py [--data FOLDER] [--quick] [--json]

For comparison: a Python loop over all rounds that only adds up the losses. Also the cost of the
default plan relative to ReplayBonusPO with one fit per batch and to plain geometry, played in
turns, and of a fit with learned geometry relative to a plain one: at most 3 is the goal.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.batch import Batch
from discreet.data import load
from discreet.oracles import Problem
from discreet.privacy.noise import Noise

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


def cost_of_a_fit(p: int, rows: int, noise: Noise, times: int) -> float:
    """CPU time of a fit with learned geometry over that of a plain one, after one release each."""
    rng = np.random.default_rng(0)
    features = dc.UnitBall(p - 1).map(rng.normal(size=(rows, p - 1)))
    observed = rng.integers(2, size=(rows, 1)) == np.arange(2)
    batch = Batch(features, rng.integers(2, size=(rows, 2)).astype(float), observed)
    calls = []
    for oracle in (dc.PooledRidge(), PLAIN):
        mechanism = oracle.calibrate(Problem(2, p), dc.Budget(1.0, 1e-5))
        before = mechanism.fit(batch, noise.for_batch(1)).statistics
        calls.append(partial(mechanism.fit, batch, noise.for_batch(2), (before,)))
    learned, plain = least_seconds(calls, times)
    return learned / plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="a folder with fried.npz (X, y)")
    parser.add_argument("--quick", action="store_true", help="one repetition")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    arguments = parser.parse_args()
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
    measured = {
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
    for name, value in measured.items():
        print(f"{name:24} {value:>14,.3f}")
    if arguments.json:
        print(json.dumps(measured))


if __name__ == "__main__":
    main()
