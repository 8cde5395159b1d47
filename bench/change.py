"""What batches that stop growing cost, and how fast forgetting recovers where the world changes.

    python bench/change.py --data FOLDER [--half develop|confirm] [--sets 6] [--seeds 3]
                           [--rounds 8192] [--epsilon 1 4 inf] [--max-columns 20]
                           [--worlds stationary permuted …] [--rules growing …]
                           [--scores scores.csv] [--figure change.png] [--jobs 1]

FOLDER holds .npz files (X, y) and an INDEX.csv, whose odd rows are for developing and even ones for
confirming, as in bench/defaults.py; the first --sets of a half with at least --rounds/2 rows are
played, with orders, draws and noise shared by all rules. T is the number of rounds, at most
--rounds. In a world that changes, labels y are actions of which one is right:

- permuted: from round T/2 on y + 1 (modulo A) is right where y was;
- drift: the same, with a probability that rises from 0 at T/4 to 1 at 3T/4;
- broken: from round T/2 on the most frequent action never is right, the next one is instead.

Printed for each world and ε: the mean loss of each rule over all sets and rounds, its difference to
growing batches with the standard error over sets, the loss in the last eighth, and after how many
rounds (as a share of T) the loss of the permuted world, as a mean over the sets, has come back 80 %
of the way from its height after the change to where it was before. Runs are kept in --scores and
not played again: delete the file after a change.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import discreet as dc
from discreet.batches.release_batch import fit_batch
from discreet.lab.campaign.presets import budget_of
from discreet.privacy.noise import SeededNoise
from discreet.releases.released import Released
from discreet.simulate.engine import Family
from discreet.simulate.played_batches import play, shuffle

WORLDS = ("stationary", "permuted", "drift", "broken")
RULES: dict[str, tuple[int | None, int | None]] = {
    "growing": (None, None),
    "T/16": (16, None),
    "T/16, half-life 2": (16, 2),
    "T/16, half-life 3": (16, 3),
    "T/16, half-life 4": (16, 4),
    "T/16, half-life 8": (16, 8),
    "T/32, half-life 4": (32, 4),
    "T/32, half-life 8": (32, 8),
}
"""Name -> which share of T the longest batch has, and the half-life in releases."""
PIECES = 64
"""Of a run: losses are kept as means over so many equal pieces."""


def chosen_sets(given: argparse.Namespace) -> list[str]:
    with (given.data / "INDEX.csv").open(newline="") as file:
        names = [row["slug"] for row in csv.DictReader(file)]
    found: list[str] = []
    for name in names[given.half == "confirm" :: 2]:
        with np.load(given.data / f"{name}.npz") as data:
            rows, columns = data["X"].shape
        if rows >= given.rounds // 2 and columns <= given.max_columns:
            found.append(name)
    return found[: given.sets]


def changed(world: str, labels: np.ndarray, actions: int, rng: np.random.Generator) -> np.ndarray:
    """The right actions (T,) of the rounds, in the order of play."""
    rounds = len(labels)
    time, other = np.arange(rounds) / rounds, (labels + 1) % actions
    if world == "permuted":
        return np.where(time >= 0.5, other, labels)
    if world == "drift":
        return np.where(rng.random(rounds) < np.clip(2 * time - 0.5, 0, 1), other, labels)
    if world == "broken":
        top = np.bincount(labels, minlength=actions).argmax()
        return np.where((time >= 0.5) & (labels == top), other, labels)
    return labels


def played(given: argparse.Namespace, name: str, known: set[Any]) -> list[tuple[Any, ...]]:
    """(set, world, rule, ε, means of the pieces) for those of one set that are not known yet."""
    with np.load(given.data / f"{name}.npz") as data:
        x, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
    actions, features, seeds = int(y.max()) + 1, dc.UnitBall(x.shape[1]), range(given.seeds)
    rounds = min(len(y), given.rounds) // PIECES * PIECES
    drawn = [shuffle(seed, len(y)) for seed in seeds]
    orders = np.stack([order[:rounds] for order, _ in drawn])
    u = np.stack([each[:rounds] for _, each in drawn])[:, None]
    rows = features.map(x)[orders][:, None]
    problem = {"n_actions": actions, "features": features}
    found = []
    for world in given.worlds:
        labels = [
            changed(world, y[order], actions, np.random.default_rng(seed))
            for seed, order in zip(seeds, orders, strict=True)
        ]
        truth = np.stack(labels)[:, None]
        for rule in given.rules:
            if (name, world, rule) in known:
                continue
            share, half_life = RULES[rule]
            words = {"longest_batch": share and max(16, rounds // share), "half_life": half_life}
            plans = [dc.Plan(**problem, **words, budget=budget_of(e)) for e in given.epsilon]
            schedule = replace(plans[0].schedule, horizon=rounds)
            losses = np.zeros((given.seeds, len(plans), rounds))
            private = [i for i, plan in enumerate(plans) if plan.budget.private]
            for some in (private, [i for i in range(len(plans)) if i not in private]):
                if some:
                    family = Family.of([plans[i] for i in some])
                    released, noise = Released(actions, schedule), SeededNoise(tuple(seeds))
                    release = partial(fit_batch, family, noise)
                    batches = play(family, released, rows, truth, u, release)
                    shape = (given.seeds, len(some))
                    parts = [
                        np.broadcast_to(b.incurred, (*shape, b.incurred.shape[-1])) for b in batches
                    ]
                    losses[:, some] = np.concatenate(parts, axis=-1)
            means = losses.mean(axis=0).reshape(len(plans), PIECES, -1).mean(axis=-1)
            found += [
                (name, world, rule, e, *row) for e, row in zip(given.epsilon, means, strict=True)
            ]
    print(f"{name}: {rounds:,} rounds, {actions} actions, {x.shape[1]} columns", flush=True)
    return found


def read(path: Path | None) -> list[Any]:
    if path is None or not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.reader(file))


def recovery(curve: np.ndarray, goal: float) -> float:
    """The share of T after the middle at which 80 % of the rise is gone for two pieces; or inf."""
    after = curve[PIECES // 2 :]
    bar = goal + 0.2 * (after[:2].max() - goal)
    below = (after[:-1] <= bar) & (after[1:] <= bar)
    return float(below.argmax() + 1) / PIECES if below.any() else math.inf


def report(given: argparse.Namespace, curves: dict[tuple[str, str, float], np.ndarray]) -> None:
    """``curves``: (world, rule, ε) -> (sets, pieces)."""
    base = given.rules[0]
    for world in given.worlds:
        print(f"\n| {world} | ε | mean loss | − {base} | last eighth | recovered after |")
        print("|---|---|---|---|---|---|")
        for epsilon in given.epsilon:
            for rule in given.rules:
                curve = curves[world, rule, epsilon]
                gap = curve.mean(axis=1) - curves[world, base, epsilon].mean(axis=1)
                error = gap.std(ddof=1) / math.sqrt(len(gap)) if len(gap) > 1 else math.nan
                before = curve[:, PIECES // 2 - 4 : PIECES // 2].mean()
                back = recovery(curve.mean(axis=0), before) if world == "permuted" else math.nan
                told = "–" if math.isnan(back) else "never" if math.isinf(back) else f"{back:.3f} T"
                level = "∞" if math.isinf(epsilon) else f"{epsilon:g}"
                print(
                    f"| {rule} | {level} | {curve.mean():.4f} | {gap.mean():+.4f} ± {error:.4f} "
                    f"| {curve[:, -PIECES // 8 :].mean():.4f} | {told} |"
                )


def draw(given: argparse.Namespace, curves: dict[tuple[str, str, float], np.ndarray]) -> None:
    import matplotlib.pyplot as plt

    size = (3.4 * len(given.worlds), 2.4 * len(given.epsilon))
    grid = (len(given.epsilon), len(given.worlds))
    figure, panels = plt.subplots(
        *grid, figsize=size, squeeze=False, layout="constrained", sharex=True, sharey="row"
    )
    time = (np.arange(PIECES) + 0.5) / PIECES
    for row, epsilon in zip(panels, given.epsilon, strict=True):
        for panel, world in zip(row, given.worlds, strict=True):
            for rule in given.rules:
                panel.plot(time, curves[world, rule, epsilon].mean(axis=0), lw=1.3, label=rule)
            panel.set_title(f"{world}, ε = {epsilon:g}".replace("inf", "∞"), fontsize=10)
        row[0].set_ylabel("mean loss")
    for panel in panels[-1]:
        panel.set_xlabel("round / T")
    panels[0][0].legend(fontsize=7)
    figure.savefig(given.figure, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, required=True)
    add("--half", choices=("develop", "confirm"), default="develop")
    add("--sets", type=int, default=6)
    add("--seeds", type=int, default=3)
    add("--rounds", type=int, default=8_192)
    add("--epsilon", nargs="+", type=float, default=[1.0, 4.0, math.inf])
    add("--max-columns", type=int, default=20)
    add("--worlds", nargs="+", default=list(WORLDS), choices=WORLDS)
    add("--rules", nargs="+", default=list(RULES), choices=RULES)
    add("--scores", type=Path)
    add("--figure", type=Path)
    add("--jobs", type=int, default=1)
    given = parser.parse_args()
    sets = chosen_sets(given)
    rows = read(given.scores)
    known = {tuple(row[:3]) for row in rows}
    crew = Parallel(n_jobs=given.jobs, return_as="generator")
    for found in crew(delayed(played)(given, each, known) for each in sets):
        rows += found
        if given.scores:
            with given.scores.open("a", newline="") as file:
                csv.writer(file).writerows(found)
    together = defaultdict(list)
    for name, world, rule, epsilon, *pieces in rows:
        if name in sets:
            together[world, rule, float(epsilon)].append(np.array(pieces, dtype=float))
    curves = {key: np.asarray(pieces) for key, pieces in together.items()}
    report(given, curves)
    if given.figure:
        draw(given, curves)


if __name__ == "__main__":
    main()
