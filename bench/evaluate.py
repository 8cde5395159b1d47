"""One evaluation of fried (40,768 rounds) and the memory of the process.

    python bench/evaluate.py [--data FOLDER] [--quick] [--json]

For comparison: a Python loop over all rounds that only adds up the losses. Also the cost of the
default plan relative to ReplayBonusPO with one fit per batch, played in turns.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.data import load


def cost_of_the_default(contexts: np.ndarray, labels: np.ndarray, times: int) -> float:
    """CPU time of the default plan over that of ReplayBonusPO with Ridge: the least of each."""
    problem = {
        "n_actions": 2,
        "features": dc.UnitBall(contexts.shape[1]),
        "budget": dc.Budget(epsilon=1.0, delta=1e-5),
    }
    plans = (dc.Plan(**problem), dc.Plan(**problem, policy=dc.ReplayBonusPO(), oracle=dc.Ridge()))
    least = [float("inf")] * 2
    for _ in range(times):
        for i, plan in enumerate(plans):
            start = time.process_time()
            dc.evaluate(plan, contexts, labels, seed=0)
            least[i] = min(least[i], time.process_time() - start)
    return least[0] / least[1]


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
    measured = {
        "rounds": len(labels),
        "loss": result.loss,
        "seconds": float(np.median(seconds)),
        "rounds/s": len(labels) / float(np.median(seconds)),
        "default / ReplayBonusPO": cost_of_the_default(
            contexts, labels, 1 if arguments.quick else 7
        ),
        "ratio to a bare loop": float(np.median(np.asarray(loop) / np.asarray(seconds))),
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    for name, value in measured.items():
        print(f"{name:24} {value:>14,.3f}")
    if arguments.json:
        print(json.dumps(measured))


if __name__ == "__main__":
    main()
