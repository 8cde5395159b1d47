"""Seconds to store late outcomes from a Parquet file: ``python bench/outcomes.py --rows 5000000``.

Decisions of batches of 500,000, leased 64 at a time, whose outcomes lie in a file in random order.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from discreet.data.warehouse import CHUNK
from discreet.service.runtime import lifecycle
from discreet.service.secrets.sealing import WRITTEN, DecisionId, DecisionIds
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage.batches import BatchRules, SlotRequest, Slots
from discreet.service.storage.locations import open_database

LEASE = 64
FILE = """
experiment = "outcomes"
anchor = "anchor.jsonl"
window = "30d"
[plan]
n_actions = 3
first_batch = 500_000
longest_batch = 500_000
features = { kind = "UnitBall", dimension = 5 }
budget = { epsilon = 1.0, delta = 1e-8 }
"""


def decisions(settings: Settings, rows: int) -> list[str]:
    """Ids of as many decisions, whose slots are leased as a service leases them."""
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    rules = BatchRules(settings.plan.schedule, "pipeline", settings.window, settings.settle, 1)
    slots, ids, made = Slots(database, vault, rules), DecisionIds(vault.mac), list[str]()
    with closing(database.connect()) as connection, database.transaction(connection):
        while len(made) < rows:
            lease = slots.lease(connection, [SlotRequest(LEASE, LEASE)])[0]
            assert lease is not None
            place = (lease.epoch, lease.batch)
            made += [ids.write(DecisionId(WRITTEN, *place, s, lease.nonce)) for s in lease.free]
    return made[:rows]


def outcomes(folder: Path, rows: int) -> Path:
    """An experiment with decisions, and a file of their losses."""
    (folder / "experiment.toml").write_text(FILE)
    settings = Settings.read(folder / "experiment.toml")
    lifecycle.begin(settings)
    rng = np.random.default_rng(0)
    ids = np.asarray(decisions(settings, rows), dtype=object)[rng.permutation(rows)]
    table = pyarrow.table({"id": pyarrow.array(ids), "loss": rng.random(rows)})
    pyarrow.parquet.write_table(table, folder / "outcomes.parquet")
    return folder / "outcomes.parquet"


def observed(folder: Path, file: Path, step: str = "") -> dict[str, int]:
    """Results of a run in a process of its own, which ends at a step as if it were killed."""
    words = ["observe", "--config", str(folder / "experiment.toml"), "--from", str(file), "--json"]
    words += ["--progress", str(folder / "outcomes.progress")]
    code = f"from discreet.cli.main import main; raise SystemExit(main({words!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"DISCREET_STEP": step}, stdout=-1
    )
    assert done.returncode == (-signal.SIGKILL if step else 0), done.returncode
    return {} if step else json.loads(done.stdout)["results"]


def stored(folder: Path) -> int:
    """The number of stored outcomes."""
    with closing(open_database(Settings.read(folder / "experiment.toml")).connect()) as connection:
        return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--kill", action="store_true", help="kill it half-way, and go on")
    parser.add_argument("--folder", help="keep the experiment here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(given.folder or made)
        folder.mkdir(exist_ok=True)
        file = outcomes(folder, given.rows)
        began, used = time.perf_counter(), os.times()
        if given.kill:
            observed(folder, file, f"outcomes:before-commit@{max(1, given.rows // CHUNK // 2)}")
            print(f"killed with {stored(folder):,} outcomes stored", flush=True)
        results = observed(folder, file)
        seconds, now = time.perf_counter() - began, os.times()
        processor = sum(now[:4]) - sum(used[:4])
        load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
        print(f"{results}; {stored(folder):,} outcomes are stored")
        print(
            f"{given.rows:,} outcomes in {seconds:.1f} s ({processor:.1f} s of processor; load "
            f"{load})"
        )
