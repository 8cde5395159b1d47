"""What noise does to small groups: losses of a minority and of the majority at several ε.

    python bench/groups.py [--share 0.2 0.05 0.01] [--rounds 10000 40000] [--seeds 10]
                           [--epsilon 1 4 8 inf] [--adult adult.npz] [--out FILE.csv] [--quick]

Generated people have six numbers. The majority should get action 1 where x1 + x2 > 0, and the
minority where x3 + x4 > 0; one label in ten is wrong. The default plan reads them through three
schemas: without the group, with it as a column, and with its products with every number; and
without it once more, as a plan of its own for each group. With --adult the labels are those of the
census set (income above 50,000 dollars or not), and the groups are its columns of race. Printed:
mean loss with a 95 % interval over seeds, and the best fixed action of the group.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import discreet as dc
from discreet.simulate.group_losses import GroupLoss
from discreet.text import epsilon_text

NUMBERS = [f"x{number}" for number in range(1, 7)]
WRONG = 0.1
RACES = {"American Indian": 56, "Asian": 57, "Black": 58, "other": 59, "White": 60}
"""Columns of adult.npz, as its INDEX.csv orders the categories of the census file."""
ADULT = {"age": (0, 17, 90), "education": (27, 1, 16), "gain": (62, 0, 100_000)} | {
    "loss": (63, 0, 4_500),
    "hours": (64, 1, 99),
}
FLAGS = {"married": 30, "never_married": 32, "male": 61}


def people(rows: int, share: float) -> tuple[pd.DataFrame, Any]:
    """Six numbers, who is of the minority, and what each should get."""
    rng = np.random.default_rng([round(1000 * share), rows])
    numbers = rng.uniform(-1.0, 1.0, (rows, len(NUMBERS)))
    minority = rng.random(rows) < share
    right = np.where(minority, numbers[:, 2] + numbers[:, 3], numbers[:, 0] + numbers[:, 1]) > 0
    frame = pd.DataFrame(numbers, columns=NUMBERS).assign(minority=minority)
    return frame, (right ^ (rng.random(rows) < WRONG)).astype(int)


def schemas(numbers: list[Any], group: Any) -> dict[str, dc.Schema]:
    """Without the group, with it, and with its products."""
    products = [(group.name, number.name) for number in numbers]
    return {
        "no group column": dc.Schema(numbers),
        "group column": dc.Schema([*numbers, group]),
        "with products": dc.Schema([*numbers, group], products=products),
    }


def generated(share: float, rounds: int, how: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    frame, labels = people(rounds, share)
    names = np.where(frame["minority"], "minority", "majority")
    numbers = [dc.Number(name, -1, 1) for name in NUMBERS]
    yield from played(schemas(numbers, dc.Flag("minority")), frame, labels, names, how)


def census(path: str, how: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    stored = np.load(path)
    table = {name: stored["X"][:, place] for name, (place, _, _) in ADULT.items()}
    table |= {name: stored["X"][:, place] > 0 for name, place in FLAGS.items()}
    race = np.asarray(list(RACES))[stored["X"][:, list(RACES.values())].argmax(axis=1)]
    frame = pd.DataFrame(table).assign(race=race)
    columns = [dc.Number(name, low, high, clip=True) for name, (_, low, high) in ADULT.items()]
    columns += [dc.Flag(name) for name in FLAGS]
    race_column = dc.Category("race", list(RACES))
    yield from played(schemas(columns, race_column), frame, stored["y"], race, how)


def played(
    read: dict[str, dc.Schema], frame: Any, labels: Any, names: Any, how: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Each schema for all people, then the first for each group alone."""
    for title, schema in read.items():
        yield title, curve(schema, frame, labels, names, how)
    alone = next(iter(read.values()))
    for name in sorted(set(names)):
        rows = names == name
        yield (
            f"a plan of its own: {name}",
            curve(alone, frame[rows], labels[rows], names[rows], how),
        )


def curve(schema: dc.Schema, frame: Any, labels: Any, names: Any, how: dict[str, Any]) -> Any:
    plan = dc.Plan(n_actions=2, features=schema, budget=dc.Budget.none())
    seen = frame[[each.name for each in schema.fields]]
    return dc.privacy_curve(seen, labels, groups=names, plan=plan, **how).by_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--share", nargs="+", type=float, default=[0.2, 0.05, 0.01])
    parser.add_argument("--rounds", nargs="+", type=int, default=[10_000, 40_000])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 4.0, 8.0, math.inf])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--adult", metavar="FILE.npz", help="also the census set, from this file")
    parser.add_argument("--out", metavar="FILE.csv", help="also write every line here")
    parser.add_argument("--quick", action="store_true", help="one small set, two seeds")
    args = parser.parse_args()
    if args.quick:
        args.share, args.rounds, args.epsilon, args.seeds = [0.2], [1_000], [8.0, math.inf], 2
    how = {"epsilons": args.epsilon, "seeds": args.seeds}
    lines: list[list[Any]] = []
    for share in args.share:
        for rounds in args.rounds:
            shown(f"{share:.0%} of {rounds:,}", generated(share, rounds, how), lines)
    if args.adult:
        shown("census", census(args.adult, how), lines)
    if args.out:
        with Path(args.out).open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["set", "schema", *GroupLoss._fields])
            writer.writerows(lines)


def shown(name: str, curves: Iterator[tuple[str, Any]], lines: list[list[Any]]) -> None:
    """Print a set's lines as they come."""
    for title, losses in curves:
        print(f"\n{name}, {title}", flush=True)
        for line in losses:
            interval = f"{line.low:.3f} … {line.high:.3f}"
            print(
                f"{line.group:>16} {line.rounds:>7,} {epsilon_text(line.epsilon):>3} "
                f"{line.loss:.3f}  {interval}  best fixed {line.best_fixed:.3f}",
                flush=True,
            )
            lines.append([name, title, *(round(x, 5) if isinstance(x, float) else x for x in line)])


if __name__ == "__main__":
    main()
