"""How long a campaign took, from the sidecars of its tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.lab.report.campaign_results import TaskTime


@dataclass(frozen=True)
class Share:
    """The tasks of a family, or of a data set, together."""

    name: str
    tasks: int
    seconds: float
    runs: int
    rounds: int

    @property
    def rounds_per_second(self) -> float:
        return self.rounds / self.seconds if self.seconds else float("nan")


@dataclass(frozen=True)
class Runtime:
    """Seconds of computation, summed over jobs; waiting and reading data do not count."""

    total: Share
    families: tuple[Share, ...]
    datasets: tuple[Share, ...]
    """Slowest first."""
    devices: tuple[str, ...]


def runtime(tasks: Sequence[TaskTime], about: Mapping[str, Any]) -> Runtime:
    """Runs and rounds by family and by data set."""
    done = [task for task in tasks if task.runs and not task.error]
    families: dict[str, list[TaskTime]] = defaultdict(list)
    datasets: dict[str, list[TaskTime]] = defaultdict(list)
    for task in done:
        families[task.family or "other"].append(task)
        datasets[task.dataset].append(task)

    def share(name: str, some: Sequence[TaskTime]) -> Share:
        rounds = sum(task.runs * int(about.get(task.dataset, {}).get("rows", 0)) for task in some)
        seconds, runs = sum(task.seconds for task in some), sum(task.runs for task in some)
        return Share(name, len(some), seconds, runs, rounds)

    by_set = [share(name, some) for name, some in datasets.items()]
    return Runtime(
        share("all", done),
        tuple(share(name, families[name]) for name in sorted(families)),
        tuple(sorted(by_set, key=lambda each: (-each.seconds, each.name))),
        tuple(sorted({task.device for task in done if task.device})),
    )
