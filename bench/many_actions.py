"""Many actions: the noise of a prediction against A, and blocks beside joint features with classes.

    python bench/many_actions.py noise [--actions 2 10 100 1000 10000] [--rows 20000]
    python bench/many_actions.py classes --data DIR [--sets letter …] [--seeds 5]
    python bench/many_actions.py speed [--items 1000]
    python bench/many_actions.py --quick

``noise``: one batch of ROWS records, fitted once with the noise of ε = 1 and once without; the root
mean square of what that changes in predicted losses, over pairs that were not in the batch. Items
have four features, contexts four; losses are linear in both and in their products.
``classes``: a class is an action. "blocks" is the default plan, "one-hot" a catalogue whose items
have their class as only feature, with all products: the same functions, with one Gram for all.
``speed``: one decision over 1,000 offered items with 32 features each, ten releases.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np

import discreet as dc
from discreet.batch import Batch
from discreet.data import load
from discreet.features.joint import Joint
from discreet.features.offered import OfferedBlocks, OfferedPairs
from discreet.simulate import engine
from discreet.simulate.labelled_data import played_offers

D = 4
BUDGET = dc.Budget(1.0, 1e-5)


def noise(actions: list[int], rows: int) -> None:
    print(
        f"{'A':>7}  {'blocks':>7}  {'joint':>7}   predicted losses move by, ε = 1, {rows:,} records"
    )
    for count in actions:
        rng = np.random.default_rng(0)
        items = rng.uniform(-0.5, 0.5, size=(count, D))
        contexts = rng.uniform(-0.5, 0.5, size=(rows, D))
        shown = rng.integers(count, size=rows)
        weights = rng.normal(size=(D, D))
        means = 0.5 + np.einsum("nd,de,ne->n", contexts, weights, items[shown]) / 2
        losses = (rng.random(rows) < np.clip(means, 0, 1)).astype(float)
        asked = dc.UnitBall(D).map(rng.uniform(-0.5, 0.5, size=(200, D)))
        offered = rng.integers(count, size=(200, 10))
        moved = {}
        if rows >= count:  # blocks need records of each action
            x = dc.UnitBall(D).map(contexts)
            batch = Batch(
                x, np.repeat(losses[:, None], count, 1), shown[:, None] == np.arange(count)
            )
            moved["blocks"] = _moved(dc.Problem(count, D + 1), batch, OfferedBlocks(asked, offered))
        joint = Joint(dc.UnitBall(D), dc.UnitBall(D), "all")
        films = dc.UnitBall(D).map(items)
        pairs = joint.rows(dc.UnitBall(D).map(contexts), films[shown])
        batch = Batch(pairs, losses[:, None], np.ones((rows, 1), dtype=bool))
        problem = dc.Problem(1, joint.p, joint=True)
        moved["joint"] = _moved(problem, batch, OfferedPairs(joint, asked, films, offered))
        cells = [
            f"{moved[kind]:7.3f}" if kind in moved else "      –" for kind in ("blocks", "joint")
        ]
        print(f"{count:>7,}  {'  '.join(cells)}", flush=True)


def _moved(problem: dc.Problem, batch: Batch, asked: Any) -> float:
    """Root mean square of the change that noise makes, over three draws."""
    oracle, squares = dc.PooledRidge(geometry="plain"), []
    plain = oracle.calibrate(problem, dc.Budget.none()).fit(batch, dc.SeededNoise(0))
    for seed in range(3):
        noisy = oracle.calibrate(problem, BUDGET).fit(batch, dc.SeededNoise(seed))
        moved = noisy.predictor.losses(asked) - plain.predictor.losses(asked)
        squares.append(float(np.mean(moved**2)))
    return math.sqrt(np.mean(squares))


def classes(folder: str, sets: list[str], epsilons: list[float], seeds: int, rows: int) -> None:
    print(f"| set | classes | plan | {' | '.join(f'ε = {each:g}' for each in epsilons)} |")
    for name in sets:
        data = load(f"{folder}/{name}.npz")
        few = slice(None if len(data.labels) <= rows else rows)
        order = np.random.default_rng(0).permutation(len(data.labels))[few]
        contexts, labels = np.asarray(data.contexts)[order], np.asarray(data.labels)[order]
        ball, names = dc.UnitBall(contexts.shape[1]), [f"c{k}" for k in range(data.n_actions)]
        kind = dc.Schema([dc.Category("class", names)])
        one_hot = dc.Catalogue(kind, {each: {"class": each} for each in names})
        x = ball.map(contexts)
        for words in ("blocks", "one-hot"):
            budgets = [
                dc.Budget(e, 1e-5) if math.isfinite(e) else dc.Budget.none() for e in epsilons
            ]
            if words == "blocks":
                plans = [dc.Plan(n_actions=len(names), features=ball, budget=b) for b in budgets]
                found = engine.run(plans, x, labels, list(range(seeds)))[:, :, -1]
            else:
                features = Joint(ball, kind, "all")
                plans = [dc.Plan(actions=one_hot, features=features, budget=b) for b in budgets]
                right = np.asarray(names)[labels]
                played, truth = played_offers(plans[0], x, None, right, None)
                found = engine.run(plans, played, truth, list(range(seeds)))[:, :, -1]
            cells = " | ".join(f"{each.mean():.3f}" for each in found)
            print(
                f"| {name} | {len(names)} | {words}, p = {plans[0].features.p} | {cells} |",
                flush=True,
            )


def speed(items: int, seconds: float = 3.0) -> None:
    rng = np.random.default_rng(0)
    films = {f"i{k}": row for k, row in enumerate(rng.normal(size=(items, 32)))}
    plan = dc.Plan(
        actions=dc.Catalogue(dc.UnitBall(32), films),
        features=dc.UnitBall(16),
        budget=dc.Budget.none(),
    )
    learner = dc.Learner(plan)
    names = list(films)
    for _ in range(12):
        decided = learner.decide(rng.normal(size=(200, 16)) / 8, actions=names[:5])
        learner.observe(decided.id, rng.random(200))
    for words, offer in {"all items": None, "ids of all": names}.items():
        context, times, end = rng.normal(size=16) / 8, [], time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            learner.decide(context, actions=offer)
            times.append(time.perf_counter() - start)
        releases = len(learner.released.items)
        print(f"{words}: {1e3 * float(np.median(times)):.2f} ms per decision over {items:,} items, "
              f"{releases} releases, p = {plan.features.p}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["noise", "classes", "speed"])
    parser.add_argument("--actions", type=int, nargs="+", default=[2, 10, 100, 1000, 10_000])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--data", metavar="DIR")
    parser.add_argument("--sets", nargs="+", default=["letter"])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[4.0, 8.0, math.inf])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.quick:
        noise([2, 100], 2000)
        speed(100, 0.2)
    elif args.part == "noise":
        noise(args.actions, args.rows)
    elif args.part == "classes":
        classes(args.data, args.sets, args.epsilon, args.seeds, args.rows)
    else:
        speed(args.items)


if __name__ == "__main__":
    main()
