"""Missing runs of a campaign: facts about its data sets, tasks to play, status of the folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError
from discreet.lab.campaign.grid import Grid, keys
from discreet.lab.campaign.result_files import from_bytes, present
from discreet.lab.campaign.results_folder import Folder, file_name
from discreet.lab.campaign.tasks import Part, missing, reason, runs


@dataclass(frozen=True)
class Facts:
    """Facts about a data set, as in a manifest."""

    digest: str
    rows: int
    features: int
    actions: int
    best_fixed: float


@dataclass
class Survey:
    """Data sets after reading each once: those to play, those that failed, those too wide."""

    found: dict[str, Facts] = field(default_factory=dict)
    handles: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    too_wide: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Pending:
    """A task whose data are not loaded yet."""

    name: str
    dataset: str
    family: str
    parts: tuple[Part, ...]
    rows: int

    @property
    def words(self) -> str:
        """Name of the task for people."""
        return f"{self.dataset} {self.family}"

    @property
    def rounds(self) -> int:
        return runs(self.parts) * self.rows


def survey(handles: Sequence[Any], max_columns: int | None) -> Survey:
    """Read every data set and keep only facts, since all of them may not fit into memory."""
    made = Survey()
    refused: DiscreetError | None = None
    for handle in handles:
        try:
            data = handle.load()
            shape = (data.rows, data.dimension, data.n_actions)
            facts = Facts(data.digest, *shape, data.best_fixed)
        except Exception as error:
            if isinstance(error, DiscreetError):
                refused = refused or error
            made.failed[handle.name] = reason(error)
            continue
        if max_columns is not None and facts.features > max_columns:
            made.too_wide.append(handle.name)
            continue
        made.found[handle.name], made.handles[handle.name] = facts, handle
    if refused and not made.found and not made.too_wide:
        raise refused  # no data set is left
    return made


def pending(found: dict[str, Facts], folder: Folder, grid: Grid) -> Iterator[Pending]:
    """Yield tasks with runs to play, large sets first: a large set at the end would run alone."""
    for dataset, facts in sorted(found.items(), key=lambda each: -each[1].rows * each[1].features):
        for family in grid.families:
            name = task_name(dataset, family)
            content = folder.content(name)
            parts = missing(present(None if content is None else from_bytes(content), grid, family))
            if parts:
                yield Pending(name, dataset, family, parts, facts.rows)


def task_name(dataset: str, family: str) -> str:
    """Return the name of a task's files; ``family`` "data" stands for reading the set itself."""
    return f"{file_name(dataset)}.{family}"


@dataclass
class SetStatus:
    """One data set: present runs and the runs of the manifest's grid."""

    runs: int = 0
    expected: int = 0
    seconds: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)


@dataclass
class Status:
    """Status of a folder; ``unreadable`` are sets that could not be read."""

    grid: Grid
    device: str
    running: bool
    datasets: dict[str, SetStatus]
    unreadable: dict[str, str]
    not_private: str


def status(out: Path) -> Status:
    """Return the status of a folder; every checksum is verified, and nothing is written."""
    folder = Folder(out)
    manifest = folder.manifest()
    grid = Grid.from_document(manifest["grid"])
    datasets = {name: _of(name, folder, grid) for name in manifest["datasets"]}
    unreadable = {
        task.removesuffix(".data"): folder.sidecar(task).error or ""
        for task in folder.tasks()
        if task.endswith(".data")
    }
    not_private = str(manifest.get("event", {}).get("reason", ""))
    return Status(grid, manifest["device"], folder.busy(), datasets, unreadable, not_private)


def _of(dataset: str, folder: Folder, grid: Grid) -> SetStatus:
    found = SetStatus()
    for family in grid.families:
        task = task_name(dataset, family)
        about, there = folder.sidecar(task), folder.has_file(task)
        found.expected += len(keys(grid, family)) * grid.seeds
        if about.error is not None:
            found.failed[family] = about.error
        if there and folder.content(task) is not None:
            found.runs += about.rows
            found.seconds += about.seconds
        elif there:
            found.damaged.append(family)
    return found
