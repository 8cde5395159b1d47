"""Recipes that need no tuning, scored over many data sets, beside the paper's tuned best.

    python bench/defaults.py --data FOLDER [--recipes default unpooled …] [--seeds 10]
                             [--epsilon 1 2 4 8 inf] [--max-columns 50] [--half develop|confirm]
                             [--features raw|ranges|wide|linear|standard]
                             [--device numpy|cuda] [--jobs 2]
                             [--tuned best.csv …] [--choose NAME …] [--scores scores.csv]
                             [--figure sets.png]

FOLDER holds .npz files (X, y) and an INDEX.csv. Its rows are split once and for all: odd ones
(the first is 1) to develop on, even ones to confirm. A recipe turns public numbers into a plan;
it is played once on every set, with the seeds' orders and noise shared by all recipes, so that
differences are paired. ``--tuned`` names tables of ``discreet campaign report``: the least loss of
every algorithm, chosen for each set on the very runs it is reported by. ``--choose`` picks one of
several recipes for each set by the mean over all *other* sets. Scores are kept in a file and not
computed again: delete the file after a change. ``--figure`` draws every set, the first recipe
against the paper's tuned ReplayBonusPO. All ``--features`` but raw are read off the data (see
``discreet.lab.campaign.tasks``), so they are for evaluation: not private.

Printed for each level: mean loss, mean difference and its standard error over the sets (in
brackets the part that is due to the seeds), on how many sets the recipe is ahead, and what needs no
contexts: the best fixed action of each set, and a uniform draw.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import discreet as dc
from discreet.lab.campaign.hardware import machine, one_thread, shared_gpu
from discreet.lab.campaign.presets import DOUBLING, EPSILONS, FEATURES, budget_of
from discreet.lab.campaign.tasks import scaled
from discreet.oracles.mechanisms import geometry
from discreet.simulate.engine import Machine, run

RIVALS = ("ReplayBonusPO", "VanillaPO", "SquareCB", "FastCB")
REPLAY = dc.ReplayBonusPO


@dataclass(frozen=True)
class Recipe:
    """A plan from public numbers: parts that are not the default, functions of A where callable.

    ``constants`` are those of ``oracles/mechanisms/geometry.py`` while the recipe is played.
    """

    parts: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, float] = field(default_factory=dict)

    def plan(self, n_actions: int, **problem: Any) -> dc.Plan:
        made = {
            name: part(n_actions) if callable(part) else part for name, part in self.parts.items()
        }
        return dc.Plan(n_actions=n_actions, **problem, **made)

    @property
    def together(self) -> tuple[Any, ...]:
        """Recipes that are equal here can be played together."""
        batches = (self.parts.get(name) for name in ("first_batch", "growth"))
        return (*batches, *sorted(self.constants.items()))


def recipe(policy: Any = None, oracle: Any = None, **parts: Any) -> Recipe:
    given = {"policy": policy, "oracle": oracle, **parts}
    return Recipe({name: part for name, part in given.items() if part is not None})


PLAIN = dc.PooledRidge(geometry="plain", floor=0.4)
RECIPES: dict[str, Recipe] = {
    "default": recipe(),
    # What each part is worth.
    "plain geometry": recipe(oracle=PLAIN),
    "doubling": recipe(**DOUBLING),
    "plain, doubling": recipe(oracle=PLAIN, **DOUBLING),
    # One thing changed at a time.
    "first_batch=1": recipe(first_batch=1),
    "first_batch=64": recipe(first_batch=64),
    **{f"growth={each:g}": recipe(growth=each) for each in (1.3, 1.4, 1.7, 3.0)},
    "unpooled": recipe(oracle=dc.Ridge(ridge=1e-6, noise_ridge=0.25)),
    "equal weights": recipe(oracle=dc.PooledRidge(clear=0.0)),
    **{f"clear={each:g}": recipe(oracle=dc.PooledRidge(clear=each)) for each in (3, 30, 100)},
    **{
        f"response_weight={each:g}": recipe(oracle=dc.PooledRidge(response_weight=each))
        for each in (1.0, 1.4, 1.7, 2.8)
    },
    **{f"floor={each:g}": recipe(oracle=dc.PooledRidge(floor=each)) for each in (0.1, 0.4, 1.0)},
    **{f"learning_rate={each:g}": recipe(REPLAY(learning_rate=each)) for each in (0.1, 1.0)},
    "learning_rate=0.2/A": recipe(lambda actions: REPLAY(learning_rate=0.2 / actions)),
    "learning_rate=1/A": recipe(lambda actions: REPLAY(learning_rate=1.0 / actions)),
    **{f"bonus={each:g}": recipe(REPLAY(bonus=each)) for each in (0.001, 0.1)},
    **{f"FLOOR={each:g}": Recipe(constants={"FLOOR": each}) for each in (0.1, 0.6)},
    **{f"LEAST=2^-{bits}": Recipe(constants={"LEAST": 2.0**-bits}) for bits in (24, 40)},
    # Other policies and oracles.
    "VanillaPO": recipe(dc.VanillaPO(scale=8.0, rollout="previous")),
    "BonusPO": recipe(dc.BonusPO(rate_scale=10.0, bonus_scale=0.01)),
    "SquareCB": recipe(dc.SquareCB(scale=16.0, exponent=0.5)),
    "logistic": recipe(oracle=dc.Logistic(ridge=1e-4)),
    "plain ridge": recipe(REPLAY(learning_rate=0.1), dc.Ridge(ridge=0.01, noise_ridge=2.0)),
}
"""``plain, doubling`` is the default before geometry was learned; ``plain ridge`` fits every batch
alone, with the paper's usual settings."""


def indexed(folder: Path, half: str, max_columns: int, max_rows: int) -> list[str]:
    """Names of the sets of a half that are not too wide."""
    with (folder / "INDEX.csv").open(newline="") as file:
        rows = [row["slug"] for row in csv.DictReader(file)]
    halves = {"develop": rows[0::2], "confirm": rows[1::2], "both": rows}
    chosen = []
    for name in halves[half]:
        with np.load(folder / f"{name}.npz") as data:
            if data["X"].shape[1] <= max_columns and len(data["y"]) <= max_rows:
                chosen.append(name)
    return chosen


@contextmanager
def constants_set(values: dict[str, float]) -> Iterator[None]:
    """The geometry with other constants."""
    before = {name: getattr(geometry, name) for name in values}
    try:
        for name, value in values.items():
            setattr(geometry, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(geometry, name, value)


def play(
    folder: Path, kind: str, name: str, wanted: list[tuple[str, float]], seeds: int, where: Machine
) -> list[tuple]:
    """Every seed's mean loss of some recipes at some levels on one set."""
    with np.load(folder / f"{name}.npz") as data:
        x, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
    contexts, actions = scaled(x, kind), int(y.max()) + 1
    features = dc.UnitBall(contexts.shape[1])
    rows = features.map(contexts)
    groups = defaultdict(list)
    for each, epsilon in wanted:
        groups[RECIPES[each].together].append((each, epsilon))
    found = []
    for group in groups.values():
        plans = [
            RECIPES[each].plan(actions, features=features, budget=budget_of(epsilon))
            for each, epsilon in group
        ]
        with constants_set(RECIPES[group[0][0]].constants), one_thread(where.device):
            losses = run(plans, rows, y, range(seeds), where)[:, :, -1]
        found += [
            (each, kind, name, repr(epsilon), *map(repr, map(float, row)))
            for (each, epsilon), row in zip(group, losses, strict=True)
        ]
    return found


class Scores:
    """(recipe, features, set, ε) -> losses of the seeds, kept in a file."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.of = path, {}
        if path and path.exists():
            with path.open(newline="") as file:
                self._take(csv.reader(file))

    def _take(self, rows: Iterable[Any]) -> None:
        for each, kind, name, epsilon, *losses in rows:
            self.of[each, kind, name, float(epsilon)] = np.array(losses, dtype=float)

    def complete(self, options: argparse.Namespace, names: list[str], sets: list[str]) -> None:
        """Play what is missing, large sets first."""
        kind, missing = options.features, defaultdict(list)
        for key in ((r, kind, s, e) for s in sets for r in names for e in options.epsilon):
            if len(self.of.get(key, ())) < options.seeds:
                missing[key[2]].append((key[0], key[3]))
        order = sorted(missing, key=lambda s: -(options.data / f"{s}.npz").stat().st_size)
        if not order:
            return
        where = machine(options.device, options.jobs)
        given = ((options.data, kind, s, missing[s], options.seeds, where) for s in order)
        parallel = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
        start = time.perf_counter()
        with shared_gpu(options.device, options.jobs):
            for done, rows in enumerate(parallel(delayed(play)(*each) for each in given), start=1):
                self._take(rows)
                print(f"\r{done} of {len(order)} sets played", end="", flush=True)
                if self.path:
                    with self.path.open("a", newline="") as file:
                        csv.writer(file).writerows(rows)
        print(f" in {time.perf_counter() - start:.1f} s")

    def table(self, name: str, sets: list[str], epsilon: float, given: Any) -> np.ndarray:
        """(sets, seeds)."""
        keys = ((name, given.features, each, epsilon) for each in sets)
        losses = [self.of[key][: given.seeds] for key in keys]
        return np.array(losses).reshape(len(sets), given.seeds)


def chosen_elsewhere(scores: Scores, sets: list[str], epsilon: float, options: Any) -> np.ndarray:
    """(sets, seeds): for each set the recipe with the least mean over the other sets."""
    tables = np.stack([scores.table(name, sets, epsilon, options) for name in options.choose])
    means = tables.mean(axis=2)
    others = means.sum(axis=1, keepdims=True) - means
    return tables[others.argmin(axis=0), np.arange(len(sets))]


def tuned_of(paths: list[Path]) -> dict[tuple[str, str, float], float]:
    """(algorithm, set, ε) -> least loss over the settings."""
    found = {}
    for path in paths:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                key = (row["algorithm"], row["dataset"], float(row["epsilon"]))
                found[key] = float(row["loss"])
    return found


def against(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Mean paired difference, its standard errors, and the share of sets that we lead."""
    difference = ours - theirs  # (sets, seeds); a tuned loss is one number a set
    by_set = difference.mean(axis=1)
    count, seeds = difference.shape
    error = by_set.std(ddof=1) / math.sqrt(count)
    due_to_seeds = math.sqrt((difference.var(axis=1, ddof=1) / seeds).sum()) / count
    ahead = np.mean(by_set < 0) + np.mean(by_set == 0) / 2
    return f"{by_set.mean():+.4f} ± {error:.4f} ({due_to_seeds:.4f})  ahead {ahead:4.0%}"


def without_contexts(folder: Path, sets: list[str]) -> dict[str, np.ndarray]:
    """Losses that need no contexts: of the best fixed action, and of a uniform draw."""
    found = []
    for name in sets:
        with np.load(folder / f"{name}.npz") as data:
            counts = np.bincount(data["y"].astype(np.int64))
        found.append((1 - counts.max() / counts.sum(), 1 - 1 / len(counts)))
    return dict(zip(("best fixed action", "uniform"), np.array(found).T, strict=True))


def report(options: argparse.Namespace, scores: Scores, half: str, sets: list[str]) -> None:
    tuned = tuned_of(options.tuned)
    about = f"{len(sets)} sets, {options.seeds} seeds, {options.features} columns"
    if options.features != "raw":
        about += " (NonPrivate: scaled with the data's own numbers)"
    for epsilon in options.epsilon:
        print(f"\n{half}, ε = {epsilon:g}, {about}")
        tables = {name: scores.table(name, sets, epsilon, options) for name in options.recipes}
        if options.choose:
            tables["chosen on the other sets"] = chosen_elsewhere(scores, sets, epsilon, options)
        base = tables[options.recipes[0]]
        for name, table in tables.items():
            line = f"  {name:26} {table.mean():.4f}"
            print(line if table is base else f"{line}   {against(table, base)}")
        for name, losses in without_contexts(options.data, sets).items():
            print(f"  {name:26} {losses.mean():.4f}")
        for rival in RIVALS:
            known = [i for i, each in enumerate(sets) if (rival, each, epsilon) in tuned]
            if len(known) > 1:
                theirs = np.array([[tuned[rival, sets[i], epsilon]] for i in known])
                print(
                    f"  {'tuned ' + rival:26} {theirs.mean():.4f}   {options.recipes[0]} − tuned: "
                    f"{against(base[known], theirs)}  on {len(known)} sets"
                )


def draw(options: argparse.Namespace, scores: Scores, halves: dict[str, list[str]]) -> None:
    """A panel a level, a dot a set: below the line the untuned recipe is ahead."""
    import matplotlib.pyplot as plt

    tuned, first = tuned_of(options.tuned), options.recipes[0]
    width = 2.7 * len(options.epsilon)
    figure, panels = plt.subplots(
        1, len(options.epsilon), figsize=(width, 3.2), squeeze=False, layout="constrained"
    )
    for panel, epsilon in zip(panels[0], options.epsilon, strict=True):
        for (half, sets), mark in zip(halves.items(), ("o", "^"), strict=False):
            known = [each for each in sets if (RIVALS[0], each, epsilon) in tuned]
            theirs = [tuned[RIVALS[0], each, epsilon] for each in known]
            ours = scores.table(first, known, epsilon, options).mean(axis=1)
            panel.plot(theirs, ours, mark, ms=4, alpha=0.75, label=f"{half}, {len(known)} sets")
        panel.axline((0, 0), slope=1, color="0.5", lw=0.8)
        panel.set(
            title=f"ε = {epsilon:g}".replace("inf", "∞"),
            xlabel=f"tuned {RIVALS[0]}",
            xlim=(0, 1),
            ylim=(0, 1),
        )
        panel.set_aspect("equal")
    panels[0][0].set_ylabel(f"{first}, untuned")
    panels[0][0].legend(fontsize=8, loc="upper left")
    figure.savefig(options.figure, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, required=True)
    add("--recipes", nargs="+", default=["default"], choices=RECIPES)
    add("--choose", nargs="+", default=[], choices=RECIPES)
    add("--seeds", type=int, default=10)
    add("--epsilon", nargs="+", type=float, default=sorted(EPSILONS))
    add("--max-columns", type=int, default=50)
    add("--max-rows", type=int, default=10**9)
    add("--half", choices=("develop", "confirm", "both"), default="both")
    add("--tuned", nargs="+", type=Path, default=[])
    add("--features", choices=(*FEATURES, "linear", "standard"), default="raw")
    add("--device", choices=("numpy", "cuda"), default="numpy")
    add("--scores", type=Path)
    add("--figure", type=Path)
    add("--jobs", type=int, default=2)
    options = parser.parse_args()
    scores = Scores(options.scores)
    named = ("develop", "confirm") if options.half == "both" else (options.half,)
    halves = {
        half: indexed(options.data, half, options.max_columns, options.max_rows) for half in named
    }
    for half, sets in halves.items():
        scores.complete(options, list(dict.fromkeys(options.recipes + options.choose)), sets)
        report(options, scores, half, sets)
    if options.figure:
        draw(options, scores, halves)


if __name__ == "__main__":
    main()
