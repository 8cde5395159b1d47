"""Runs of the paper's selected settings: mean final loss over the seeds for each cell.

    python bench/fidelity.py --data FOLDER [--settings FILE.csv] [--seeds 10] [--json]

FOLDER holds the data sets as .npz (X, y) with an INDEX.csv that maps OpenML ids to file names;
FILE.csv lists the settings that the paper's authors published for each data set, algorithm
and ε (default: facts/paper_selected_settings.csv beside FOLDER). Mechanisms are the paper's,
and VanillaPO uses the rollout of its scripts.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.lab.campaign.presets import DOUBLING

SETS = ("banknote", "phoneme", "cardiotocography3", "shuttle2000")
ALGORITHMS = {
    "vpo": "VanillaPO",
    "bpo": "ReplayBonusPO",
    "squarecb": "SquareCB",
    "fastcb": "FastCB",
    "linucb": "LinUCB",
    "regcb": "RegCB",
    "adacb": "AdaCB",
    "supervised": "Supervised",
}


def policy_of(row: dict[str, str]) -> Any:
    """The policy of a line of published settings."""

    def number(name: str) -> float:
        return float(row[name])

    match row["algorithm"]:
        case "vpo":
            return dc.VanillaPO(scale=number("learning_rate_scale"), rollout="previous")
        case "bpo":
            return dc.ReplayBonusPO(
                learning_rate=number("learning_rate_scale"), bonus=number("gamma_scale")
            )
        case "squarecb":
            return dc.SquareCB(scale=number("gamma_scale"), exponent=number("gamma_exponent"))
        case "fastcb":
            return dc.FastCB(scale=number("gamma_scale"), exponent=number("gamma_exponent"))
        case "linucb":
            return dc.LinUCB(width=number("ucb_scale"))
        case "regcb":
            return dc.RegCB(width=number("width_scale"))
        case "adacb":
            return dc.AdaCB(
                scale=number("gamma_scale"),
                exponent=number("gamma_exponent"),
                width=number("width_scale"),
            )
        case _:
            return dc.Greedy()


def plan_of(row: dict[str, str], n_actions: int, dimension: int) -> dc.Plan:
    """The whole run of a line of published settings."""
    supervised = row["algorithm"] == "supervised"
    oracle = dc.Ridge if row["loss"] == "quadratic" else dc.Logistic
    epsilon = float(row["epsilon"])
    private = math.isfinite(epsilon)
    return dc.Plan(
        n_actions=n_actions,
        features=dc.UnitBall(dimension),
        policy=policy_of(row),
        oracle=oracle(ridge=float(row["ridge_lambda"]), mechanism="paper"),
        budget=dc.Budget(epsilon, float(row["delta"])) if private else dc.Budget.none(),
        feedback="full" if supervised else "bandit",
        losses="one_label" if supervised else "general",
        **DOUBLING,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of .npz files with INDEX.csv")
    parser.add_argument("--settings", help="csv of published settings")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    arguments = parser.parse_args()
    folder = Path(arguments.data)
    settings = Path(arguments.settings or folder.parent / "facts" / "paper_selected_settings.csv")
    with (folder / "INDEX.csv").open() as file:
        ids = {row["slug"]: row["openml_id"] for row in csv.DictReader(file)}
    with settings.open() as file:
        rows = list(csv.DictReader(file))
    cells = []
    start = time.perf_counter()
    print(f"{'data set':20} {'algorithm':14} {'epsilon':>7} {'loss':>8} {'s.e.':>8}")
    for slug in arguments.sets:
        with np.load(folder / f"{slug}.npz") as data:
            x, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
        for row in (row for row in rows if row["dataset_id"] == ids[slug]):
            plan = plan_of(row, int(y.max()) + 1, x.shape[1])
            losses = [dc.evaluate(plan, x, y, seed=s).loss for s in range(arguments.seeds)]
            cell = {
                "dataset": slug,
                "algorithm": ALGORITHMS[row["algorithm"]],
                "epsilon": row["epsilon"],
                "loss": float(np.mean(losses)),
                "standard_error": float(np.std(losses, ddof=1) / math.sqrt(len(losses))),
            }
            cells.append(cell)
            print(
                f"{slug:20} {cell['algorithm']:14} {cell['epsilon']:>7} "
                f"{cell['loss']:8.4f} {cell['standard_error']:8.4f}",
                flush=True,
            )
    seconds = time.perf_counter() - start
    print(f"{len(cells) * arguments.seeds} runs in {seconds:.1f} s")
    if arguments.json:
        print(json.dumps({"cells": cells, "seconds": seconds}))


if __name__ == "__main__":
    main()
