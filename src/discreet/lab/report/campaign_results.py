"""Results of a campaign's folder: manifest, runs as columns of small integers, sidecars."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet.errors import InvalidInput
from discreet.lab.campaign.results_folder import Folder, file_name
from discreet.privacy.budget import Participation
from discreet.text import epsilon_text
from discreet.types import Frame, JsonMapping, JsonObject, NumpyArray
from discreet.validate import installed

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
POOLED = "PooledRidge"
"""The oracle of the default plan: it has one mechanism, discreet's own, in every campaign."""
DATA = "data"
"""Family of tasks that read the data set itself."""
Numbers = NumpyArray
NAMED = ("dataset", "algorithm", "oracle", "epsilon", "delta", "seed", "settings")
COLUMNS = (*NAMED, "mechanism", "rounds", "loss")
CURVE_COLUMNS = (*NAMED, "first_batch", "growth", "curve")


def place(algorithm: str) -> tuple[int, str]:
    """Return the sort key of an algorithm: the paper's order, then others, the reference last."""
    if algorithm == REFERENCE:
        return len(SHORT) + 1, algorithm
    return (list(SHORT).index(algorithm) if algorithm in SHORT else len(SHORT)), algorithm


def short(algorithm: str) -> str:
    """Return ``bpo`` for ReplayBonusPO; an unknown name in lower case."""
    return SHORT.get(algorithm, algorithm.lower())


def named_in(records: Iterable[JsonMapping], column: str) -> list[str]:
    """Return the algorithms of a column of records, in the order of all tables."""
    return sorted({each[column] for each in records}, key=place)


def levels_of(records: Iterable[JsonMapping]) -> list[float]:
    """Return the privacy levels of records, from no privacy to the most privacy."""
    return sorted({each["epsilon"] for each in records}, reverse=True)


def bandits(algorithms: Iterable[str]) -> list[str]:
    """Return all algorithms but the reference."""
    return [each for each in algorithms if each != REFERENCE]


class Level(NamedTuple):
    """One privacy level of the campaign; ε = ∞ is no privacy."""

    epsilon: float
    delta: float

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)

    @property
    def text(self) -> str:
        return f"ε = {epsilon_text(self.epsilon)}"


class Coded(NamedTuple):
    """A column: its distinct values in a fixed order, and for each run the index of its own."""

    values: tuple[Any, ...]
    codes: Numbers


@dataclass(frozen=True)
class Runs:
    """One entry per run; orders are fixed, so that nothing depends on the order of rows."""

    dataset: Coded
    algorithm: Coded
    oracle: Coded
    level: Coded
    """From no privacy to the most privacy."""
    seed: Coded
    settings: Coded
    rounds: Numbers
    lost: Numbers
    """Rounds that were lost: whole numbers again, where the float32 loss is a rounded n/T."""
    mechanism: str

    @classmethod
    def of(cls, table: Frame) -> Runs:
        """Return the runs of a table of result files; the order of rows does not matter."""
        if table.num_rows == 0:
            raise InvalidInput(
                "results must hold at least one run; they hold none. "
                "Run the campaign first, or see why its tasks failed with campaign status."
            )
        oracle = _coded(table, "oracle", lambda name: (name != "Ridge", name))
        epsilon = _coded(table, "epsilon", lambda each: -each)
        delta = table["delta"].to_numpy()[np.unique(epsilon.codes, return_index=True)[1]]
        rounds = table["rounds"].to_numpy().astype(np.float64)
        return cls(
            dataset=_coded(table, "dataset", str),
            algorithm=_coded(table, "algorithm", place),
            oracle=oracle,
            level=Coded(
                tuple(map(Level, epsilon.values, delta.tolist())),
                epsilon.codes,
            ),
            seed=_coded(table, "seed", int),
            settings=_coded(table, "settings", _settings_order),
            rounds=rounds,
            lost=_lost(table["loss"].to_numpy(), rounds),
            mechanism=_mechanism(_coded(table, "mechanism", str), oracle),
        )


def _mechanism(mechanism: Coded, oracle: Coded) -> str:
    """Return the mechanism of the campaign; PooledRidge always has its own."""
    pooled = np.asarray([name == POOLED for name in oracle.values])[oracle.codes]
    chosen = mechanism.codes if pooled.all() else mechanism.codes[~pooled]
    return str(mechanism.values[chosen[0]])


def _lost(loss: Numbers, rounds: Numbers) -> Numbers:
    """Return lost rounds: exact where the loss is one of n/T, so that equal sums are equal."""
    lost = loss.astype(np.float64) * rounds
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = np.rint(lost)
        return np.where((whole / rounds).astype(loss.dtype) == loss, whole, lost)


def _coded(table: Frame, name: str, order: Callable[[Any], Any]) -> Coded:
    array = table[name].combine_chunks()
    if not hasattr(array, "dictionary"):
        array = array.dictionary_encode()
    indices = array.indices.to_numpy()
    words = array.dictionary.to_pylist()
    values = sorted({words[index] for index in np.unique(indices)}, key=order)
    ranks = {value: rank for rank, value in enumerate(values)}
    return Coded(tuple(values), np.asarray([ranks.get(word, -1) for word in words])[indices])


def _settings_order(text: str) -> tuple[object, ...]:
    """Return a sort key by name, then by size as numbers and not as text: 1e-06 before 0.1."""
    return tuple(
        (name, 0, value) if isinstance(value, (int, float)) else (name, 1, str(value))
        for name, value in sorted(json.loads(text).items())
    )


class PlayedTask(NamedTuple):
    """One task: a data set in one family of configurations."""

    name: str
    dataset: str
    family: str
    device: str
    error: str | None


class CampaignResults:
    """A campaign's folder, read only."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(Path(root))
        self.manifest = self._folder.manifest()
        self.grid: JsonObject = self.manifest["grid"]
        self.datasets: JsonObject = self.manifest["datasets"]
        self.features = str(self.grid.get("features", "raw"))
        self.participation = Participation.from_json(self.grid.get("participation"))
        """Bound on the contributions of a user; None where ε is for a decision."""
        self.not_private = str(self.manifest.get("event", {}).get("reason", ""))
        """Reason why results depend on the data beyond the noise of ε; empty if they do not."""

    def runs(self) -> Runs:
        """Return every run of a file with a valid checksum, without curves."""
        installed("campaign", "to read results", "pyarrow")
        from discreet.lab.campaign.result_files import read

        return Runs.of(read(self._folder.root, columns=COLUMNS))

    def curves(self, dataset: str) -> Frame:
        """Return the runs of one data set with their curves; only its files are read."""
        import pyarrow as pa

        from discreet.lab.campaign.result_files import from_bytes

        contents = [
            self._folder.content(each.name) for each in self.tasks if each.dataset == dataset
        ]
        return pa.concat_tables(
            [from_bytes(content, CURVE_COLUMNS) for content in contents if content is not None]
        ).unify_dictionaries()

    @cached_property
    def tasks(self) -> list[PlayedTask]:
        named = {file_name(dataset): dataset for dataset in self.datasets}
        found = []
        for name in self._folder.tasks():
            about = self._folder.sidecar(name)
            family = DATA if name.endswith(f".{DATA}") else ".".join(name.split(".")[-2:])
            dataset = name.removesuffix(f".{family}")
            dataset = named.get(dataset, dataset)
            found.append(PlayedTask(name, dataset, family, about.device, about.error))
        return found
