"""The paper's grid on many data sets: wall time, rounds per second, peak memory.

    python bench/campaign.py --data FOLDER [--device auto|cuda|cpu|numpy] [--sets phoneme fried]
                             [--seeds 10] [--mechanism paper] [--max-columns 70] [--json] [--cold]

FOLDER holds .npz files (X, y). The clock runs from the command to the last result: it includes
imports, the start of processes, plans, data and, on a GPU, the compilation of kernels that
Triton's cache lacks. ``--cold`` begins with an empty cache. The peer is the paper's own scripts,
which loop over rounds: about 3,000 rounds per CPU-second.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import shutil
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import discreet as dc
from discreet.lab.campaign.grid import Grid, plans_of
from discreet.lab.campaign.hardware import (
    CONTROL,
    PROCESSES,
    compile_kernel,
    cores,
    kernels,
    machine,
    open_gpu,
    shared_gpu,
)
from discreet.lab.campaign.presets import PAPER_POLICIES
from discreet.simulate.engine import run

PEER_ROUNDS_A_SECOND = 3_000.0
SHORT = 6
"""Short sets for each long one."""


def age() -> float:
    """Seconds since the command was given: since the system started this process."""
    with open("/proc/self/stat", encoding="ascii") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def labelled(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(Path(folder) / f"{name}.npz") as file:
        return file["X"].astype(np.float64), file["y"].astype(np.int64)


def play(name: str, part: int, parts: int, options: dict[str, Any]) -> dict[str, Any]:
    """One data set, or a part of the grid's runs on it."""
    x, y = labelled(options["data"], name)
    actions = int(y.max()) + 1
    chosen = options["algorithms"] or PAPER_POLICIES
    grid = Grid.of("paper", algorithms=chosen, mechanism=options["mechanism"])
    plans = plans_of(grid, actions, x.shape[1])
    plans = plans[part * options["every"] :: parts * options["every"]]
    features = dc.UnitBall(x.shape[1]).map(x)
    start = time.perf_counter()
    losses = run(plans, features, y, range(options["seeds"]), options["machine"])
    return {
        "set": name,
        "shape": (len(x), features.shape[1], actions),
        "seconds": time.perf_counter() - start,
        "rounds": losses.shape[0] * losses.shape[1] * len(x),
        "best": float(losses[..., -1].mean(axis=1).min()),
        "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def surveyed(options: dict[str, Any]) -> tuple[list[str], list[tuple[int, int]]]:
    """Names of the sets that are not too wide, in order, and features and actions.

    Long sets fill a GPU and short ones a core, so that some short ones follow each long one.
    """
    names = options["sets"] or [path.stem for path in Path(options["data"]).glob("*.npz")]
    cost, shapes = {}, []
    for name in sorted(names):
        x, y = labelled(options["data"], name)
        if x.shape[1] <= options["max_columns"]:
            shapes.append((x.shape[1] + 1, int(y.max()) + 1))
            cost[name] = (y.max() + 1) * (x.shape[1] + 10) ** 2 * (len(x) + 3000)
    longest = sorted(cost, key=lambda name: -cost[name])
    long = longest[: math.ceil(len(longest) / (1 + SHORT))]
    short = longest[len(long) :]
    each = ([name, *short[SHORT * place : SHORT * (place + 1)]] for place, name in enumerate(long))
    return [name for some in each for name in some], shapes


def _loaded_once(device: str) -> Any:
    """Start processes as copies of one that has imported torch, but not touched the GPU."""
    context = multiprocessing.get_context("forkserver")
    here = ["__main__", "discreet.lab.campaign.grid", "discreet.simulate.engine"]
    context.set_forkserver_preload(here if device == "numpy" else [*here, "torch"])
    forkserver.ensure_running()  # it imports while this process goes on
    return context


def _prepared(on_gpu: bool) -> None:
    """Open the GPU in a new process while the first plans import and calibrate."""
    opened = threading.Thread(target=open_gpu)
    if on_gpu:
        opened.start()
    plans_of(Grid.of("paper", algorithms=PAPER_POLICIES, mechanism="structured"), 2, 2)
    if on_gpu:
        opened.join()


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
    parser.add_argument("--cold", action="store_true", help="with an empty cache of kernels")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    options = vars(parser.parse_args())
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    wants_gpu = options["device"] in ("auto", "cuda") and shutil.which(CONTROL) is not None
    jobs = options["jobs"] or (min(PROCESSES, cores()) if wants_gpu else cores())
    done = []
    with (
        TemporaryDirectory() as empty,
        shared_gpu("cuda" if wants_gpu else "numpy", jobs) as shared,
        ProcessPoolExecutor(jobs, _loaded_once(options["device"]), _prepared, (wants_gpu,)) as pool,
    ):
        if options["cold"]:
            os.environ["TRITON_CACHE_DIR"] = empty
        names, shapes = surveyed(options)
        given = pool.submit(machine, options["device"], jobs, options["memory"])
        for _ in range(jobs - 1):
            pool.submit(cores)  # so that all processes start now
        options["machine"] = replace(given.result(), dtype=options["dtype"])
        on_gpu = options["machine"].device == "cuda"
        if on_gpu:  # those that are not in the cache; other processes begin to play meanwhile
            for kernel in kernels(shapes):
                pool.submit(compile_kernel, kernel)
        parts = 1 if on_gpu else jobs  # a GPU is fastest with many runs at once
        started = age()
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
        seconds = age()
    rounds = sum(result["rounds"] for result in done)
    summary = {
        "sets": len(names),
        "processes": jobs,
        "side by side": int(shared),
        "runs": sum(result["rounds"] // result["shape"][0] for result in done),
        "seconds": seconds,
        "of which before the first set": started,
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
