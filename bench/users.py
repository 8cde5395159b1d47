"""What a promise to a person costs: loss where people have many rows, for several bounds (M, k).

    python bench/users.py [--people 2000] [--rows 20000] [--seeds 5] [--epsilon 1 4 8]
                          [--batches 1 4 16] [--records 1 4 16] [--jobs 2] [--quick]
    python bench/users.py --file FILE.csv --user COLUMN --target COLUMN

By default people are simulated: how many rows someone has follows a heavy-tailed law (log-normal,
median 6 of 20,000 rows), and rows come in a random order. A context is 4 numbers of the person, the
same in all their rows, and 4 of the occasion. The right one of 4 actions is the largest of 4 fixed
linear functions of the context and of a taste of the person that no column shows. With --file the
columns of a .csv file are contexts, all numeric, beside an id of the person and a class.

The default plan is played once per seed, which gives order, draws and noise. "divided" is what
needs no theory of persons: (ε/M, δ/M) per release, and one record of a person in each of M batches.
(Where nobody counts, as in the service, it also ends after M batches; here it goes on.)
Behind ± is the standard error over seeds. Noise is seeded: it protects nobody.
"""

from __future__ import annotations

import argparse
import math
from itertools import product

import numpy as np
from joblib import Parallel, delayed

import discreet as dc
from discreet.privacy.participation import Participation

DELTA = 1e-5
ACTIONS = 4
TASTE = 0.5
"""Share of a person's own taste in what is best for them."""


def simulated(people: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts (rows, 8), labels and the person of each row."""
    rng = np.random.default_rng(0)
    often = rng.lognormal(0.0, 1.2, people)
    users = rng.choice(people, rows, p=often / often.sum())
    own = rng.normal(size=(people, 4))[users]
    contexts = np.hstack([own, rng.normal(size=(rows, 4))]) / math.sqrt(8)
    taste = rng.normal(size=(people, ACTIONS))[users]
    values = contexts @ rng.normal(size=(8, ACTIONS)) + TASTE * taste
    return contexts, values.argmax(axis=1), users


def of_file(path: str, user: str, target: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of a .csv file; columns are scaled to [−1, 1] by their largest values."""
    import pandas as pd

    frame = pd.read_csv(path)
    labels = frame[target].astype("category").cat.codes.to_numpy()
    columns = frame.drop(columns=[user, target]).to_numpy(dtype=float)
    scale = np.abs(columns).max(axis=0) * math.sqrt(columns.shape[1])
    return columns / np.where(scale > 0, scale, 1.0), labels.astype(int), frame[user].to_numpy()


def played(data: tuple, budget: dc.Budget, batches: int, records: int, seed: int) -> dc.Evaluation:
    contexts, labels, users = data
    plan = dc.Plan(
        n_actions=int(labels.max()) + 1,
        features=dc.UnitBall(contexts.shape[1]),
        budget=budget,
        unit="user",
        batches_per_user=batches,
        records_per_batch=records,
    )
    return dc.evaluate(plan, contexts, labels, users=users, seed=seed)


def divided(data: tuple, epsilon: float, batches: int, seed: int) -> dc.Evaluation:
    """Noise of (ε/M, δ/M) for one decision, where one record in each of M batches counts."""
    contexts, labels, users = data
    share = dc.Budget(epsilon / batches, DELTA / batches)
    plan = dc.Plan(
        n_actions=int(labels.max()) + 1, features=dc.UnitBall(contexts.shape[1]), budget=share
    )
    shown = _Divided(plan, batches)
    return dc.evaluate(shown, contexts, labels, users=users, seed=seed)  # type: ignore[arg-type]


class _Divided:
    """A plan with its noise as it is, and a bound that it was not calibrated for."""

    def __init__(self, plan: dc.Plan, batches: int) -> None:
        self._plan, self.participation, self.unit = plan, Participation(batches, 1), "user"

    def __getattr__(self, name: str) -> object:
        return getattr(self._plan, name)


def cell(losses: list[float]) -> str:
    error = np.std(losses, ddof=1) / math.sqrt(len(losses)) if len(losses) > 1 else math.nan
    return f"{np.mean(losses):.3f} ± {error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--file", help="a .csv file instead of simulated people")
    parser.add_argument("--user", help="its column of ids")
    parser.add_argument("--target", help="its column of classes")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0, 8.0])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--records", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    given = parser.parse_args()
    if given.quick:
        given.people, given.rows, given.seeds = 100, 2_000, 2
        given.epsilon, given.batches, given.records = [4.0], [1, 4], [1, 4]
    if given.file:
        data = of_file(given.file, given.user, given.target)
    else:
        data = simulated(given.people, given.rows)
    _, sizes = np.unique(data[2], return_counts=True)
    print(
        f"{len(sizes):,} people, {sizes.sum():,} rows; rows per person: median "
        f"{np.median(sizes):g}, mean {sizes.mean():.0f}, largest {sizes.max():,}\n"
    )
    seeds = range(given.seeds)
    with Parallel(n_jobs=given.jobs) as crew:

        def all_seeds(function, *details) -> list[dc.Evaluation]:  # type: ignore[no-untyped-def]
            return crew(delayed(function)(data, *details, seed) for seed in seeds)

        heads = [f"ε = {epsilon:g}" for epsilon in given.epsilon]
        print("| M | k | " + " | ".join(heads) + " | ε = ∞, same bound |")
        print("|---" * (3 + len(heads)) + "|", flush=True)
        for batches, records in product(given.batches, given.records):
            budgets = [dc.Budget(each, DELTA) for each in given.epsilon] + [dc.Budget.none()]
            runs = [all_seeds(played, budget, batches, records) for budget in budgets]
            cells = [cell([run.loss for run in some]) for some in runs]
            print(f"| {batches} | {records} | " + " | ".join(cells) + " |", flush=True)
        for batches in given.batches:
            runs = [all_seeds(divided, epsilon, batches) for epsilon in given.epsilon]
            cells = [cell([run.loss for run in some]) for some in runs]
            print(f"| {batches} | 1, divided | " + " | ".join(cells) + " | |", flush=True)
        free = all_seeds(played, dc.Budget.none(), 10**6, 10**6)
    fixed, uniform = (
        np.mean([run.best_fixed for run in free]),
        np.mean([run.uniform for run in free]),
    )
    print(f"\nε = ∞ without a bound {cell([run.loss for run in free])}; ", end="")
    print(f"best fixed action {fixed:.3f}; uniform {uniform:.3f}")


if __name__ == "__main__":
    main()
