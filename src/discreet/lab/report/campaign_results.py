"""Source of a report: the manifest, the runs and the sidecars of a campaign's folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.lab.campaign.results_folder import Folder, file_name
from discreet.lab.report.loss_curves import CURVE_COLUMNS
from discreet.lab.report.runs import COLUMNS, Runs
from discreet.privacy.budget import Participation
from discreet.validate import installed

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


class Source:
    """A campaign's folder, read only."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(Path(root))
        self.manifest: dict[str, Any] = self._folder.manifest()

    @property
    def grid(self) -> dict[str, Any]:
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
    def datasets(self) -> dict[str, Any]:
        return dict(self.manifest.get("datasets", {}))

    def runs(self) -> Runs:
        """Return every run of a file with a valid checksum, without curves."""
        installed("campaign", "to read results", "pyarrow")
        from discreet.lab.campaign.result_files import read

        return Runs.of(read(self._folder.root, columns=COLUMNS))

    def curves(self, dataset: str) -> Any:
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
