"""When does ε help? The noise of a predicted loss, beside what the default made of it.

    python bench/prediction_noise.py --data FOLDER [--features raw ranges] [--epsilon 0.5 1 2 4 8]
                                     [--seeds 5] [--max-columns 50] [--jobs 2] [--quick]

``discreet plan`` shows the noise of a predicted loss from public numbers alone. This script plays
the default on every set of a folder and asks at the end of every batch from the sixth on: was the
mean loss so far below that of the best fixed action? Printed for classes of noise: how often it
was, over sets, levels and batches; every set counts the same.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import discreet as dc
from discreet.data import resolve
from discreet.lab.campaign.hardware import one_thread
from discreet.lab.campaign.tasks import scaled
from discreet.simulate.engine import run

EDGES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, np.inf)
FIRST = 6
"""Batches before this one have too few rounds to judge."""


def measured(
    handle: Any, features: str, epsilons: list[float], seeds: int
) -> list[tuple[float, float, bool]]:
    """Noise, gain over the best fixed action, and whether there is one: per level and batch."""
    data = handle.load()
    ball = dc.UnitBall(scaled(data.contexts, features).shape[1])
    rows = ball.map(scaled(data.contexts, features))
    plans = [
        dc.Plan(n_actions=data.n_actions, features=ball, budget=dc.Budget(each, 1e-5))
        for each in epsilons
    ]
    with one_thread("numpy"):
        losses = run(plans, rows, data.labels, range(seeds)).mean(axis=1)
    lengths = dc.Plan(
        n_actions=data.n_actions, features=ball, budget=dc.Budget.none(), horizon=len(rows)
    ).schedule.lengths()
    found = []
    for plan, curve in zip(plans, losses, strict=True):
        noise = plan.mechanism.prediction_noise(lengths[:-1])
        for batch in range(FIRST, len(lengths)):
            gain = data.best_fixed - curve[batch]
            found.append((noise[batch - 1], gain, gain > 0))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=["fried:3000", "waveform:3000", "digits"])
    parser.add_argument("--features", nargs="+", default=["ranges"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.5, 1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--max-columns", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="two generated sets, one seed")
    args = parser.parse_args()
    if args.quick:
        args.data, args.seeds, args.jobs = ["fried:2000", "twonorm:2000"], 1, 1
    sets = [
        each
        for each in resolve(args.data)
        if (each.features or each.load().dimension) <= args.max_columns
    ]
    for features in args.features:
        results = Parallel(n_jobs=args.jobs)(
            delayed(measured)(each, features, args.epsilon, args.seeds) for each in sets
        )
        print(f"\n{features}: {len(sets)} sets, ε = {args.epsilon}")
        print(
            f"{'noise of a prediction':>24} {'sets':>5} {'below best fixed':>17} {'mean gain':>10}"
        )
        for low, high in itertools.pairwise(EDGES):
            by_set = defaultdict(list)
            for place, result in enumerate(results):
                for noise, gain, ahead in result:
                    if low <= noise < high:
                        by_set[place].append((ahead, gain))
            if by_set:
                shares = [np.mean(each, axis=0) for each in by_set.values()]
                ahead, gain = np.mean(shares, axis=0)
                print(f"{low:>11.2f} to {high:>9.2f} {len(by_set):>5} {ahead:>16.0%} {gain:>10.3f}")


if __name__ == "__main__":
    main()
