"""Exact BonusPO (Algorithm 3) beside its historical-replay approximation, set by set.

    python bench/bonus_replay.py [--data NAME ...] [--epsilon inf 1] [--seeds 5] [--out FILE]

Each algorithm is tuned over twelve settings, by the mean final loss over the reported seeds, as
the paper does. Exact BonusPO also runs with the parameters of its theorem, as if the linear class
were covered by T^(A·p) functions. All use ridge regression with λ = 0.01.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from itertools import product

import numpy as np

import discreet as dc
from discreet.data import Dataset, load
from discreet.lab import theory
from discreet.lab.campaign.presets import DOUBLING
from discreet.simulate.engine import Machine, run

DELTA = 0.05
GRIDS = {
    "replay": [
        dc.ReplayBonusPO(learning_rate=10.0**rate, bonus=10.0**bonus)
        for rate, bonus in product((-3, -2, -1, 0), (-3, -2, -1))
    ],
    "exact": [
        dc.BonusPO(rate_scale=rate, bonus_scale=bonus)
        for rate, bonus in product((1.0, 8.0, 64.0, 512.0), (0.003, 0.03, 0.3))
    ],
}


def theorem(data: Dataset) -> dc.BonusPO:
    """Err of a class with log|F| = A·p·log T, which is no whole number of functions."""
    epochs = theory.epochs(data.rows)
    log_functions = data.n_actions * (data.dimension + 1) * math.log(data.rows)
    return dc.BonusPO(error_bound=10 * (log_functions + math.log(4 * epochs / DELTA)))


def losses(
    data: Dataset, policies: list, epsilon: float, seeds: int, machine: Machine
) -> np.ndarray:
    """Mean final loss of each policy, and its standard error: (policies, 2)."""
    budget = dc.Budget(epsilon, 1e-5) if math.isfinite(epsilon) else dc.Budget.none()
    plans = [
        dc.Plan(
            n_actions=data.n_actions,
            features=dc.UnitBall(data.dimension),
            policy=policy,
            oracle=dc.Ridge(ridge=0.01),
            budget=budget,
            **DOUBLING,
        )
        for policy in policies
    ]
    features = dc.UnitBall(data.dimension).map(data.contexts)
    final = run(plans, features, data.labels, list(range(seeds)), machine)[..., -1]
    return np.stack([final.mean(axis=1), final.std(axis=1, ddof=1) / math.sqrt(seeds)], axis=-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["digits"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[math.inf, 1.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="numpy", choices=("numpy", "cpu", "cuda"))
    parser.add_argument("--out", help="a CSV file")
    parser.add_argument("--quick", action="store_true", help="one small set, as a quick check")
    arguments = parser.parse_args()
    names = ["fried:400"] if arguments.quick else arguments.data
    rows = []
    for name, epsilon in product(names, arguments.epsilon):
        data = load(name)
        machine = Machine(arguments.device, "float64")
        grids = {**GRIDS, "theorem": [theorem(data)], "uniform": [dc.Uniform()]}
        row = {"data": data.name, "T": data.rows, "A": data.n_actions, "epsilon": epsilon}
        for kind, policies in grids.items():
            found = losses(data, policies, epsilon, arguments.seeds, machine)
            best = int(found[:, 0].argmin())
            row[kind], row[f"{kind} se"] = found[best].round(4).tolist()
            if kind in GRIDS:
                row[f"{kind} setting"] = repr(policies[best])
        rows.append(row)
        said = ", ".join(f"{kind} {row[kind]:.4f} ± {row[f'{kind} se']:.4f}" for kind in grids)
        print(
            f"{data.name}, T = {data.rows:,}, A = {data.n_actions}, ε = {epsilon:g}: {said}",
            flush=True,
        )
    if arguments.out:
        with open(arguments.out, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
