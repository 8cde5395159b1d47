"""A campaign: a grid, data sets and a machine, and every missing run computed into one folder.

The settings come from a TOML file or from flags: the keys of a file are the flags of ``discreet
campaign run``, and ``plans``.

Tasks are independent. Finished tasks stay if others fail, and runs that a folder already has
are never computed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet.data import NAMES, Dataset, Handle, resolve
from discreet.data.dataset import with_schema
from discreet.errors import DiscreetError, InvalidInput
from discreet.features.schema import Schema
from discreet.lab.campaign import hardware, result_files
from discreet.lab.campaign.grid import Grid, configurations
from discreet.lab.campaign.result_files import FORMAT, NOTHING, Folder
from discreet.lab.campaign.tasks import NOT_PRIVATE, Task, TaskOutcome, reason
from discreet.lab.campaign.workers import answer, outcomes, workers
from discreet.plan.config import to_config
from discreet.privacy.budget import user_participation
from discreet.privacy.events import NonPrivate, event_json
from discreet.releases.canonical import digest_of
from discreet.simulate.engine import Machine
from discreet.text import read_toml
from discreet.types import JsonMapping, JsonObject
from discreet.validate import nearest, positive, whole

PARTICIPATION = ("batches_per_user", "records_per_batch")


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """A grid, its data and its machine.

    ``memory`` is in GiB for all jobs together; without ``jobs`` there is one for each core.
    """

    grid: Grid
    data: Sequence[str]
    out: Path
    device: str = "auto"
    jobs: int | None = None
    scheduler: str | None = None
    max_columns: int | None = None
    memory: float | None = None
    schema: Schema | None = None
    """Meaning of the columns of files; None takes numbers as they are."""
    target: str | None = None
    """Column of the class in files; None is the last."""
    user: str | None = None
    """Column of user ids in files, where ε is for a user."""

    def __post_init__(self) -> None:
        if self.schema is not None and self.grid.features != "raw":
            raise InvalidInput(
                f"features must be raw with a schema, which has ranges; got "
                f"{self.grid.features!r}. Leave it out."
            )
        if (self.user is None) != (self.grid.participation is None):
            raise InvalidInput(
                "user must name a column of ids just where the grid has a participation; got "
                f"{self.user!r} with {self.grid.participation}. Give both, or neither."
            )
        if self.user is not None:
            configurations(self.grid, 2, 1)  # refuses now what has no bound for a user
        for name in ("jobs", "max_columns"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1)
        if self.memory is not None:
            positive("memory", self.memory)

    @property
    def reading(self) -> dict[str, str]:
        """Options of reading files that are not the defaults; digests of data depend on them."""
        schema = {} if self.schema is None else {"schema": digest_of(to_config(self.schema))}
        named = {"target": self.target, "user": self.user}
        return schema | {name: column for name, column in named.items() if column is not None}

    @classmethod
    def from_document(cls, document: JsonMapping) -> Campaign:
        """Return the campaign of a file, of flags, or of both merged.

        Without a preset the grid is the paper's; with ``plans`` it is the default plan and these.
        """
        for name, example in (("data", "fried"), ("out", "results")):
            if not document.get(name):
                raise InvalidInput(
                    f"{name} must be given; {name} is missing. Add --{name} {example}."
                )
        given = {key: _checked(key, value) for key, value in document.items() if value is not None}
        of_grid = {key: given.pop(key) for key in GRID_KEYS if key in given}
        of_grid["epsilons"] = of_grid.pop("epsilon", None)
        plans = given.pop("plans", ())
        counts = (given.pop(key, None) for key in PARTICIPATION)
        participation = user_participation(given.get("user"), *counts)
        preset = of_grid.pop("preset", "default" if plans else "paper")
        grid = Grid.of(preset, plans=plans, participation=participation, **of_grid)
        if "schema" in given:
            given["schema"] = Schema.from_toml(given["schema"])
        return cls(grid=grid, **{**given, "out": Path(given["out"])})


GRID_TEXTS = ("preset", "mechanism", "features", "algorithms", "oracles")
GRID_KEYS = (*GRID_TEXTS, "epsilon", "ridges", "seeds")
"""Keys of a campaign file for the fields of its grid."""
TEXTS = (*GRID_TEXTS, "data", "out", "device", "scheduler", "schema", "target", "user")
LISTS = ("data", "algorithms", "oracles", "epsilon", "ridges", "plans")
KEYS = (*TEXTS, *LISTS, *PARTICIPATION, "jobs", "max_columns", "memory", "seeds")


def read_campaign(path: str) -> JsonObject:
    """Return the document of a TOML file; relative paths start at its folder."""
    document = read_toml(path, "campaign")
    folder = Path(path).parent
    for name in ("out", "schema"):
        if isinstance(document.get(name), str):
            document[name] = str(folder / document[name])
    data = document.get("data", [])
    data = data if isinstance(data, list) else [data]
    document["data"] = [_relative(each, folder) for each in data]
    return document


def _relative(name: Any, folder: Path) -> Any:
    """Return the path of a file, a folder or DIR:NAME next to the campaign file, or the name."""
    place, colon, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    if place and place not in NAMES and (folder / place).exists():
        return f"{folder / place}{colon}{rest}"
    return name


def _checked(key: str, value: Any) -> Any:
    """Return the value of a key of a document, as a list where there may be several."""
    if key not in KEYS:
        raise InvalidInput(f"campaign must have only known keys; got {key!r}. {nearest(key, KEYS)}")
    many = key in LISTS
    values = value if many and isinstance(value, list) else [value]
    if key in TEXTS and not all(isinstance(each, str) for each in values):
        raise InvalidInput(f"{key} must be text; got {value!r}. Write it in quotes.")
    return values if many else value


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
