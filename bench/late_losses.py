"""What late and missing losses cost a Learner: its mean loss beside that of immediate answers.

    python bench/late_losses.py [--data fried waveform twonorm] [--rows 20000] [--seeds 5]
                                [--epsilon 2 inf] [--late 0 1000 5000] [--missing 0 0.1]
                                [--waiting pipeline|gap] [--jobs 2] [--quick]

The default plan decides in calls of 50. A loss comes after so many more decisions as --late says,
or with the probability --missing never. The window is as long as the losses are late, at least the
default of 1,000 decisions. Each seed has its order of rows, draws, noise and silent people; all
columns share them. Behind ± is the standard error over seeds. --data names sets as ``discreet run``
does; of a set with fewer rows, all are played.
"""

from __future__ import annotations

import argparse
import math
from itertools import product

import numpy as np
from joblib import Parallel, delayed

import discreet as dc
from discreet.data import load
from discreet.data.lookup import GENERATORS

CALL = 50
"""Decisions per call."""


def plan_of(data: dc.data.Dataset, epsilon: float) -> dc.Plan:
    budget = dc.Budget.none() if math.isinf(epsilon) else dc.Budget(epsilon, 1e-5)
    features = dc.UnitBall(data.dimension)
    return dc.Plan(n_actions=data.n_actions, features=features, budget=budget)


def played(
    data: dc.data.Dataset, epsilon: float, late: int, missing: float, waiting: str, seed: int
) -> float:
    """Mean loss of all decisions, heard of or not."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(data.rows)
    silent = rng.random(data.rows) < missing
    learner = dc.Learner(
        plan_of(data, epsilon),
        waiting=waiting,
        window=max(1_000, late),
        noise=dc.SeededNoise(seed),
        draws=np.random.default_rng([seed, 1]),
    )
    ids = np.empty(data.rows, dtype=np.int64)
    losses = np.empty(data.rows)
    told = 0
    for first in range(0, data.rows, CALL):
        rows = order[first : first + CALL]
        last = first + len(rows)
        decided = learner.decide(data.contexts[rows])
        ids[first:last] = decided.id
        losses[first:last] = decided.action != data.labels[rows]
        now = np.arange(told, max(told, last - late))
        told = max(told, last - late)
        now = now[~silent[now]]
        learner.observe(ids[now], losses[now])
    return float(losses.mean())


def cell(losses: list[float]) -> str:
    error = np.std(losses, ddof=1) / math.sqrt(len(losses)) if len(losses) > 1 else math.nan
    return f"{np.mean(losses):.3f} ± {error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["fried", "waveform", "twonorm"])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[2.0, math.inf])
    parser.add_argument("--late", type=int, nargs="+", default=[0, 1_000, 5_000])
    parser.add_argument("--missing", type=float, nargs="+", default=[0.0, 0.1])
    parser.add_argument("--waiting", choices=["pipeline", "gap"], default="pipeline")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    given = parser.parse_args()
    if given.quick:
        given.data, given.rows, given.seeds, given.late = ["fried"], 2_000, 2, [0, 500]
    ways = list(product(given.missing, given.late))
    heads = [f"{late:,} late" + (f", {miss:.0%} missing" if miss else "") for miss, late in ways]
    print("| set | ε | uniform | best fixed action | " + " | ".join(heads) + " |")
    print("|---" * (4 + len(heads)) + "|")
    with Parallel(n_jobs=given.jobs) as crew:
        for name, epsilon in product(given.data, given.epsilon):
            data = load(name, rows=given.rows if name in GENERATORS else None)
            fixed = 1 - np.bincount(data.labels).max() / data.rows
            found = crew(
                delayed(played)(data, epsilon, late, missing, given.waiting, seed)
                for missing, late in ways
                for seed in range(given.seeds)
            )
            cells = [cell(found[i : i + given.seeds]) for i in range(0, len(found), given.seeds)]
            level = "∞" if math.isinf(epsilon) else f"{epsilon:g}"
            line = [data.name, level, f"{1 - 1 / data.n_actions:.3f}", f"{fixed:.3f}", *cells]
            print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
