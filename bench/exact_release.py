"""The default plan with private releases beside its float simulation: do they fare alike?

    python bench/exact_release.py --data FOLDER [--sets phoneme …] [--runs 20] [--epsilon 4]

A private release rounds rows onto a grid, draws discrete noise and publishes matrices as integers;
the harness plays floats. Both play the same orders and the same uniforms, with noise of their own.
Printed for each set: mean losses, their difference and its standard error.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

import discreet as dc

SETS = ("phoneme", "wine_quality_red", "segment", "pc4", "space_ga")


def play(folder: Path, name: str, epsilon: float, seed: int) -> tuple[float, float]:
    """Losses of one run with private releases, and of one that simulates them."""
    with np.load(folder / f"{name}.npz") as data:
        x, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
    plan = dc.Plan(
        n_actions=int(y.max()) + 1,
        features=dc.UnitBall(x.shape[1]),
        budget=dc.Budget(epsilon, 1e-5),
    )
    private = dc.evaluate(plan, x, y, seed=seed, noise=dc.SecureNoise())
    return private.loss, dc.evaluate(plan, x, y, seed=seed).loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(f"{'set':24}  private   float  difference  standard error")
    for name in options.sets:
        tasks = (
            delayed(play)(options.data, name, options.epsilon, seed) for seed in range(options.runs)
        )
        private, simulated = np.array(Parallel(n_jobs=options.jobs)(tasks)).T
        apart = private - simulated
        error = apart.std(ddof=1) / math.sqrt(len(apart))
        print(
            f"{name:24}  {private.mean():.4f}  {simulated.mean():.4f}  {apart.mean():+.4f}"
            f"     {error:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
