"""Results of a campaign's folder: manifest, runs as columns of small integers, sidecars."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.lab.campaign.results_folder import Folder, file_name
from discreet.privacy.budget import Participation
from discreet.text import epsilon_text
from discreet.types import JsonObject, NumpyArray
from discreet.validate import installed

if TYPE_CHECKING:
    import pyarrow as pa

SHORT = {
    "ReplayBonusPO": "bpo",
    "VanillaPO": "vpo",
    "SquareCB": "squarecb",
    "FastCB": "fastcb",
    "LinUCB": "linucb",
    "RegCB": "regcb",
    "AdaCB": "adacb",
    "BonusPO": "exact_bpo",
}
"""The paper's BonusPO is the historical replay; the exact one comes after its seven rows."""

REFERENCE = "Supervised"
"""Algorithm that sees the loss of every action, so it does not compete."""


def place(algorithm: str) -> tuple[int, str]:
    """Return the sort key of an algorithm: the paper's order, then others, the reference last."""
    if algorithm == REFERENCE:
        return len(SHORT) + 1, algorithm
    return (list(SHORT).index(algorithm) if algorithm in SHORT else len(SHORT)), algorithm


def short(algorithm: str) -> str:
    """Return ``bpo`` for ReplayBonusPO; an unknown name in lower case."""
    return SHORT.get(algorithm, algorithm.lower())


def bandits(algorithms: Iterable[str]) -> list[str]:
    """Return all algorithms but the reference."""
    return [each for each in algorithms if each != REFERENCE]


def listed(words: Iterable[object]) -> str:
    """Return ``a, b and c``."""
    *most, last = [str(word) for word in words]
    return f"{', '.join(most)} and {last}" if most else last


COLUMNS = (
    "dataset",
    "algorithm",
    "oracle",
    "mechanism",
    "epsilon",
    "delta",
    "seed",
    "settings",
    "rounds",
    "loss",
)
NAMED = ("dataset", "algorithm", "oracle", "epsilon", "delta", "seed", "settings")
CURVE_COLUMNS = (*NAMED, "first_batch", "growth", "curve")
POOLED = "PooledRidge"
"""The oracle of the default plan: it has one mechanism, discreet's own, in every campaign."""
Numbers = NumpyArray


@dataclass(frozen=True)
class Coded:
    """A column: its distinct values in a fixed order, and for each run the index of its own."""

    values: tuple[Any, ...]
    codes: Numbers

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Level:
    """One privacy level of the campaign; ε = ∞ is no privacy."""

    epsilon: float
    delta: float

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)

    @property
    def text(self) -> str:
        return f"ε = {epsilon_text(self.epsilon)}"


@dataclass(frozen=True)
class Runs:
    """One entry per run; orders are fixed, so that nothing depends on the order of rows."""

    dataset: Coded
    algorithm: Coded
    oracle: Coded
    level: Coded
    seed: Coded
    settings: Coded
    rounds: Numbers
    lost: Numbers
    """Rounds that were lost: whole numbers again, where the float32 loss is a rounded n/T."""

    mechanism: str

    def __len__(self) -> int:
        return len(self.lost)

    @classmethod
    def of(cls, table: pa.Table) -> Runs:
        """Return the runs of a table of result files; the order of rows does not matter."""
        if table.num_rows == 0:
            raise InvalidInput(
                "results must hold at least one run; they hold none. "
                "Run the campaign first, or see why its tasks failed with campaign status."
            )
        oracle = _coded(table, "oracle", lambda name: (name != "Ridge", name))
        rounds = _column(table, "rounds").to_numpy(zero_copy_only=False).astype(np.float64)
        loss = _column(table, "loss").to_numpy(zero_copy_only=False)
        return cls(
            dataset=_coded(table, "dataset", str),
            algorithm=_coded(table, "algorithm", place),
            oracle=oracle,
            level=_levels(_coded(table, "epsilon", float), _coded(table, "delta", float)),
            seed=_coded(table, "seed", int),
            settings=_coded(table, "settings", _settings_order),
            rounds=rounds,
            lost=_lost(loss, rounds),
            mechanism=_mechanism(_coded(table, "mechanism", str), oracle),
        )


def _mechanism(mechanism: Coded, oracle: Coded) -> str:
    """Return the mechanism of the campaign; PooledRidge always has its own."""
    pooled = np.asarray([name == POOLED for name in oracle.values])[oracle.codes]
    chosen = mechanism.codes if pooled.all() else mechanism.codes[~pooled]
    found = [mechanism.values[code] for code in np.unique(chosen)]
    if len(found) > 1:
        raise InvalidInput(
            f"results must be of one mechanism; got {', '.join(found)}. "
            "Give each mechanism a folder of its own."
        )
    return str(found[0])


def _lost(loss: Numbers, rounds: Numbers) -> Numbers:
    """Return lost rounds: exact where the loss is one of n/T, so that equal sums are equal."""
    lost = loss.astype(np.float64) * rounds
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = np.rint(lost)
        return np.where((whole / rounds).astype(loss.dtype) == loss, whole, lost)


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    column = table.column(name)
    if column.null_count:
        raise InvalidInput(
            f"{name} must be given for every run; {column.null_count} have none. "
            "Delete the result files and run the campaign again."
        )
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _coded(table: pa.Table, name: str, order: Callable[[Any], Any]) -> Coded:
    array = _column(table, name)
    if not hasattr(array, "dictionary"):
        array = array.dictionary_encode()
    indices = array.indices.to_numpy(zero_copy_only=False)
    words = array.dictionary.to_pylist()
    seen = np.bincount(indices, minlength=len(words)) > 0
    values = sorted({word for word, used in zip(words, seen, strict=True) if used}, key=order)
    ranks = {value: rank for rank, value in enumerate(values)}
    return Coded(tuple(values), np.asarray([ranks.get(word, -1) for word in words])[indices])


def _levels(epsilon: Coded, delta: Coded) -> Coded:
    """Return pairs (ε, δ), from no privacy to the most privacy."""
    pairs = epsilon.codes * len(delta) + delta.codes
    present = np.flatnonzero(np.bincount(pairs, minlength=len(epsilon) * len(delta)))
    levels = [Level(epsilon.values[i // len(delta)], delta.values[i % len(delta)]) for i in present]
    order = sorted(range(len(levels)), key=lambda i: (-levels[i].epsilon, levels[i].delta))
    ranks = np.zeros(len(epsilon) * len(delta), dtype=np.int64)
    ranks[present[order]] = np.arange(len(order))
    return Coded(tuple(levels[i] for i in order), ranks[pairs])


def _settings_order(text: str) -> tuple[Any, ...]:
    """Return a sort key by name, then by size as numbers and not as text: 1e-06 before 0.1."""
    return tuple(
        (name, 0, value) if isinstance(value, (int, float)) else (name, 1, str(value))
        for name, value in sorted(settings_of(text).items())
    )


def settings_of(text: str) -> JsonObject:
    """Return the parameters of a configuration, from their JSON."""
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise InvalidInput(
            f"settings must be a JSON object; got {text!r}. "
            "Delete the result files and run the campaign again."
        )
    return settings


DATA = "data"
"""Family of tasks that read the data set itself."""


@dataclass(frozen=True)
class TaskTime:
    """One task: a data set in one family of configurations."""

    name: str
    dataset: str
    family: str
    seconds: float
    runs: int
    device: str
    error: str | None


class CampaignResults:
    """A campaign's folder, read only."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(Path(root))
        self.manifest: JsonObject = self._folder.manifest()

    @property
    def grid(self) -> JsonObject:
        return dict(self.manifest.get("grid", {}))

    @property
    def algorithms(self) -> list[str]:
        return list(self.grid.get("algorithms", ()))

    @property
    def epsilons(self) -> list[float]:
        return [float(epsilon) for epsilon in self.grid.get("epsilons", ())]

    @property
    def seeds(self) -> int:
        """Number of seeds; a manifest may count or list them."""
        seeds = self.grid.get("seeds", 0)
        return len(seeds) if isinstance(seeds, list) else int(seeds)

    @property
    def features(self) -> str:
        return str(self.grid.get("features", "raw"))

    @property
    def participation(self) -> Participation | None:
        """Bound on the contributions of a user; None where ε is for a decision."""
        return Participation.from_json(self.grid.get("participation"))

    @property
    def not_private(self) -> str:
        """Reason why results depend on the data beyond the noise of ε; empty if they do not."""
        return str(self.manifest.get("event", {}).get("reason", ""))

    @property
    def datasets(self) -> JsonObject:
        return dict(self.manifest.get("datasets", {}))

    def runs(self) -> Runs:
        """Return every run of a file with a valid checksum, without curves."""
        installed("campaign", "to read results", "pyarrow")
        from discreet.lab.campaign.result_files import read

        return Runs.of(read(self._folder.root, columns=COLUMNS))

    def curves(self, dataset: str) -> pa.Table:
        """Return the runs of one data set with their curves; only its files are read."""
        import pyarrow as pa

        from discreet.lab.campaign.result_files import from_bytes

        everything = [task.name for task in self.tasks]
        mine = [task.name for task in self.tasks if task.dataset == dataset]
        contents = [self._folder.content(name) for name in mine or everything]
        return pa.concat_tables(
            [from_bytes(content, CURVE_COLUMNS) for content in contents if content is not None]
        ).unify_dictionaries()

    def file_name(self, dataset: str) -> str:
        """Return the name of a data set as part of a file name."""
        return file_name(dataset)

    @cached_property
    def tasks(self) -> list[TaskTime]:
        """Time of each task, or its error."""
        named = {file_name(dataset): dataset for dataset in self.datasets}
        found = []
        for name in self._folder.tasks():
            about = self._folder.sidecar(name)
            family = DATA if name.endswith(f".{DATA}") else ".".join(name.split(".")[-2:])
            dataset = name.removesuffix(f".{family}")
            dataset = named.get(dataset, dataset)
            found.append(
                TaskTime(
                    *(name, dataset, family, about.seconds, about.rows, about.device, about.error)
                )
            )
        return found
