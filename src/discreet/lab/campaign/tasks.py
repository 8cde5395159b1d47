"""One task of a campaign: the missing runs of a data set in one family.

Only a task and its outcome are sent, so a worker needs this package and nothing else. Columns may
be scaled by the data's own ranges, which stand for the public ranges that a deployer declares;
such results are not private. [docs/data.md]
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from discreet.features.schema import FEW_NUMBERS
from discreet.features.unit_ball import UnitBall
from discreet.lab.campaign.grid import Grid
from discreet.lab.campaign.hardware import LEAST, described, one_thread
from discreet.lab.rivals import runner
from discreet.lab.rivals.rival_contract import RivalPlan
from discreet.plan.plan import Plan
from discreet.plan.registry import register
from discreet.simulate import engine
from discreet.simulate.engine import Machine
from discreet.simulate.labelled_data import played_offers
from discreet.types import NumpyArray

NOT_PRIVATE = "columns were scaled with the data's own ranges, which is not private"


def scaled(contexts: NumpyArray, features: str) -> NumpyArray:
    """Return contexts (n, d) with scaled columns, before ``UnitBall`` maps them.

    ``raw`` leaves them alone. ``ranges`` maps each column to [−1, 1] by its own range, adds squares
    of few columns and divides, as ``Schema`` does with declared ranges; ``wide`` takes ranges three
    times as wide, which reach further above the data than below. Two are for comparison: ``linear``
    is ``ranges`` without squares, ``standard`` takes means and deviations.

    >>> scaled(np.array([[0.0], [1.0], [4.0]]), "linear").ravel()
    array([-1. , -0.5,  1. ])
    """
    if features == "raw":
        return contexts
    low, high = contexts.min(axis=0), contexts.max(axis=0)
    width = high - low
    if features == "wide":
        low, high = low - 0.5 * width, high + 1.5 * width
    middle, half = (low + high) / 2, (high - low) / 2
    if features == "standard":
        middle, half = contexts.mean(axis=0), contexts.std(axis=0)
    half = np.where(width > 0.0, half, np.inf)  # a constant column says nothing
    columns = (contexts - middle) / half
    if features in ("ranges", "wide") and columns.shape[1] <= FEW_NUMBERS:
        squares = np.where(width > 0.0, 1.5 * columns**2 - 0.5, 0.0)
        columns = np.stack([columns, squares], axis=-1).reshape(len(columns), -1)
    return np.asarray(columns / columns.shape[1] ** 0.5)


Part = tuple[tuple[int, ...], tuple[int, ...]]
"""Indices of plans, and the seeds that all of them lack."""

FOLDER = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?[/\\](?:[^\s/\\'\"]+[/\\])*")
QUOTED_FOLDER = re.compile(r"(['\"])(?:[A-Za-z]:)?[/\\](?:[^/\\'\"]+[/\\])*")
"""In quotes the names of folders may have spaces."""


@dataclass(frozen=True)
class Task:
    """Parts of a family's grid to play on one data set; its data are loaded just before."""

    name: str
    dataset: str
    family: str
    grid: Grid
    parts: tuple[Part, ...]
    rows: int
    machine: Machine = Machine()  # noqa: RUF009
    data: Any = field(default=None, repr=False)
    error: str | None = None
    """Reason why the data could not be read."""

    @property
    def words(self) -> str:
        """Name of the task for people."""
        return f"{self.dataset} {self.family}"

    @property
    def runs(self) -> int:
        return sum(len(indices) * len(seeds) for indices, seeds in self.parts)

    @property
    def rounds(self) -> int:
        return self.runs * self.rows


@dataclass(frozen=True)
class TaskOutcome:
    """Result of a task: losses (plans, seeds, batches) of every part, or the error."""

    name: str
    losses: tuple[NumpyArray, ...] = field(default=(), repr=False)
    seconds: float = 0.0
    device: str = ""
    error: str | None = None


def compute(task: Task) -> TaskOutcome:
    """Play a task; an exception becomes an error text, so that other tasks continue."""
    start = time.perf_counter()
    if task.error is not None:
        return TaskOutcome(task.name, error=task.error)
    try:
        for kind in task.grid.own:  # this process may have been started without them
            register(kind)
        with one_thread(task.machine.device):
            losses = _play(task)
        device = described(task.machine.device)
    except Exception as error:
        return TaskOutcome(task.name, error=reason(error), seconds=time.perf_counter() - start)
    return TaskOutcome(task.name, losses, time.perf_counter() - start, device)


def _play(task: Task) -> tuple[NumpyArray, ...]:
    data, contexts = task.data, scaled(task.data.contexts, task.grid.features)
    dimension = contexts.shape[1]
    features: Any = UnitBall(dimension).map(contexts)
    truth = data.labels
    plans: list[Any] = [p for _, p in task.grid.plans(task.family, data.n_actions, dimension)]
    run: Callable[..., Any] = runner.run if isinstance(plans[0], RivalPlan) else engine.run
    if isinstance(plans[0], Plan) and plans[0].catalogue is not None:  # then all of them
        features, truth = played_offers(plans[0], features, None, truth, None)
    played, machine = [], task.machine
    for indices, seeds in task.parts:
        chosen = [plans[i] for i in indices]
        play = partial(run, chosen, features, truth, seeds, users=data.users)
        losses, machine = _within_memory(play, machine)
        played.append(losses.astype(np.float32))
    return tuple(played)


def _within_memory(play: Callable[..., NumpyArray], machine: Machine) -> tuple[NumpyArray, Machine]:
    """Return losses, and the machine with sufficient memory: halved after each failure."""
    while True:
        try:
            return play(machine=machine), machine
        except Exception as error:
            if not out_of_memory(error) or machine.memory <= LEAST:
                raise
        # Here, not above: the exception holds the frames, and the frames hold the arrays.
        machine = replace(machine, memory=machine.memory // 2)
        torch: Any = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()


def out_of_memory(error: Exception) -> bool:
    """Return True for the out-of-memory errors of NumPy, and of torch on a CPU or a GPU."""
    named = type(error).__name__ == "OutOfMemoryError"
    return isinstance(error, MemoryError) or named or "can't allocate memory" in str(error)


def reason(error: BaseException) -> str:
    """Return type and message in one line, without the folder of any file."""
    message = QUOTED_FOLDER.sub(r"\1", " ".join(str(error).split()))
    return f"{type(error).__name__}: {FOLDER.sub('', message)}".rstrip(": ")
