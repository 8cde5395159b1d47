"""Everything that ``experiment.toml`` says: the plan, and how it is served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from discreet.action_names import action_index, action_name
from discreet.billboard.documents import refuse_unevaluated
from discreet.config import build
from discreet.errors import InvalidInput
from discreet.plan import Plan
from discreet.privacy.events import REAL_ARITHMETIC, assumptions
from discreet.releases.canonical import read_document
from discreet.service.catalogue_file import with_items
from discreet.service.listening import check_connections, check_origins, check_prefix, port_number
from discreet.service.server_settings import SCHEMES, given_by_server
from discreet.toml_files import parse_toml, read_text
from discreet.validate import in_range, one_of, whole
from discreet.window import UNITS as UNITS_OF_TIME
from discreet.window import WAITING, seconds_of

PEOPLE = ("unit", "batches_per_user", "records_per_batch")
"""What the file says about people, at its top: parts of the plan, and like it fixed for good."""
STORING = ("online", "shadow")
"""The modes in which decisions take slots."""
MODES = (*STORING, "frozen")
ENDED = "ended"
"""The mode of an experiment that an operator has ended: like frozen, and for good."""
SHORTEST = 0.01
"""Seconds of the shortest window."""
LEAST_MEMORY = 60.0
"""The least seconds that requests are remembered: clients try again for about a minute."""
MOST_EPSILON, MOST_DELTA = 20.0, 1e-3
"""With ε = 20 whoever reads the releases is right about one person 95 times in 100. δ bounds how
likely everything about a person is told: above 1 in 1,000 nobody can mean it."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One experiment as it is served; times are in seconds, or in words such as "6h".

    The service awaits losses for ``window`` seconds after a batch is sealed; the release is due
    ``settle`` seconds later. For ``remember`` seconds after the end of a batch a repeated
    Idempotency-Key is recognised. ``default_action`` may be given by name.
    """

    experiment: str
    plan: Plan
    folder: Path = Path()
    database: str = "discreet.db"
    vault: str = "vault"
    anchor: str | None = None
    window: float = 3600.0
    settle: float = 1.0
    remember: float = 86_400.0
    waiting: str = "pipeline"
    journal: str = "decide"
    mode: str = "online"
    default_action: int = 0
    public_releases: bool = False
    allow_idealised: bool = False
    host: str = "127.0.0.1"
    port: int = 8000
    prefix: str = ""
    body_limit: int = 262_144
    connections: int = 1_000
    rate_limit: int = 10_000
    cors_origins: tuple[str, ...] = ()
    internal_metrics: bool = False
    lease: int = 64

    def __post_init__(self) -> None:
        if not isinstance(self.experiment, str) or not self.experiment.strip():
            raise InvalidInput(
                f"experiment must be a name; got {self.experiment!r}. Write experiment = 'welcome'."
            )
        for name in ("database", "vault", "host"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                raise InvalidInput(f"{name} must be text; got {getattr(self, name)!r}. Name it.")
        for name in ("public_releases", "allow_idealised", "internal_metrics"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(
                    f"{name} must be true or false; got {getattr(self, name)!r}. Write one."
                )
        in_range(
            "window",
            self.window,
            SHORTEST,
            366 * 86_400.0,
            "The last decisions of a batch are written after it is sealed: without a window they "
            "would be void.",
        )
        in_range("settle", self.settle, 0.0, 86_400.0)
        in_range(
            "remember",
            self.remember,
            LEAST_MEMORY,
            366 * 86_400.0,
            "A request that is sent again after that counts a second time.",
        )
        one_of("waiting", self.waiting, WAITING)
        one_of("journal", self.journal, ("decide", "observe"))
        one_of("mode", self.mode, MODES)
        port_number(self.port)
        check_origins(self.cors_origins)
        check_prefix(self.prefix)
        check_connections(self.connections)
        whole("body_limit", self.body_limit, 1024)
        whole("rate_limit", self.rate_limit, 0, "Requests per second, key and kind; 0 is no limit.")
        whole("lease", self.lease, 1)
        self._refuse_what_cannot_be_had()

    def _refuse_what_cannot_be_had(self) -> None:
        plan = self.plan
        refuse_unevaluated(plan)
        if plan.n_actions:  # an empty catalogue has no default
            default = action_index(plan, self.default_action, "default_action", public=True)
            object.__setattr__(self, "default_action", default)
        if plan.feedback != "bandit":
            raise InvalidInput(
                f"plan.feedback must be 'bandit' in a service; got {plan.feedback!r}. "
                "A person answers for the action they received."
            )
        if self.journal == "observe" and plan.missing_loss is not None:
            raise InvalidInput(
                "plan.missing_loss must be left out with journal = 'observe'; the plan has one. "
                "A decision that was not written cannot take a loss: use journal = 'decide'."
            )
        for name, most in (("epsilon", MOST_EPSILON), ("delta", MOST_DELTA)):
            value = getattr(plan.budget, name)
            if plan.budget.private and value > most and not self.allow_idealised:
                raise InvalidInput(
                    f"plan.budget.{name} must be at most {most:g} to protect anybody; got "
                    f"{value:g}. Choose a smaller one, or set allow_idealised = true for a test."
                )
        ideal = REAL_ARITHMETIC in assumptions(plan.event) or not plan.budget.private
        if ideal and not self.allow_idealised:
            raise InvalidInput(
                "plan must have mechanism 'structured' and a finite epsilon to protect people; "
                "this one does not. Correct it, or set allow_idealised = true for a test."
            )

    @property
    def postgres(self) -> bool:
        """Whether the database is a PostgreSQL server."""
        return self.database.startswith(SCHEMES)

    @property
    def default_name(self) -> int | str | None:
        """The default action as people read it; None where the catalogue begins empty."""
        plan = self.plan
        return action_name(plan, self.default_action) if plan.n_actions else None

    @property
    def unit(self) -> str:
        """What the budget protects: one decision, or all that one user contributes."""
        return self.plan.unit

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings that can never change, by the keys of the file."""
        plan = self.plan.to_config()
        people = {name: plan.pop(name) for name in PEOPLE if name in plan}
        return {"plan": plan, **people}

    @property
    def said(self) -> dict[str, Any]:
        """All settings by the keys of the file; keys that the file leaves out have defaults."""
        names = {each.name for each in fields(self)} - {"folder"}
        return {name: getattr(self, name) for name in names} | self.fixed

    def place(self, name: str) -> Path:
        """A path that the file names, relative to the file."""
        return self.folder / name

    @classmethod
    def read(cls, path: str | Path) -> Settings:
        """The settings of a TOML file."""
        return cls.of_text(text_of(path), path)

    @classmethod
    def of_text(cls, text: str, path: str | Path) -> Settings:
        """The settings of a TOML file that was read before."""
        said = parse_toml(text, path, "experiment")
        document = said | given_by_server(path, said)
        return cls.from_config(document, Path(path).resolve().parent)

    @classmethod
    def from_config(cls, document: Mapping[str, Any], folder: Path) -> Settings:
        """The settings of a mapping; unknown keys are refused by name."""
        given = dict(document)
        if "folder" in given or not isinstance(given.get("plan"), Mapping):
            raise InvalidInput("experiment must have a [plan] and no folder. Add the table.")
        planned = dict(given["plan"])
        for name in (*PEOPLE, "releases"):
            if name in planned:
                raise InvalidInput(
                    f"plan.{name} must be left out; the file has it. Write unit, batches_per_user "
                    "and records_per_batch at the top of the file, and window for the time of "
                    "releases."
                )
        if "max_batches" in given or given.get("unit") == "user_per_batch":
            raise InvalidInput(
                "unit must be 'decision' or 'user', and max_batches must be left out; the file "
                "follows an older rule. Write unit = 'user', batches_per_user = 10 and "
                "records_per_batch = 1: a person is bounded, and the experiment goes on."
            )
        if "holdback" in given:
            raise InvalidInput(
                "holdback must be left out; the file has it. Delete the line: a new experiment "
                "compares by [plan.control], share = 0.1 and action = 0, whose losses are heard."
            )
        people = {name: given.pop(name) for name in PEOPLE if name in given}
        if isinstance(planned.get("prior"), str):  # the file that discreet import --public wrote
            planned["prior"] = read_document(folder / planned["prior"])
        if isinstance(planned.get("actions"), Mapping):
            planned["actions"] = with_items(planned["actions"], folder)
        # Releases follow the public clock of the service, never the answers.
        plan = Plan.from_config(planned | people | {"releases": "on_request"})
        for name in ("window", "settle", "remember"):
            if isinstance(given.get(name), str) and given[name][-1:] in UNITS_OF_TIME:
                given[name] = seconds_of(name, given[name])
        if isinstance(given.get("cors_origins"), list):
            given["cors_origins"] = tuple(given["cors_origins"])
        return build(cls, given | {"plan": plan, "folder": folder}, "experiment", {})


def text_of(path: str | Path) -> str:
    """The text of an experiment file."""
    return read_text(path, "experiment", "Make one with discreet serve --init.")


def _with_items(table: Mapping[str, Any]) -> dict[str, Any]:
    """A catalogue's table with its ids and rows as one value."""
    rest = {name: table[name] for name in table if name not in ("ids", "rows")}
    return {**rest, "items": repr((table.get("ids"), table.get("rows")))}


def differing(one: Any, other: Any, key: str = "") -> list[str]:
    """The keys under which two settings differ, as in "plan.budget.epsilon"; never a value."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if one.get("kind") != other.get("kind"):  # then the other keys cannot be compared
            return [f"{key}.kind"]
        if "rows" in one:  # of a catalogue: the file has them as items
            one, other = _with_items(one), _with_items(other)
        names = sorted(one.keys() | other.keys())
        parts = [(name, one.get(name), other.get(name)) for name in names]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        parts = [(str(i), *pair) for i, pair in enumerate(zip(one, other, strict=True))]
        if not any(isinstance(part, Mapping) for part in one):  # plain values count as one
            return [] if one == other else [key]
    else:
        return [] if one == other else [key]
    return [
        found
        for name, left, right in parts
        for found in differing(left, right, f"{key}.{name}" if key else name)
    ]
