"""What ``campaign run`` is asked for: flags, a TOML file, or a file that flags correct."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from discreet.cli.people_flags import participation
from discreet.config import build
from discreet.data import NAMES
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.lab.campaign.grid import Grid
from discreet.lab.campaign.run_campaign import Campaign
from discreet.toml_files import read_toml

LISTS = ("data", "algorithms", "oracles", "epsilon", "ridges")


@dataclass(frozen=True, kw_only=True)
class Request:
    """The keys of a campaign file: the flags of the command, and ``plans`` of one's own.

    Without a preset the grid is the paper's; with ``plans`` it is the default plan beside them.
    """

    data: list[str]
    out: str
    preset: str | None = None
    plans: list[Any] | None = None
    mechanism: str | None = None
    features: str = "raw"
    algorithms: list[str] | None = None
    oracles: list[str] | None = None
    epsilon: list[Any] | None = None
    ridges: list[Any] | None = None
    seeds: int | None = None
    device: str = "auto"
    jobs: int | None = None
    scheduler: str | None = None
    max_columns: int | None = None
    memory: float | None = None
    schema: str | None = None
    target: str | None = None
    user: str | None = None
    batches_per_user: int | None = None
    records_per_batch: int | None = None

    def campaign(self) -> Campaign:
        """The same, checked."""
        for name in ("out", "scheduler", "schema", "target", "user"):
            _text(name, getattr(self, name))
        for name in ("data", "algorithms", "oracles"):
            for each in getattr(self, name) or ():
                _text(name, each)
        grid = Grid.of(
            self.preset or ("default" if self.plans else "paper"),
            mechanism=self.mechanism,
            algorithms=self.algorithms,
            epsilons=_numbers("epsilon", self.epsilon),
            ridges=_numbers("ridges", self.ridges),
            seeds=self.seeds,
            features=self.features,
            oracles=self.oracles,
            plans=self.plans or (),
            participation=participation(self.user, self.batches_per_user, self.records_per_batch),
        )
        return Campaign(
            grid=grid,
            data=self.data,
            out=Path(self.out),
            device=self.device,
            jobs=self.jobs,
            scheduler=self.scheduler,
            max_columns=self.max_columns,
            memory=self.memory,
            schema=None if self.schema is None else Schema.from_toml(self.schema),
            target=self.target,
            user=self.user,
        )


def from_arguments(args: argparse.Namespace) -> Campaign:
    """Flags win over the file."""
    document = read(args.file) if args.file else {}
    for each in fields(Request):
        given = getattr(args, each.name, None)  # plans have no flag
        if given is not None:
            document[each.name] = given
    for name, example in (("data", "fried"), ("out", "results")):
        if not document.get(name):
            raise InvalidInput(f"{name} must be given; {name} is missing. Add --{name} {example}.")
    for name in LISTS:
        if name in document and not isinstance(document[name], list):
            document[name] = [document[name]]
    return build(Request, document, "campaign", {}).campaign()


def read(path: str) -> dict[str, Any]:
    """The document of a TOML file; data and results are looked for beside it."""
    document = read_toml(path, "campaign")
    beside = Path(path).parent
    for name in ("out", "schema"):
        if isinstance(document.get(name), str):
            document[name] = str(beside / document[name])
    data = document.get("data", [])
    document["data"] = [
        _beside(each, beside) for each in (data if isinstance(data, list) else [data])
    ]
    return document


def _beside(name: Any, folder: Path) -> Any:
    """A file, a folder or DIR:NAME that lies beside the campaign file; other names stay."""
    place, colon, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    if place and place not in NAMES and (folder / place).exists():
        return f"{folder / place}{colon}{rest}"
    return name


def _text(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} must be text; got {value!r}. Write it in quotes.")


def _numbers(name: str, values: list[Any] | None) -> list[float] | None:
    if values is None:
        return None
    try:
        if any(isinstance(value, bool) for value in values):
            raise TypeError
        return [float(value) for value in values]
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{name} must be numbers; got {values!r}. Write them as 1 4 inf, or [1, 4, inf]."
        ) from None
