"""The table of private bandits from a campaign's results: settings chosen on one half of the sets,
losses of the other half.

    python bench/rival_table.py RESULTS --index DIR/INDEX.csv [--csv table.csv]

RESULTS is the --out of ``discreet campaign run --preset rivals``. For every algorithm and ε the
setting with the least mean loss on the developing half (every other set of the index, the first
included) is reported on the confirming half: mean loss, difference from the default plan with its
95 % interval over sets (their means over seeds have the chance of seeds in them), the share of sets
on which the default is ahead, and what needs no contexts.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from discreet.lab.campaign.result_files import Folder, read
from discreet.lab.report.algorithm_comparison import differences
from discreet.text import epsilon_text

COLUMNS = ("dataset", "algorithm", "epsilon", "oracle", "settings", "seed", "loss")


def losses_of(results: Path) -> dict[tuple[str, float], dict[str, dict[str, float]]]:
    """(algorithm, ε) -> setting -> set -> mean loss over seeds."""
    sums: Any = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for row in read(results, COLUMNS).to_pylist():
        setting = f"{row['oracle']} {row['settings']}"
        sums[row["algorithm"], row["epsilon"]][setting][row["dataset"]].append(row["loss"])
    return {
        key: {s: {d: float(np.mean(v)) for d, v in sets.items()} for s, sets in found.items()}
        for key, found in sums.items()
    }


def chosen(found: dict[str, dict[str, float]], develop: set[str]) -> dict[str, float]:
    """The losses of the setting that is best on the developing half."""

    def mean(setting: str) -> float:
        known = [loss for name, loss in found[setting].items() if name in develop]
        return float(np.mean(known)) if known else math.inf

    return found[min(found, key=mean)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    with options.index.open(newline="") as file:
        slugs = [row["slug"] for row in csv.DictReader(file)]
    facts = Folder(options.results).manifest()["datasets"]
    everything = losses_of(options.results)
    confirm = [name for name in slugs[1::2] if name in facts]
    levels = sorted({e for _, e in everything}, reverse=True)
    names = sorted({name for name, _ in everything} - {"Default"})
    table = np.full((len(confirm), 1 + len(names), len(levels)), np.nan)
    for a, name in enumerate(["Default", *names]):
        for i, level in enumerate(levels):
            if (name, level) in everything:
                found = chosen(everything[name, level], {*slugs[0::2]})
                table[:, a, i] = [found.get(each, np.nan) for each in confirm]
    beside = differences(names, levels, table[:, 1:] - table[:, :1])
    lines = {(each["algorithm"], each["epsilon"]): each for each in beside}
    means = np.array([[np.nanmean(c) if np.isfinite(c).any() else np.nan for c in r] for r in
                      np.moveaxis(table, 0, -1)])  # fmt: skip
    print(f"{len(confirm)} confirming sets; loss, difference from Default, % of sets it is ahead")
    print("| |", " | ".join(f"ε = {epsilon_text(e)}" for e in levels), "|")
    print("|---" * (1 + len(levels)) + "|")
    print("| Default |", " | ".join(f"{each:.4f}" for each in means[0]), "|")
    for a in np.argsort(np.nan_to_num(means[1:, 1:], nan=1.0).mean(1)):
        cells = []
        for i in range(len(levels)):
            if (names[a], levels[i]) not in lines:
                cells.append("–")
                continue
            each = lines[names[a], levels[i]]
            mean, share = each["mean_difference"], each["default_ahead_percent"]
            spread = mean - each["low"]
            cells.append(f"{means[1 + a, i]:.4f}: {mean:+.3f} ± {spread:.3f} ({share:.0f})")
        print(f"| {names[a]} |", " | ".join(cells), "|")
    fixed = np.mean([facts[each]["best_fixed"] for each in confirm])
    uniform = np.mean([1 - 1 / facts[each]["actions"] for each in confirm])
    print(f"best fixed action {fixed:.4f}, uniform {uniform:.4f}")
    if options.csv:
        with options.csv.open("w", newline="") as file:
            csv.writer(file).writerows(each.values() for each in beside)


if __name__ == "__main__":
    main()
