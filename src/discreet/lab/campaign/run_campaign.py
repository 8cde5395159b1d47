"""Run a campaign: compute every missing run of a grid, into one folder.

Tasks are independent. Finished tasks are kept if others fail, and runs that a folder already has
are never computed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

import discreet
from discreet.data import Dataset, Handle, resolve
from discreet.data.dataset import with_schema
from discreet.errors import DiscreetError, InvalidInput
from discreet.lab.campaign import hardware, result_files
from discreet.lab.campaign.campaign_settings import Campaign
from discreet.lab.campaign.grid import Grid
from discreet.lab.campaign.results_folder import FORMAT, NOTHING, Folder
from discreet.lab.campaign.tasks import NOT_PRIVATE, Task, TaskOutcome, reason
from discreet.lab.campaign.workers import answer, outcomes, workers
from discreet.privacy.events import NonPrivate, event_json
from discreet.simulate.engine import Machine
from discreet.types import JsonMapping, JsonObject

KEPT = ("mechanism", "features", "participation")
"""Fields of a grid that are the same for all runs of a folder."""


@dataclass
class Progress:
    """Progress of a campaign, reported after every task."""

    tasks: int = 0
    rounds: int = 0
    tasks_done: int = 0
    rounds_done: int = 0
    runs_done: int = 0
    seconds: float = 0.0
    latest: str = ""
    failed: dict[str, str] = field(default_factory=dict)
    too_wide: list[str] = field(default_factory=list)

    def count(self, task: Task, outcome: TaskOutcome) -> None:
        """Count a task that has ended."""
        self.latest = task.words
        self.tasks_done += 1
        if outcome.error is None:
            self.rounds_done += task.rounds
            self.runs_done += task.runs
        else:  # its rounds will not be played
            self.rounds -= task.rounds
            self.failed[task.words] = outcome.error


Show = Callable[[Progress], None]


def run(campaign: Campaign, show: Show = lambda _: None) -> Progress:
    """Compute the missing runs; a failure is recorded and reported, and the others go on."""
    # Check all settings before anything is read, written or started.
    jobs = _jobs(campaign)
    folder, handles = Folder(campaign.out), resolve(list(campaign.data))
    if campaign.reading:
        handles = [
            replace(handle, kind="file", reader=partial(_read_as, handle, campaign))
            for handle in handles
        ]
    _manifest(campaign, folder.known())
    progress = Progress()
    found = _survey(handles, campaign.max_columns, progress)
    with folder.locked():
        manifest = _manifest(campaign, folder.known(), found)
        folder.write_manifest(manifest)
        for name in found:
            folder.forget(result_files.task_name(name, "data"))
        for name, why in progress.failed.items():
            folder.write_sidecar(result_files.task_name(name, "data"), replace(NOTHING, error=why))
        tasks = list(_pending(found, folder, campaign.grid))
        progress.tasks, progress.rounds = len(tasks), sum(task.rounds for task in tasks)
        show(progress)
        if tasks:
            jobs = min(jobs, len(tasks))
            with (
                hardware.shared_gpu(
                    "" if campaign.scheduler else hardware.choose(campaign.device), jobs
                ),
                workers(jobs, campaign.scheduler) as crew,
            ):
                where = answer(
                    crew, hardware.machine, campaign.device, crew.sharing, campaign.memory
                )
                if where.device == "cuda" and jobs > 1:  # alone, it compiles what it calls
                    shapes = ((each["features"] + 1, each["actions"]) for each in found.values())
                    for kernel in hardware.kernels(shapes):
                        crew.submit(hardware.compile_kernel, kernel)
                start, awaited = time.perf_counter(), {task.name: task for task in tasks}
                by_name = {handle.name: handle for handle in handles}
                for outcome in outcomes(_loaded(tasks, by_name, where), crew):
                    task = awaited.pop(outcome.name)
                    _keep(task, outcome, folder, manifest)
                    progress.count(task, outcome)
                    progress.seconds = time.perf_counter() - start
                    show(progress)
    return progress


def _survey(
    handles: Sequence[Handle], max_columns: int | None, progress: Progress
) -> dict[str, JsonObject]:
    """Read every data set and return facts, since all of them may not fit into memory.

    Sets that failed and those that are too wide are reported as progress.
    """
    found: dict[str, JsonObject] = {}
    refused: DiscreetError | None = None
    for handle in handles:
        try:
            data = handle.load()
            facts = {
                "digest": data.digest,
                "rows": data.rows,
                "features": data.dimension,
                "actions": data.n_actions,
                "best_fixed": data.best_fixed,
            }
        except Exception as error:
            if isinstance(error, DiscreetError):
                refused = refused or error
            progress.failed[handle.name] = reason(error)
            continue
        if max_columns is not None and data.dimension > max_columns:
            progress.too_wide.append(handle.name)
        else:
            found[handle.name] = facts
    if refused and not found and not progress.too_wide:
        raise refused  # no data set is left
    return found


def _pending(found: Mapping[str, JsonObject], folder: Folder, grid: Grid) -> Iterator[Task]:
    """Yield tasks with runs to play, large sets first: a large set at the end would run alone."""
    largest_first = sorted(
        found.items(), key=lambda each: each[1]["rows"] * each[1]["features"], reverse=True
    )
    for dataset, facts in largest_first:
        for family in grid.families:
            name = result_files.task_name(dataset, family)
            parts = result_files.missing(folder.content(name), grid, family)
            if parts:
                yield Task(name, dataset, family, grid, parts, facts["rows"])


def _read_as(handle: Handle, campaign: Campaign, *_: Any) -> Dataset:
    """Return a data set with the columns that the campaign names."""
    data = handle.load(campaign.target, encoded=campaign.schema is None, user=campaign.user)
    return data if campaign.schema is None else with_schema(campaign.schema, data)


def _jobs(campaign: Campaign) -> int:
    if campaign.scheduler is not None:  # its workers choose
        return 1
    device = hardware.choose(campaign.device)
    if campaign.jobs is not None:
        return campaign.jobs
    return min(hardware.PROCESSES, hardware.cores()) if device == "cuda" else hardware.cores()


def _manifest(
    campaign: Campaign,
    known: JsonMapping | None,
    found: Mapping[str, JsonObject] | None = None,
) -> JsonObject:
    """Return the new manifest of the folder; refuse a campaign that does not fit into it."""
    grid, reading, version = campaign.grid, campaign.reading, discreet.__version__
    if known is None:
        known = {"grid": grid.to_document(), "code_version": version, "device": "", "datasets": {}}
        known |= {"reading": reading} if reading else {}
    before, datasets = Grid.from_document(known["grid"]), dict(known["datasets"])
    same = [
        *((name, getattr(before, name), getattr(grid, name)) for name in KEPT),
        ("schema, target and user", known.get("reading", {}), reading),
        ("version of discreet", known["code_version"], version),
    ]
    for name, facts in (found or {}).items():
        was = datasets.setdefault(name, facts)["digest"]
        same.append((f"digest of data {name!r}", was, facts["digest"]))
    for what, was, given in same:
        if was != given:
            raise InvalidInput(
                f"{what} must be {was!r} in this folder, as before; got {given!r}. "
                "Choose another --out."
            )
    both = before.union(grid)
    return {
        "format": FORMAT,
        "grid": both.to_document(),
        "grid_digest": both.digest,
        "code_version": version,
        "device": known["device"],
        "datasets": datasets,
        **({"reading": reading} if reading else {}),
        **({} if both.features == "raw" else {"event": event_json(NonPrivate(NOT_PRIVATE))}),
    }


def _loaded(tasks: Sequence[Task], handles: Mapping[str, Handle], where: Machine) -> Iterator[Task]:
    """Yield tasks with their data; one data set is in memory at a time."""
    for dataset, some in groupby(tasks, key=lambda task: task.dataset):
        data, error = None, None
        try:
            data = replace(handles[dataset].load(), source=None)
        except Exception as wrong:
            error = reason(wrong)
        for task in some:
            yield replace(task, machine=where, data=data, error=error)


def _keep(task: Task, outcome: TaskOutcome, folder: Folder, manifest: JsonObject) -> None:
    """Add new results to those of the folder; a failure leaves these unchanged."""
    known = folder.content(task.name)
    before = folder.sidecar(task.name) if known is not None else NOTHING
    if outcome.error is not None:
        folder.write_sidecar(task.name, replace(before, error=outcome.error))
        return
    new = result_files.tabulate(task, outcome.losses)
    content = result_files.to_bytes(
        [new] if known is None else [result_files.from_bytes(known), new]
    )
    seeds = result_files.from_bytes(content, ["seed"]).column("seed").to_numpy()
    sidecar = replace(
        before,
        seconds=before.seconds + outcome.seconds,
        rows=len(seeds),
        seeds=np.unique(seeds).tolist(),
        device=_also(before.device, outcome.device),
        error=None,
    )
    folder.write_results(task.name, content, sidecar)
    device = _also(manifest["device"], outcome.device)
    if device != manifest["device"]:
        manifest["device"] = device
        folder.write_manifest(manifest)


def _also(before: str, device: str) -> str:
    """Return classes of hardware, each named once."""
    return "; ".join(sorted({*filter(None, before.split("; ")), device}))
