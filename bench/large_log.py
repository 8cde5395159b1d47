"""A private log in Parquet files: one process, and a Dask cluster that loses a worker.

    python bench/large_log.py [--rows 50_000_000] [--folder FOLDER] [--quick]

Both imports draw the same noise, so their documents must be the same to the bit; the exit code is 1
if they are not. Printed: seconds, rows per second of processor, and the same for a plain NumPy sum
of the same products over rows that are in memory.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import dask
import numpy as np
import pyarrow
import pyarrow.parquet
from distributed import Client, LocalCluster

import discreet as dc

ACTIONS, COLUMNS = 5, 10
PER_FILE, PER_GROUP = 2**21, 2**17
SPAWNED = "distributed.nanny.pre-spawn-environ"
MEMORY = {f"{SPAWNED}.MALLOC_TRIM_THRESHOLD_": 2**28, f"{SPAWNED}.MALLOC_MMAP_THRESHOLD_": 2**25}
"""By default workers of Dask return the memory of every array at once: three times as slow."""


class SameNoise(dc.SecureNoise):
    """For a comparison alone: noise of a known seed protects nobody."""

    def __init__(self, batch: int = 0) -> None:
        super().__init__()
        object.__setattr__(self, "batch", batch)

    def for_batch(self, batch: int) -> SameNoise:
        return SameNoise(batch)

    def gaussian(self, name: str, shape: tuple[int, ...], scale: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng([self.batch, zlib.crc32(name.encode())])
        return np.rint(rng.standard_normal(shape) * scale).astype(np.int64)


def some_rows(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.random((rows, COLUMNS), dtype=np.float32) - np.float32(0.5)
    actions = rng.integers(ACTIONS, size=rows, dtype=np.int8)
    return x, actions, np.clip(0.5 + x[:, 0] * (actions - 2), 0, 1)


def write(folder: Path, rows: int) -> None:
    for number, start in enumerate(range(0, rows, PER_FILE)):
        x, actions, losses = some_rows(min(PER_FILE, rows - start), number)
        columns = {f"x{place}": x[:, place] for place in range(COLUMNS)}
        table = pyarrow.table(columns | {"action": actions, "loss": losses})
        file = folder / f"part-{number:05}.parquet"
        pyarrow.parquet.write_table(table, file, row_group_size=PER_GROUP, compression="zstd")


def plan(rows: int) -> dc.Plan:
    features, budget = dc.UnitBall(COLUMNS), dc.Budget(1.0, 1e-9)
    return dc.Plan(n_actions=ACTIONS, features=features, budget=budget, imported=rows)


def imported(folder: Path, rows: int, executor: object = None) -> list[str]:
    learner = dc.Learner(plan(rows), noise=SameNoise())
    learner.import_log(folder, "action", "loss", executor=executor)  # type: ignore[arg-type]
    return [item.digest for item in learner.released.items]


class Killing:
    """An executor that kills a worker once half of all parts have ended."""

    def __init__(self, client: Client, cluster: LocalCluster, rows: int) -> None:
        self.inner, self.left, self.rows = client.get_executor(), rows // 2, rows
        self.pid = next(iter(cluster.workers.values())).pid

    def submit(self, call: Callable[..., object], part: object) -> object:
        job = self.inner.submit(call, part)
        job.add_done_callback(lambda _: self.ended(part.rows))  # type: ignore[attr-defined]
        return job

    def ended(self, rows: int) -> None:
        before, self.left = self.left, self.left - rows
        if before > 0 >= self.left:
            os.kill(self.pid, signal.SIGKILL)
            print(f"killed a worker after {self.rows // 2 - self.left:,} rows", flush=True)


def on_a_cluster(folder: Path, rows: int) -> list[str]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        dask.config.set(MEMORY),
        LocalCluster(processes=True, **options) as cluster,
        Client(cluster) as client,
    ):
        return imported(folder, rows, Killing(client, cluster, rows))


def plain(rows: int) -> None:
    """The sums of an import, of rows in memory, as floats: blocks of 4,096 rows."""
    x, actions, losses = some_rows(min(rows, PER_FILE), 0)
    features, weights = np.ones((len(x), COLUMNS + 1)), np.eye(ACTIONS)[actions]
    features[:, 1:] = x
    centred = weights * (losses[:, None] - 0.5)
    began = time.process_time()
    gram = np.zeros((ACTIONS, COLUMNS + 1, COLUMNS + 1))
    response = np.zeros((ACTIONS, COLUMNS + 1))
    for start in range(0, len(x), 4096):
        z, w = features[start : start + 4096], weights[start : start + 4096]
        gram += (w.T[:, None, :] * z.T) @ z
        response += centred[start : start + 4096].T @ z
    used = time.process_time() - began
    print(f"plain sums in memory: {len(x) / used:,.0f} rows per second of processor")


def timed(name: str, rows: int, call: Callable[[Path, int], list[str]], folder: Path) -> list[str]:
    began, before = time.perf_counter(), sum(os.times()[:4])
    made = call(folder, rows)
    seconds, used = time.perf_counter() - began, sum(os.times()[:4]) - before
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(
        f"{name}: {rows:,} rows in {seconds:.1f} s, {used:.1f} s of processor, "
        f"{rows / used:,.0f} rows per second of processor (load {load})",
        flush=True,
    )
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--folder", type=Path, help="keep the log here, or use the one that is")
    parser.add_argument("--quick", action="store_true", help="300,000 rows")
    given = parser.parse_args()
    rows = 300_000 if given.quick else given.rows
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made)
        folder.mkdir(exist_ok=True)
        if not any(folder.iterdir()):
            write(folder, rows)
        plain(rows)
        one = timed("one process", rows, imported, folder)
        two = timed("two workers", rows, on_a_cluster, folder)
    print(f"{len(one)} documents, {'the same' if one == two else 'NOT the same'}")
    return int(one != two)


if __name__ == "__main__":
    raise SystemExit(main())
