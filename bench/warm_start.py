"""What a private log saves: mean loss of the first rounds after a warm start, beside a cold one.

    python bench/warm_start.py [--data DIR] [--sets NAME …] [--log 5000] [--rounds 5000]
                               [--epsilon 1 4] [--seeds 5] [--jobs 2] [--quick]

The log has so many rows, played at random; it is imported as batch zero, so it costs the same ε as
every other batch. The public column has the same log as a prior, without noise: what privacy costs.
The last two columns are of the first batch, of a cold start and with the prior, which decides it.
Behind ± is the standard error over seeds. Without --data the generated sets are played.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

import discreet as dc
from discreet.data import load
from discreet.data.lookup import GENERATORS

SETS = (
    "fried electricity pendigits letter_A_to_J magic_telescope mammography house_8L 2dplanes "
    "bank_marketing jungle_chess"
)


def played(learner: dc.Learner, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Mean losses of all rounds and of the first batch; each call is a batch, so that every
    release decides at once."""
    lost, first = [], 0
    while first < len(x):
        batches = learner.status().batches
        free = batches[-1].size - batches[-1].taken if batches else len(x)
        rows = slice(first, min(len(x), first + free))
        made = learner.decide(x[rows])
        losses = (made.action_index != y[rows]) * 1.0
        learner.observe(made.id, losses)
        lost, first = [*lost, losses], rows.stop
    return float(np.concatenate(lost).mean()), float(lost[0].mean())


def one(data: dc.data.Dataset, epsilon: float, log: int, rounds: int, seed: int) -> list[float]:
    """Losses of a cold start, a warm one, and one with a public prior; the best fixed action's;
    and those of the first batch, cold and with the prior."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(data.rows)
    log = min(log, data.rows // 2)
    x, y = data.contexts[order], data.labels[order]
    before, after = slice(0, log), slice(log, log + rounds)
    actions = rng.integers(data.n_actions, size=log)
    losses = (actions != y[before]) * 1.0
    budget = dc.Budget(epsilon, 1e-5)
    cold = dc.Plan(n_actions=data.n_actions, features=dc.UnitBall(data.dimension), budget=budget)
    public = replace(cold, prior=dc.prior_from_logs(cold, x[before], actions, losses))
    found = []
    for plan in (cold, replace(cold, imported=log), public):
        noise, draws = dc.SeededNoise(seed), np.random.default_rng([seed, 1])
        learner = dc.Learner(plan, noise=noise, draws=draws)
        if plan.imported:
            learner.import_log(x[before], actions, losses)
        found.append(played(learner, x[after], y[after]))
    counts = np.bincount(y[after], minlength=data.n_actions)
    cold_one, warm_one, prior_one = found
    best = 1.0 - counts.max() / counts.sum()
    return [cold_one[0], warm_one[0], prior_one[0], best, cold_one[1], prior_one[1]]


def cell(losses: np.ndarray) -> str:
    error = losses.std(ddof=1) / math.sqrt(len(losses)) if len(losses) > 1 else math.nan
    return f"{losses.mean():.3f} ± {error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--log", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.log, args.rounds, args.seeds, args.epsilon = 500, 500, 2, [4.0]
    names = args.sets or (SETS.split() if args.data else ["fried", "waveform", "twonorm"])
    print("| set | ε | cold | warm | public prior | best fixed | first batch, cold | prior |")
    print("|---|---|---|---|---|---|---|---|")
    gains: dict[float, list[float]] = {epsilon: [] for epsilon in args.epsilon}
    for name in names:
        rows = args.log + args.rounds
        path = None if args.data is None else args.data / f"{name}.npz"
        data = load(
            name if path is None else str(path),
            rows=rows if path is None and name in GENERATORS else None,
        )
        for epsilon in args.epsilon:
            runs = Parallel(n_jobs=args.jobs)(
                delayed(one)(data, epsilon, args.log, args.rounds, seed)
                for seed in range(args.seeds)
            )
            table = np.asarray(runs)
            gains[epsilon].append(float(table[:, 1].mean() - table[:, 0].mean()))
            cells = " | ".join(cell(column) for column in table.T[:3])
            rest = " | ".join(f"{column.mean():.3f}" for column in table.T[3:])
            print(f"| {name} | {epsilon:g} | {cells} | {rest} |", flush=True)
    for epsilon, each in gains.items():
        print(f"ε = {epsilon:g}: warm minus cold {np.mean(each):+.3f} over {len(each)} sets")


if __name__ == "__main__":
    main()
