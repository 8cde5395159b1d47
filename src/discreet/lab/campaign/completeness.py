"""Which of its runs a campaign's folder holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from discreet.lab.campaign.grid import Grid, keys
from discreet.lab.campaign.missing_tasks import task_name
from discreet.lab.campaign.results_folder import Folder


@dataclass
class SetStatus:
    """One data set: runs that are there and runs that the manifest's grid asks for."""

    runs: int = 0
    expected: int = 0
    seconds: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)


@dataclass
class Status:
    """The whole folder; ``unreadable`` are sets that never got as far as a task."""

    grid: Grid
    device: str
    running: bool
    datasets: dict[str, SetStatus]
    unreadable: dict[str, str]
    not_private: str


def status(out: Path) -> Status:
    """Every file is checked against its checksum; nothing is written."""
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
