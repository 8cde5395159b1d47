"""The paper's grid on many data sets: engine time, rounds a second, peak memory.

    python bench/campaign.py --data FOLDER [--device cuda|cpu|numpy] [--sets phoneme fried]
                             [--seeds 10] [--mechanism paper] [--max-columns 70] [--json]

FOLDER holds .npz files (X, y). The peer is the paper's own scripts, which loop over rounds:
about 3,000 rounds a CPU-second.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.simulate.engine import Machine, run
from discreet.simulate.presets import paper_plans

PEER_ROUNDS_A_SECOND = 3_000.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of .npz files (X, y)")
    parser.add_argument("--sets", nargs="*", help="names without .npz; default: all that fit")
    parser.add_argument("--max-columns", type=int, default=70)
    parser.add_argument("--device", default="numpy", help="numpy, cpu (torch) or cuda")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--mechanism", default="paper")
    parser.add_argument("--memory", type=float, default=2.0, help="GiB for one family")
    parser.add_argument("--algorithms", nargs="*")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    arguments = parser.parse_args()
    machine = Machine(arguments.device, arguments.dtype, int(arguments.memory * 2**30))
    names = arguments.sets or sorted(path.stem for path in Path(arguments.data).glob("*.npz"))
    grid = {} if not arguments.algorithms else {"algorithms": arguments.algorithms}
    total_seconds = total_rounds = 0.0
    per_set = []
    for name in names:
        with np.load(Path(arguments.data) / f"{name}.npz") as file:
            x, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
        if x.shape[1] > arguments.max_columns:
            continue
        actions = int(y.max()) + 1
        plans = paper_plans(actions, x.shape[1], mechanism=arguments.mechanism, **grid)
        features = dc.UnitBall(x.shape[1]).map(x)
        start = time.perf_counter()
        losses = run([p for _, p in plans], features, y, range(arguments.seeds), machine)
        seconds = time.perf_counter() - start
        rounds = losses.shape[0] * losses.shape[1] * len(x)
        total_seconds, total_rounds = total_seconds + seconds, total_rounds + rounds
        best = float(losses[..., -1].mean(axis=1).min())
        per_set.append({"set": name, "seconds": seconds, "rounds": rounds, "best": best})
        print(
            f"{name:26} T={len(x):6} p={features.shape[1]:4} A={actions:3} {seconds:8.2f} s "
            f"{rounds / seconds:10.3g} rounds/s  best {best:.4f}",
            flush=True,
        )
    result = {
        "sets": per_set,
        "seconds": total_seconds,
        "rounds": total_rounds,
        "rounds/s": total_rounds / total_seconds,
        "ratio to the scripts": total_rounds / total_seconds / PEER_ROUNDS_A_SECOND,
        "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    summary = {name: value for name, value in result.items() if name != "sets"}
    print("  ".join(f"{name} {value:.4g}" for name, value in summary.items()))
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
