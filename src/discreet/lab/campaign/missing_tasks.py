"""What a campaign has to do: facts about its data sets, and the tasks with missing runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import DiscreetError
from discreet.lab.campaign.grid import Grid
from discreet.lab.campaign.result_files import from_bytes, present
from discreet.lab.campaign.results_folder import Folder, file_name
from discreet.lab.campaign.tasks import Part, missing, reason, runs


@dataclass(frozen=True)
class Facts:
    """What a manifest says of a data set."""

    digest: str
    rows: int
    features: int
    actions: int
    best_fixed: float


@dataclass
class Survey:
    """Every data set was read once: those to play, those that failed, those too wide."""

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
        """The task's name for people."""
        return f"{self.dataset} {self.family}"

    @property
    def rounds(self) -> int:
        return runs(self.parts) * self.rows


def survey(handles: Sequence[Any], max_columns: int | None) -> Survey:
    """Read every data set and keep only facts: together they need not fit into memory."""
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
        raise refused  # there is nothing to go on with
    return made


def pending(found: dict[str, Facts], folder: Folder, grid: Grid) -> Iterator[Pending]:
    """Tasks with runs to play, large sets first: a large set at the end would run alone."""
    for dataset, facts in sorted(found.items(), key=lambda each: -each[1].rows * each[1].features):
        for family in grid.families:
            name = task_name(dataset, family)
            content = folder.content(name)
            parts = missing(present(None if content is None else from_bytes(content), grid, family))
            if parts:
                yield Pending(name, dataset, family, parts, facts.rows)


def task_name(dataset: str, family: str) -> str:
    """The name of a task's files; ``family`` "data" stands for reading the set itself."""
    return f"{file_name(dataset)}.{family}"
