"""Results of a campaign: its folder, one row per run as Parquet, missing runs, status.

The folder has a manifest, a file and its sidecar for each task, and a lock. Every file appears
whole or not at all. A result file counts when its checksum is the one that its sidecar states; all
other files there are ignored.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.errors import CorruptRelease, InvalidInput
from discreet.lab.campaign.grid import Grid, keys
from discreet.lab.campaign.tasks import Part, Task
from discreet.releases.canonical import read_document, write_atomically
from discreet.types import JsonMapping, JsonObject, NumpyArray

FORMAT = "discreet-campaign/1"
GO_ON = "Run the same command again to go on."


@dataclass(frozen=True)
class Sidecar:
    """Facts about a task, without its results."""

    sha256: str | None
    seconds: float
    rows: int
    seeds: list[int]
    device: str
    error: str | None


NOTHING = Sidecar(None, 0.0, 0, [], "", None)


@dataclass(frozen=True)
class Folder:
    """Folder of a campaign, for reading and writing."""

    root: Path

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    def manifest(self) -> JsonObject:
        """Return the manifest; refuse a folder without one."""
        path = self.root / "manifest.json"
        if not path.is_file():
            raise InvalidInput(
                f"folder must be one that campaign run wrote; {self.root} has no manifest.json. "
                "Check the path."
            )
        try:
            manifest = read_document(path)
        except CorruptRelease:
            manifest = {}
        if manifest.get("format") != FORMAT:
            raise InvalidInput(
                f"manifest.json must have the format {FORMAT!r}; got {manifest.get('format')!r}. "
                "Read it with the version of discreet that wrote it, or choose another folder."
            )
        return manifest

    def known(self) -> JsonObject | None:
        """Return the manifest of a folder to write to; None for a new folder."""
        if not self.root.exists():
            return None
        if not self.root.is_dir():
            raise InvalidInput(f"--out must be a folder; {self.root} is a file. Choose another.")
        others = {path.name for path in self.root.iterdir()} - {"runs", ".lock"}
        if others and "manifest.json" not in others:
            raise InvalidInput(
                f"--out must be new, empty or the folder of a campaign; {self.root} has other "
                "files. Choose another place."
            )
        return self.manifest() if others else None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one writer; the system releases the lock when a process dies."""
        import fcntl

        try:
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"--out must be a folder to write to; {self.root} is not ({error.strerror}). "
                "Choose another place."
            ) from None
        with (self.root / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InvalidInput(
                    f"--out must be free; another campaign writes to {self.root} now. "
                    "Wait until it ends, or choose another folder."
                ) from None
            for leftover in self.runs.glob(".*"):  # of a write that was killed
                leftover.unlink()
            yield

    def busy(self) -> bool:
        """Return True if a campaign writes to the folder now."""
        import fcntl

        try:
            with (self.root / ".lock").open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def tasks(self) -> list[str]:
        """Return the tasks that have a sidecar, ordered by name."""
        return sorted(path.name.removesuffix(".json") for path in self.runs.glob("[!.]*.json"))

    def sidecar(self, task: str) -> Sidecar:
        """Return facts about a task; ``NOTHING`` if its sidecar is missing or unreadable."""
        try:
            return Sidecar(**json.loads((self.runs / f"{task}.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return NOTHING

    def has_file(self, task: str) -> bool:
        """Return True if there is a result file, valid or not."""
        return (self.runs / f"{task}.parquet").is_file()

    def content(self, task: str) -> bytes | None:
        """Return the result file of a task, if it has the checksum of its sidecar."""
        try:
            content = (self.runs / f"{task}.parquet").read_bytes()
        except OSError:
            return None
        expected = self.sidecar(task).sha256
        return content if hashlib.sha256(content).hexdigest() == expected else None

    def write_manifest(self, manifest: JsonMapping) -> None:
        _write(self.root / "manifest.json", _text(manifest))

    def write_results(self, task: str, content: bytes, sidecar: Sidecar) -> None:
        """Write results, then the sidecar: after a crash in between the checksum is wrong."""
        _write(self.runs / f"{task}.parquet", content)
        checksum = hashlib.sha256(content).hexdigest()
        self.write_sidecar(task, replace(sidecar, sha256=checksum))

    def write_sidecar(self, task: str, sidecar: Sidecar) -> None:
        _write(self.runs / f"{task}.json", _text(asdict(sidecar)))

    def forget(self, task: str) -> None:
        """Delete the sidecar of a task that failed before and no longer exists."""
        (self.runs / f"{task}.json").unlink(missing_ok=True)


def file_name(dataset: str) -> str:
    """Return a data set's name as part of a file name, different for different names."""
    plain = re.sub(r"[^\w.-]", "_", dataset, flags=re.ASCII).lstrip(".")
    if plain == dataset:
        return dataset
    return f"{plain}-{hashlib.sha256(dataset.encode()).hexdigest()[:8]}"


def _text(document: JsonMapping) -> bytes:
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content, mode=0o644)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InvalidInput(
            f"disk must have room for the results; none is left for {path.name}. "
            f"Free some space. {GO_ON}"
        ) from None


SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("algorithm", pa.string()),
        ("oracle", pa.string()),
        ("mechanism", pa.string()),
        ("epsilon", pa.float64()),
        ("delta", pa.float64()),
        ("seed", pa.int32()),
        ("settings", pa.string()),
        ("rounds", pa.int32()),
        ("first_batch", pa.int32()),
        ("growth", pa.float64()),
        ("loss", pa.float32()),
        ("curve", pa.list_(pa.float32())),
    ]
)
"""``loss`` is the last value of ``curve``: progressive-validation loss at every batch end, which
``rounds``, ``first_batch`` and ``growth`` give."""
STRINGS = [each.name for each in SCHEMA if each.type == pa.string()]
KEY = ("algorithm", "epsilon", "delta", "settings")
ORDER = [(name, "ascending") for name in ("algorithm", "epsilon", "settings", "seed")]


def read(
    results_dir: str | Path, columns: Sequence[str] | None = None, dataset: str | None = None
) -> pa.Table:
    """Return all runs of a campaign: the rows of every task file with a valid checksum.

    Strings are dictionary-encoded, one dictionary per column. ``columns`` without ``curve``
    leaves most bytes unread. With ``dataset``, files of some other sets are left out.
    """
    folder = Folder(Path(results_dir))
    folder.manifest()  # raises InvalidInput if this is no campaign
    names = list(SCHEMA.names if columns is None else columns)
    start = "" if dataset is None else f"{file_name(dataset)}."
    tasks = (task for task in folder.tasks() if task.startswith(start))
    contents = map(folder.content, tasks)
    tables = [from_bytes(content, names) for content in contents if content is not None]
    if not tables:
        return pa.table({name: pa.array([], SCHEMA.field(name).type) for name in names})
    return pa.concat_tables(tables).unify_dictionaries()


def from_bytes(content: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table of one file, with strings dictionary-encoded."""
    wanted = None if columns is None else list(columns)
    return pq.read_table(pa.BufferReader(content), columns=wanted, read_dictionary=STRINGS)


def to_bytes(tables: Iterable[pa.Table]) -> bytes:
    """Return one file of all rows in a fixed order, independent of the order of computation."""
    rows = pa.concat_tables([table.cast(SCHEMA) for table in tables]).sort_by(ORDER)
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, compression="zstd")
    return buffer.getvalue()


def tabulate(task: Task, losses: Sequence[NumpyArray]) -> pa.Table:
    """Return rows of new runs: for each part of a task, losses (plans, seeds, batches)."""
    named = keys(task.grid, task.family)
    batches = task.grid.plans(task.family, 2, 1)[0][1].schedule  # of all plans of the family
    oracle = task.family.partition(".")[0]
    constant: JsonObject = {
        "dataset": task.dataset,
        "oracle": oracle,
        "mechanism": "structured" if oracle == "PooledRidge" else task.grid.mechanism,
        "rounds": task.rows,
        "first_batch": batches.first,
        "growth": batches.growth,
    }
    tables = []
    for (indices, seeds), curves in zip(task.parts, losses, strict=True):
        width = curves.shape[-1]
        flat = np.ascontiguousarray(curves, dtype=np.float32).reshape(-1, width)
        settings = zip(*(named[i] for i in indices), strict=True)
        columns = {
            **{name: np.repeat(part, len(seeds)) for name, part in zip(KEY, settings, strict=True)},
            **{name: np.repeat(value, len(flat)) for name, value in constant.items()},
            "seed": np.tile(seeds, len(indices)),
            "loss": flat[:, -1],
            "curve": pa.ListArray.from_arrays(
                np.arange(0, flat.size + 1, width, dtype=np.int32), flat.reshape(-1)
            ),
        }
        tables.append(pa.table([pa.array(columns[n]) for n in SCHEMA.names], SCHEMA.names))
    return pa.concat_tables([table.cast(SCHEMA) for table in tables])


def missing(content: bytes | None, grid: Grid, family: str) -> tuple[Part, ...]:
    """Return the runs that a file lacks: plans grouped by their missing seeds.

    The engine is fast with many plans at once.
    """
    held: dict[Any, list[int]] = {}
    if content is not None:
        table = from_bytes(content, [*KEY, "seed"])
        plain = table.cast(pa.schema([SCHEMA.field(name) for name in table.column_names]))
        seeds_of = plain.group_by(list(KEY)).aggregate([("seed", "list")])
        columns = [seeds_of[name].to_pylist() for name in (*KEY, "seed_list")]
        held = {tuple(key): seeds for *key, seeds in zip(*columns, strict=True)}
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, key in enumerate(keys(grid, family)):
        lacking = {*range(grid.seeds)}.difference(held.get(key, ()))
        if lacking:
            groups[tuple(sorted(lacking))].append(index)
    return tuple((tuple(indices), seeds) for seeds, indices in groups.items())


def task_name(dataset: str, family: str) -> str:
    """Return the name of a task's files; ``family`` "data" stands for reading the set itself."""
    return f"{file_name(dataset)}.{family}"


def status(out: Path) -> JsonObject:
    """Return the status of a folder; every checksum is verified, and nothing is written."""
    folder = Folder(out)
    manifest = folder.manifest()
    try:
        grid = Grid.from_document(manifest["grid"])
    except InvalidInput as error:
        own = "Classes of your own need --import MODULE, the module that registers them."
        raise InvalidInput(f"{error} {own}") from None
    datasets: JsonObject = {
        name: {"runs": 0, "expected": 0, "seconds": 0.0, "failed": {}, "damaged": []}
        for name in manifest["datasets"]
    }
    for name, family in product(datasets, grid.families):
        found, task = datasets[name], task_name(name, family)
        about = folder.sidecar(task)
        found["expected"] += len(keys(grid, family)) * grid.seeds
        if about.error is not None:
            found["failed"][family] = about.error
        if folder.content(task) is not None:
            found["runs"] += about.rows
            found["seconds"] += about.seconds
        elif folder.has_file(task):
            found["damaged"].append(family)
    unreadable = {
        task.removesuffix(".data"): folder.sidecar(task).error or ""
        for task in folder.tasks()
        if task.endswith(".data")
    }
    return {
        "running": folder.busy(),
        "runs": sum(each["runs"] for each in datasets.values()),
        "expected": sum(each["expected"] for each in datasets.values()),
        "device": manifest["device"],
        "grid": grid.to_document(),
        "not_private": str(manifest.get("event", {}).get("reason", "")),
        "datasets": datasets,
        "unreadable": unreadable,
    }
