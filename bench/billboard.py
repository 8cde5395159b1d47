"""Decisions per second of processor that need no server: ``python bench/billboard.py [--quick]``.

A billboard in Python and, where Node is on the path, in JavaScript, row by row; and a learner in
bulk. Five actions, ten numbers, releases of an imported log of 100,000 rows.
"""

import argparse
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.client import Billboard, documents

CLIENT = Path(__file__).parents[1] / "clients" / "js" / "discreet.js"
SCRIPT = """
import { readFileSync } from "node:fs";
import { Billboard } from "%s";
const board = await Billboard.from(readFileSync("%s", "utf8"), "%s");
const ten = () => Array.from({ length: 10 }, () => Math.random() - 0.5);
const rows = Array.from({ length: %d }, ten);
for (const row of rows.slice(0, 500)) board.sample(row);
const before = process.cpuUsage();
for (const row of rows) board.sample(row);
const { user, system } = process.cpuUsage(before);
console.log(rows.length / ((user + system) / 1e6));
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few decisions")
    count = 1_000 if parser.parse_args().quick else 20_000
    rng, n = np.random.default_rng(0), 100_000
    x, actions = rng.uniform(-0.5, 0.5, (n, 10)), rng.integers(5, size=n)
    features, budget = dc.UnitBall(10), dc.Budget(1.0, 1e-6)
    plan = dc.Plan(n_actions=5, features=features, budget=budget, imported=n)
    learner = dc.Learner(plan)
    learner.import_log(x, actions, np.clip(0.5 + x[:, 0] * (actions - 2), 0, 1))
    private = documents.new_private_key()
    public = documents.public_key(private)
    chain = [documents.sign(documents.genesis(plan, "bench", public), private)]
    for release in learner.released.items:
        chain.append(documents.sign(documents.release_document(chain[-1], release), private))
    board, rows = Billboard(chain, public), x[:count].tolist()
    [board.sample(row) for row in rows[:100]]
    began = time.process_time()
    [board.sample(row) for row in rows]
    print(f"Python billboard: {count / (time.process_time() - began):,.0f} per second of processor")
    if node := shutil.which("node"):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "chain.jsonl").write_bytes(b"\n".join(chain) + b"\n")
            (Path(folder) / "bench.mjs").write_text(
                SCRIPT % (CLIENT, Path(folder) / "chain.jsonl", public, count)
            )
            rate = subprocess.run([node, f"{folder}/bench.mjs"], capture_output=True, check=True)
        print(f"JavaScript billboard: {float(rate.stdout):,.0f} per second of processor")
    began = time.process_time()
    learner.decide(x)
    print(f"learner in bulk: {n / (time.process_time() - began):,.0f} per second of processor")
    print(f"{len(chain)} documents of {sum(map(len, chain)):,} bytes")


if __name__ == "__main__":
    main()
