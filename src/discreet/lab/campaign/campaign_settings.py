"""Settings of a campaign: a grid, data sets and a machine, from a TOML file or from flags.

The keys of a file are the flags of ``discreet campaign run``, and ``plans``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.data import NAMES
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.lab.campaign.grid import Grid, configurations
from discreet.plan.config import to_config
from discreet.privacy.budget import user_participation
from discreet.releases.canonical import digest_of
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
