"""Campaign folders for tests, written here after the contract and not by the campaign."""

import hashlib
import json
import math
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BANDITS = ("VanillaPO", "ReplayBonusPO", "SquareCB", "FastCB", "LinUCB", "RegCB", "AdaCB")
ALGORITHMS = (*BANDITS, "Supervised")
EPSILONS = (math.inf, 8.0, 4.0, 2.0, 1.0)
RADII = ("LinUCB", "RegCB", "AdaCB")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("dataset", "algorithm", "oracle", "mechanism")),
        *((name, pa.float64()) for name in ("epsilon", "delta")),
        ("seed", pa.int32()),
        ("settings", pa.string()),
        ("rounds", pa.int32()),
        ("first_batch", pa.int32()),
        ("growth", pa.float64()),
        ("loss", pa.float32()),
        ("curve", pa.list_(pa.float32())),
    ]
)


def settings(ridge=0.01, **others):
    return json.dumps({**others, "ridge": ridge}, sort_keys=True, separators=(",", ":"))


def delta(epsilon):
    return 1e-5 if math.isfinite(epsilon) else 0.0


def ends(rounds):
    """Rounds at the end of each doubling batch."""
    return [min(2**m - 1, rounds) for m in range(1, math.ceil(math.log2(rounds + 1)) + 1)]


def run(dataset, algorithm, epsilon, seed, loss, *, oracle="Ridge", rounds=1000, **changes):
    """One row; its curve falls from 1 to the final loss."""
    falling = np.linspace(1.0, loss if loss and math.isfinite(loss) else 0.0, len(ends(rounds)))
    return {
        "dataset": dataset,
        "algorithm": algorithm,
        "oracle": oracle,
        "mechanism": "paper",
        "epsilon": epsilon,
        "delta": delta(epsilon),
        "seed": seed,
        "settings": settings(),
        "rounds": rounds,
        "first_batch": 1,
        "growth": 2.0,
        "loss": loss,
        "curve": falling.tolist(),
    } | changes


def family(row):
    if row["algorithm"] == "Supervised":
        return f"{row['oracle']}.supervised"
    return f"{row['oracle']}.{'radii' if row['algorithm'] in RADII else 'predictions'}"


def write_rows(root, rows, **changes):
    """A folder with one file for each data set and family."""
    tasks = {}
    for row in rows:
        tasks.setdefault(f"{row['dataset']}.{family(row)}", []).append(row)
    write_tables(
        root,
        {name: pa.Table.from_pylist(some, schema=SCHEMA) for name, some in tasks.items()},
        **({"datasets": about(rows), "grid": grid(rows)} | changes),
    )
    return root


def about(rows):
    return {
        row["dataset"]: {"digest": "0" * 64, "rows": row["rounds"], "features": 3, "actions": 2}
        for row in rows
    }


def grid(rows):
    def seen(column):
        return {row[column] for row in rows}

    return {
        "preset": "paper",
        "mechanism": "paper",
        "algorithms": [name for name in ALGORITHMS if name in seen("algorithm")],
        "epsilons": [
            "inf" if math.isinf(each) else each for each in sorted(seen("epsilon"), reverse=True)
        ],
        "delta": 1e-5,
        "ridges": [0.01],
        "seeds": len(seen("seed")),
    }


def write_tables(root, tables, *, datasets, grid, failed=None):
    """``tables`` by task; ``failed`` tasks have a reason and no file."""
    runs = root / "runs"
    runs.mkdir(parents=True)
    for name, table in tables.items():
        path = runs / f"{name}.parquet"
        pq.write_table(table, path)
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
        write_sidecar(root, name, sha256=checksum, seconds=1.5, rows=table.num_rows)
    for name, reason in (failed or {}).items():
        write_sidecar(root, name, error=reason)
    manifest = {
        "format": "discreet-campaign/1",
        "grid": grid,
        "grid_digest": "1" * 64,
        "code_version": "0.1.0",
        "device": "two x86 cores",
        "datasets": datasets,
    }
    (root / "manifest.json").write_text(json.dumps(manifest))


def write_sidecar(root, name, **changes):
    empty = {"sha256": None, "seconds": 0.0, "rows": 0, "seeds": [], "device": "", "error": None}
    (root / "runs" / f"{name}.json").write_text(json.dumps(empty | changes))


# What a campaign looks like, roughly: how much each algorithm loses above Supervised, and how
# much more under privacy.
GAP = dict(zip(ALGORITHMS, (0.05, 0.03, 0.05, 0.05, 0.05, 0.05, 0.045, 0.0), strict=True))
COST = dict(zip(ALGORITHMS, (0.10, 0.06, 0.10, 0.10, 0.16, 0.17, 0.15, 0.04), strict=True))
RIDGES = (1e-6, 1e-4, 1e-2, 1e-1, 1.0)


def realistic(names, seeds=10, configurations=2, seed=0, rounds=None):
    """Columns of a campaign on these sets, (T, A) each; everything vectorised."""
    rng = np.random.default_rng(seed)
    tables = {}
    for name, (horizon, actions) in names.items():
        ease = rng.uniform(0.03, 0.35)
        taste = {algorithm: rng.normal(0, 0.02) for algorithm in ALGORITHMS}
        stops = np.asarray(ends(rounds or horizon))
        for oracle in ("Ridge", "Logistic"):
            for kind in ("predictions", "radii", "supervised"):
                mine = [
                    each
                    for each in ALGORITHMS
                    if family({"algorithm": each, "oracle": oracle}) == f"{oracle}.{kind}"
                    and (each, oracle) != ("FastCB", "Ridge")
                ]
                keys = [
                    (algorithm, epsilon, settings(ridge, scale=2.0**k), bad)
                    for algorithm, epsilon, ridge, k in product(
                        mine, EPSILONS, RIDGES, range(configurations)
                    )
                    for bad in [0.01 * k + 0.02 * abs(math.log10(ridge) + 2)]
                ]
                level = np.asarray(
                    [
                        ease + GAP[a] + taste[a] + bad + COST[a] * math.sqrt(1 / e) * 1.2
                        for a, e, _, bad in keys
                    ]
                )
                level = level + rng.normal(0, 0.01, len(keys)) + 0.01 * (oracle == "Ridge")
                guess = 1 - 1 / actions
                decay = np.log(stops + 1) / np.log(stops[-1] + 1)
                final = level[:, None, None] + rng.normal(0, 0.01, (len(keys), seeds, 1))
                curve = guess + (final - guess) * decay**1.5
                curve = curve + rng.normal(0, 0.2, curve.shape) / np.sqrt(stops)
                curve = np.rint(np.clip(curve, 0, 1) * stops) / stops
                tables[f"{name}.{oracle}.{kind}"] = _table(name, oracle, keys, curve, stops[-1])
    datasets = {
        name: {"digest": "0" * 64, "rows": horizon, "features": 5, "actions": actions}
        for name, (horizon, actions) in names.items()
    }
    everything = {
        "preset": "paper",
        "mechanism": "paper",
        "algorithms": list(ALGORITHMS),
        "epsilons": ["inf", 8.0, 4.0, 2.0, 1.0],
        "delta": 1e-5,
        "ridges": list(RIDGES),
        "seeds": seeds,
    }
    return tables, datasets, everything


def _table(name, oracle, keys, curve, rounds):
    plans, seeds, batches = curve.shape
    flat = curve.astype(np.float32).reshape(-1, batches)
    n = len(flat)

    def each(values, kind):
        return pa.array(np.repeat(np.asarray(values), seeds), kind)

    algorithm, epsilon, text, _ = zip(*keys, strict=True)
    return pa.table(
        {
            "dataset": pa.repeat(name, n),
            "algorithm": each(algorithm, pa.string()),
            "oracle": pa.repeat(oracle, n),
            "mechanism": pa.repeat("paper", n),
            "epsilon": each(epsilon, pa.float64()),
            "delta": each([delta(one) for one in epsilon], pa.float64()),
            "seed": pa.array(np.tile(np.arange(seeds, dtype=np.int32), plans)),
            "settings": each(text, pa.string()),
            "rounds": pa.repeat(pa.scalar(int(rounds), pa.int32()), n),
            "first_batch": pa.repeat(pa.scalar(1, pa.int32()), n),
            "growth": pa.repeat(pa.scalar(2.0), n),
            "loss": pa.array(flat[:, -1]),
            "curve": pa.ListArray.from_arrays(
                pa.array(np.arange(0, flat.size + 1, batches, dtype=np.int32)),
                pa.array(flat.reshape(-1)),
            ),
        }
    )
