"""Campaign folders for tests, with made-up losses."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product

import numpy as np
import pyarrow as pa

from discreet.lab.campaign.result_files import FORMAT, NOTHING, SCHEMA, Folder, file_name, to_bytes

BANDITS = ("VanillaPO", "ReplayBonusPO", "SquareCB", "FastCB", "LinUCB", "RegCB", "AdaCB")
ALGORITHMS = (*BANDITS, "Supervised")
EPSILONS = (math.inf, 8.0, 4.0, 2.0, 1.0)
RADII = ("LinUCB", "RegCB", "AdaCB")


def settings(ridge=0.01, **others):
    return json.dumps({**others, "ridge": ridge}, sort_keys=True, separators=(",", ":"))


def ends(rounds):
    """Rounds at the end of each doubling batch."""
    return [min(2**m - 1, rounds) for m in range(1, math.ceil(math.log2(rounds + 1)) + 1)]


def run(dataset, algorithm, epsilon, seed, loss, *, oracle="Ridge", rounds=1000, **changes):
    """One row; its curve falls from 1 to the final loss."""
    falling = np.linspace(1.0, loss if math.isfinite(loss) else 0.0, len(ends(rounds)))
    return {
        "dataset": dataset,
        "algorithm": algorithm,
        "oracle": oracle,
        "mechanism": "paper",
        "epsilon": epsilon,
        "delta": 1e-5 if math.isfinite(epsilon) else 0.0,
        "seed": seed,
        "settings": settings(),
        "rounds": rounds,
        "first_batch": 1,
        "growth": 2.0,
        "loss": loss,
        "curve": falling.tolist(),
    } | changes


def table(rows):
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def task_of(row):
    kind = "radii" if row["algorithm"] in RADII else "predictions"
    kind = "supervised" if row["algorithm"] == "Supervised" else kind
    return f"{file_name(row['dataset'])}.{row['oracle']}.{kind}"


def about(rows):
    return {
        row["dataset"]: {"digest": "0" * 64, "rows": row["rounds"], "features": 3, "actions": 2}
        for row in rows
    }


def grid(rows):
    seen = {column: {row[column] for row in rows} for column in ("algorithm", "epsilon", "seed")}
    return {
        "preset": "paper",
        "mechanism": "paper",
        "features": "raw",
        "seeds": len(seen["seed"]),
        "algorithms": [name for name in ALGORITHMS if name in seen["algorithm"]],
        "epsilons": [
            "inf" if math.isinf(each) else each for each in sorted(seen["epsilon"], reverse=True)
        ],
        "ridges": [0.01],
        "delta": 1e-5,
    }


def write_rows(root, rows, *, failed=None, **changes):
    """A folder with one file for each data set and family; ``failed`` tasks have a reason only."""
    folder, tasks = Folder(root), {}
    folder.runs.mkdir(parents=True)
    for row in rows:
        tasks.setdefault(task_of(row), []).append(row)
    for name, some in tasks.items():
        folder.write_results(name, to_bytes([table(some)]), replace(NOTHING, rows=len(some)))
    for name, reason in (failed or {}).items():
        folder.write_sidecar(name, replace(NOTHING, error=reason))
    manifest = {
        "format": FORMAT,
        "grid": grid(rows),
        "grid_digest": "1" * 64,
        "code_version": "0.1.0",
        "device": "two x86 cores",
        "datasets": about(rows),
    }
    folder.write_manifest(manifest | changes)
    return root


# A rough model of a campaign: the loss of each algorithm above Supervised, and its privacy cost.
GAP = dict(zip(ALGORITHMS, (0.05, 0.03, 0.05, 0.05, 0.05, 0.05, 0.045, 0.0), strict=True))
COST = dict(zip(ALGORITHMS, (0.10, 0.06, 0.10, 0.10, 0.16, 0.17, 0.15, 0.04), strict=True))


def realistic(sets, seed=0):
    """Runs with two seeds, two λ and both oracles on these sets (name → T)."""
    rng = np.random.default_rng(seed)
    ease = {name: rng.uniform(0.03, 0.35) for name in sets}
    rows = []
    for name, algorithm, epsilon, oracle, ridge in product(
        sets, ALGORITHMS, EPSILONS, ("Ridge", "Logistic"), (1e-6, 0.01)
    ):
        level = ease[name] + GAP[algorithm] + 1.2 * COST[algorithm] * math.sqrt(1 / epsilon)
        level += rng.normal(0, 0.004) + 0.01 * (oracle == "Ridge")
        if (algorithm, oracle) != ("FastCB", "Ridge"):
            for number in (0, 1):
                loss = float(np.float32(level + rng.normal(0, 0.01)))
                changes = {"oracle": oracle, "rounds": sets[name], "settings": settings(ridge)}
                rows.append(run(name, algorithm, epsilon, number, loss, **changes))
    return rows


class References(HTMLParser):
    """Everything in a page that a browser might fetch or run."""

    def __init__(self, text):
        super().__init__()
        self.found = re.findall(r"url\((?!#)[^)]*\)|@import[^;]*|image-set\([^)]*\)", text)
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "iframe", "object", "embed", "base"):
            self.found.append(tag)
        for name, value in attributes:
            points = name.split(":")[-1] in ("src", "href", "srcset", "action", "poster", "data")
            if points and not (value or "").startswith(("#", "data:,")):
                self.found.append(f"{name}={value}")
