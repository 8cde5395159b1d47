"""Peak memory of a campaign's job on a CPU, for every data set.

    python bench/memory.py --data FOLDER [--sets phoneme fried] [--mechanism paper] [--seeds 10]

FOLDER holds .npz files (X, y). The engine cuts the paper's grid into parts that fit its budget;
all parts of a family are alike, so one of each is played, in two batches: memory is held for one
batch at a time, and the second batch is longer than any of the grid. The peak is that of a process
which plays one data set, including Python and its libraries.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import time
from dataclasses import replace
from pathlib import Path

import discreet as dc
from campaign import labelled
from discreet.arrays.stacking import structure
from discreet.design.schedule import Schedule
from discreet.lab.campaign.grid import Grid, plans_of
from discreet.lab.campaign.hardware import machine, one_thread
from discreet.lab.campaign.presets import PAPER_POLICIES
from discreet.simulate.engine import memory_parts, run


def peak_gib() -> float:
    """The most this process has held (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def play(folder: str, name: str, mechanism: str, seeds: int, device: str) -> None:
    x, y = labelled(folder, name)
    actions = int(y.max()) + 1
    features = dc.UnitBall(x.shape[1]).map(x)
    third = math.ceil(len(x) / 3)
    grid = Grid.of("paper", algorithms=PAPER_POLICIES, mechanism=mechanism)
    plans = [replace(plan, first_batch=third) for plan in plans_of(grid, actions, x.shape[1])]
    given = machine(device, 1)
    schedule = Schedule(plans[0].first_batch, len(x))
    families: dict[object, tuple[list[int], list[int]]] = {}
    for indices, some in memory_parts(plans, features.shape, schedule, seeds, given):
        first = plans[indices[0]]
        alike = structure(first.mechanism), first.feedback
        family = *alike, first.budget.private, first.policy.uses_radii
        families.setdefault(family, (indices, some))
    start = time.perf_counter()
    runs = 0
    with one_thread(device):
        for indices, some in families.values():
            run([plans[i] for i in indices], features, y, some, given)
            runs += len(indices) * len(some)
    print(
        f"{name:28} T={len(x):6} p={features.shape[1]:4} A={actions:3} {runs:6} runs in "
        f"{len(families)} parts {time.perf_counter() - start:7.1f} s  peak {peak_gib():.2f} GiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of .npz files (X, y)")
    parser.add_argument("--sets", nargs="*", help="names without .npz; default: all")
    parser.add_argument("--mechanism", default="structured")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--device", default="numpy", help="numpy or cpu (torch)")
    args = parser.parse_args()
    names = args.sets or sorted(path.stem for path in Path(args.data).glob("*.npz"))
    fresh = multiprocessing.get_context("spawn")
    for name in names:  # one process per set, so that no set inherits another's heap
        given = (args.data, name, args.mechanism, args.seeds, args.device)
        process = fresh.Process(target=play, args=given)
        process.start()
        process.join()


if __name__ == "__main__":
    main()
