"""What a promise to a person costs: loss where people have many rows, for several bounds (M, k).

    python bench/users.py [--people 2000] [--rows 20000] [--seeds 5] [--epsilon 1 4 8]
                          [--batches 1 2 4 8 16] [--records 1 2 4 8 16] [--quick]
    python bench/users.py --movielens FOLDER
    python bench/users.py --randhie FILE.csv
    python bench/users.py --file FILE.csv --user COLUMN --target COLUMN

By default people are simulated; ``people_sets.py`` says how each set becomes a bandit.

The default plan is played once per seed, which gives order, draws and noise. "divided" is what
needs no theory of persons: (ε/M, δ/M) per release, and one record of a person in each of M
batches. Behind ± is the standard error over seeds. Noise is seeded: it protects nobody.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

import discreet as dc
from discreet.privacy.budget import ONCE
from discreet.simulate import engine
from discreet.simulate.labelled_data import context_free_losses
from people_sets import People, movielens, of_file, randhie, simulated

DELTA = 1e-5
UNBOUNDED = 10**6


@dataclass(frozen=True, kw_only=True, repr=False)
class DividedPlan(dc.Plan):
    """Noise of (ε/M, δ/M) for one record, where one record in each of M batches counts."""

    @cached_property
    def mechanism(self) -> Any:
        assert self.batches_per_user is not None
        share = (self.budget.epsilon / self.batches_per_user, DELTA / self.batches_per_user)
        problem = replace(self.problem, participation=ONCE)
        return self.oracle.calibrate(problem, dc.Budget(*share))


def mean_losses(
    data: People,
    epsilons: Sequence[float],
    often: tuple[int, int],
    seeds: int,
    kind: type[dc.Plan] = dc.Plan,
) -> np.ndarray[Any, Any]:
    """Mean losses of whole runs: (epsilons, seeds)."""
    features = dc.UnitBall(data.contexts.shape[1])
    plans = [
        kind(
            n_actions=data.losses.shape[1],
            features=features,
            budget=dc.Budget(each, DELTA) if math.isfinite(each) else dc.Budget.none(),
            unit="user",
            batches_per_user=often[0],
            records_per_batch=often[1],
        )
        for each in epsilons
    ]
    mapped = features.map(data.contexts)
    losses = engine.run(plans, mapped, data.losses, range(seeds), users=data.users)
    return losses[..., -1]


def cell(losses: np.ndarray[Any, Any]) -> str:
    error = np.std(losses, ddof=1) / math.sqrt(len(losses)) if len(losses) > 1 else math.nan
    return f"{np.mean(losses):.4f} ± {error:.4f}"


def line(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def chosen(given: argparse.Namespace) -> People:
    if given.movielens:
        return movielens(given.movielens)
    if given.randhie:
        return randhie(given.randhie)
    if given.file:
        return of_file(given.file, given.user, given.target)
    return simulated(given.people, given.rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--movielens", metavar="FOLDER", help="with ml-100k.inter, .user and .item")
    parser.add_argument("--randhie", metavar="FILE.csv", help="RandHIE of R's sampleSelection")
    parser.add_argument("--file", help="a .csv file instead of simulated people")
    parser.add_argument("--user", help="its column of ids")
    parser.add_argument("--target", help="its column of classes")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0, 8.0])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--records", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    given = parser.parse_args()
    if given.quick:
        given.people, given.rows, given.seeds = 100, 2_000, 2
        given.epsilon, given.batches, given.records = [4.0], [1, 4], [1, 4]
    data = chosen(given)
    _, sizes = np.unique(data.users, return_counts=True)
    print(
        f"{len(sizes):,} people, {sizes.sum():,} rows; rows per person: median "
        f"{np.median(sizes):g}, mean {sizes.mean():.1f}, largest {sizes.max():,}\n"
    )
    heads = [f"ε = {epsilon:g}" for epsilon in given.epsilon]
    line("M", "k", *heads, "ε = ∞, same bound")
    line(*["---"] * (3 + len(heads)))
    for often in product(given.batches, given.records):
        line(*often, *map(cell, mean_losses(data, [*given.epsilon, math.inf], often, given.seeds)))
    for batches in given.batches:
        found = mean_losses(data, given.epsilon, (batches, 1), given.seeds, DividedPlan)
        line(batches, "1, divided", *map(cell, found), "")
    free = mean_losses(data, [math.inf], (UNBOUNDED, UNBOUNDED), given.seeds)
    fixed, uniform = context_free_losses(data.losses, data.losses.shape[1])
    print(f"\nε = ∞ without a bound {cell(free[0])}; ", end="")
    print(f"best fixed action {fixed:.4f}; uniform {uniform:.4f}")


if __name__ == "__main__":
    main()
