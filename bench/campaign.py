"""The paper's grid on many data sets: engine time, rounds per second, peak memory.

    python bench/campaign.py --data FOLDER [--device auto|cuda|cpu|numpy] [--sets phoneme fried]
                             [--seeds 10] [--mechanism paper] [--max-columns 70] [--json]

FOLDER holds .npz files (X, y). The clock runs from the first data set to the last, with plans
and data read inside; code that each process loads once is not timed. The peer is the paper's own
scripts, which loop over rounds: about 3,000 rounds per CPU-second.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.campaign.gpu_processes import PROCESSES, shared_gpu
from discreet.campaign.hardware import choose, cores, machine
from discreet.campaign.presets import PAPER_POLICIES, paper_plans
from discreet.simulate.engine import Machine, run

PEER_ROUNDS_A_SECOND = 3_000.0


def labelled(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(Path(folder) / f"{name}.npz") as file:
        return file["X"].astype(np.float64), file["y"].astype(np.int64)


def play(name: str, part: int, parts: int, options: dict[str, Any]) -> dict[str, Any]:
    """One data set, or a part of the grid's runs on it."""
    x, y = labelled(options["data"], name)
    actions = int(y.max()) + 1
    chosen = options["algorithms"] or PAPER_POLICIES
    policies = {name: PAPER_POLICIES[name] for name in chosen}
    plans = paper_plans(actions, x.shape[1], mechanism=options["mechanism"], policies=policies)
    plans = plans[part * options["every"] :: parts * options["every"]]
    features = dc.UnitBall(x.shape[1]).map(x)
    start = time.perf_counter()
    plans = [plan for _, plan in plans]
    losses = run(plans, features, y, range(options["seeds"]), options["machine"])
    return {
        "set": name,
        "shape": (len(x), features.shape[1], actions),
        "seconds": time.perf_counter() - start,
        "rounds": losses.shape[0] * losses.shape[1] * len(x),
        "best": float(losses[..., -1].mean(axis=1).min()),
        "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def warm_up(options: dict[str, Any]) -> Machine:
    """Imports, calibration and device libraries are loaded before the clock starts."""
    given = machine(options["device"], options["jobs"], options["memory"])
    given = replace(given, dtype=options["dtype"])
    columns, actions = (3,), (2,)
    if options["device"] == "cuda":  # a kernel for each size
        columns, actions = (3, 16, 20, 32, 40, 64, 70), (2, 4, 8, 16)
    one_each = {name: settings[:1] for name, settings in PAPER_POLICIES.items()}
    few = {"policies": one_each, "epsilons": (math.inf, 1.0), "ridges": (1.0,)}
    rng = np.random.default_rng(0)
    for p, several in product(columns, actions):
        x, y = rng.normal(size=(200, p)), rng.integers(0, several, size=200)
        plans = paper_plans(several, p, mechanism=options["mechanism"], **few)
        run([plan for _, plan in plans], dc.UnitBall(p).map(x), y, [0], given)
    return given


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of .npz files (X, y)")
    parser.add_argument("--sets", nargs="*", help="names without .npz; default: all that fit")
    parser.add_argument("--max-columns", type=int, default=70)
    parser.add_argument("--device", default="auto", help="numpy, cpu (torch) or cuda")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, help="processes; on a GPU they share it")
    parser.add_argument("--mechanism", default="structured")
    parser.add_argument("--memory", type=float, help="GiB for all jobs")
    parser.add_argument("--algorithms", nargs="*")
    parser.add_argument("--every", type=int, default=1, help="play only every N-th setting")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    options = vars(parser.parse_args())
    options["device"] = choose(options["device"])
    on_gpu = options["device"] == "cuda"
    options["jobs"] = options["jobs"] or (min(PROCESSES, cores()) if on_gpu else cores())
    parts = 1 if on_gpu else options["jobs"]  # a GPU is fastest with many runs at once
    names = options["sets"] or sorted(path.stem for path in Path(options["data"]).glob("*.npz"))
    cost = {}
    for name in names:
        x, y = labelled(options["data"], name)
        if x.shape[1] <= options["max_columns"]:
            cost[name] = (y.max() + 1) * (x.shape[1] + 10) ** 2 * (len(x) + 3000)
    names = sorted(cost, key=lambda name: -cost[name])  # the longest first
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    fresh = multiprocessing.get_context("spawn")
    done = []
    with (
        shared_gpu(options["device"], options["jobs"]) as shared,
        ProcessPoolExecutor(options["jobs"], mp_context=fresh) as pool,
    ):
        start = time.perf_counter()
        options["machine"] = min(
            pool.map(warm_up, [options] * options["jobs"]), key=lambda given: given.memory
        )
        print(f"warm after {time.perf_counter() - start:.1f} s", options["machine"], flush=True)
        start = time.perf_counter()
        futures = [
            pool.submit(play, name, part, parts, options) for name in names for part in range(parts)
        ]
        for future in as_completed(futures):
            result = future.result()
            done.append(result)
            rows, p, actions = result["shape"]
            print(
                f"{result['set']:26} T={rows:6} p={p:4} A={actions:3} {result['seconds']:8.2f} s "
                f"{result['rounds'] / result['seconds']:10.3g} rounds/s  best {result['best']:.4f}",
                flush=True,
            )
        seconds = time.perf_counter() - start
    rounds = sum(result["rounds"] for result in done)
    summary = {
        "sets": len(names),
        "processes": options["jobs"],
        "side by side": int(shared),
        "runs": sum(result["rounds"] // result["shape"][0] for result in done),
        "seconds": seconds,
        "rounds": rounds,
        "rounds/s": rounds / seconds,
        "ratio to the scripts": rounds / seconds / PEER_ROUNDS_A_SECOND,
        "peak GiB of a process": max(result["peak GiB"] for result in done),
    }
    print("  ".join(f"{name} {value:.4g}" for name, value in summary.items()))
    if options["json"]:
        print(json.dumps({**summary, "details": done}))


if __name__ == "__main__":
    main()
