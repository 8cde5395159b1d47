"""Settings of an experiment (``experiment.toml``) and of the server that serves it.

A folder has ``server.toml``, ``experiments/NAME/experiment.toml`` and, for archived experiments,
``archive/NAME/experiment.toml``. An experiment in a folder takes the settings of the HTTP server
from ``server.toml``; an experiment that is served alone has them in its own file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar

from discreet.client.documents import refuse_unevaluated
from discreet.design.action_names import action_index, action_name
from discreet.design.schedule import LONGEST
from discreet.design.window import UNITS as UNITS_OF_TIME
from discreet.design.window import WAITING, seconds_of
from discreet.errors import InvalidInput
from discreet.plan.config import build
from discreet.plan.plan import Plan
from discreet.privacy.events import REAL_ARITHMETIC, assumptions
from discreet.releases.canonical import read_document
from discreet.service.settings_sources import catalogue_config, from_environment
from discreet.text import parse_toml, read_text
from discreet.validate import in_range, one_of, whole

SERVER_FILE, EXPERIMENT_FILE = "server.toml", "experiment.toml"
SERVED, ARCHIVE = "experiments", "archive"
NOT_SERVED = "not-served"
"""While the folder of an experiment contains this file, no server serves it: it is being created,
moved or archived."""
SCHEMES = ("postgresql://", "postgres://")
PEOPLE = ("unit", "batches_per_user", "records_per_batch")
"""Keys at the top of the file that are parts of the plan: they can never change."""
STORING = ("online", "shadow")
"""The modes in which decisions take slots."""
MODES = (*STORING, "frozen")
ENDED = "ended"
"""The mode of an experiment that an operator has ended: like frozen, and permanent."""
SHORTEST, LONGEST_QUESTION = 0.01, 500
"""Seconds of the shortest window, and characters of the longest question."""
LEAST_MEMORY = 60.0
"""The fewest seconds that requests are remembered: clients try again for about a minute."""
MOST_EPSILON, MOST_DELTA = 20.0, 1e-3
"""At ε = 20 a reader of the releases is right about one person 95 times in 100. δ bounds the
probability that everything about a person is revealed."""
OF_SERVER = (
    *("host", "port", "prefix", "body_limit", "connections", "rate_limit", "cors_origins"),
    *("sign_in_header", "sign_in_proxies", "sign_in_role"),
)
"""Settings of the server that the file of an experiment may have."""
OWN_RATE = 10_000
"""Default of ``rate_limit`` for an experiment; that for the routes of the server is smaller."""
Built = TypeVar("Built", "ServerSettings", "Settings")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_ORIGIN = re.compile(r"https?://[^/\s]+")


def port_number(port: Any) -> int:
    """Return a port that a server can listen on; 0 stands for any free port."""
    if whole("port", port, 0) > 65_535:
        raise InvalidInput(f"port must be at most 65535; got {port}. Choose one above 1023.")
    return int(port)


def _check_texts(settings: ServerSettings | Settings, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(settings, name), str) or not getattr(settings, name):
            raise InvalidInput(f"{name} must be text; got {getattr(settings, name)!r}. Name it.")


def _check_sign_in(settings: ServerSettings) -> None:
    header, proxies = settings.sign_in_header, settings.sign_in_proxies
    if header is not None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", str(header)):
        raise InvalidInput(
            f"sign_in_header must be the name of a header; got {header!r}. Write 'X-Webauth-User'."
        )
    try:
        networks = [ip_network(each) for each in proxies]
    except ValueError:
        networks = []
    if (header is None) != (not proxies) or len(networks) != len(proxies):
        raise InvalidInput(
            "sign_in_header and sign_in_proxies must be given together, the proxies as addresses; "
            f"got {header!r} and {list(proxies)!r}. Write sign_in_proxies = ['127.0.0.1']."
        )
    if settings.sign_in_role is not None:
        one_of("sign_in_role", settings.sign_in_role, ("viewer", "editor"))


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Settings of the HTTP server: in ``server.toml`` of a folder of experiments, or in the file of
    an experiment that is served alone."""

    folder: Path = Path()
    host: str = "127.0.0.1"
    port: int = 8000
    prefix: str = ""
    body_limit: int = 262_144
    connections: int = 1_000
    rate_limit: int = 1_000
    cors_origins: tuple[str, ...] = ()
    sign_in_header: str | None = None
    sign_in_proxies: tuple[str, ...] = ()
    sign_in_role: str | None = None
    database: str | None = None
    anchors: str | None = None

    def __post_init__(self) -> None:
        _check_texts(self, "host")
        port_number(self.port)
        if not isinstance(self.prefix, str) or not _PREFIX.fullmatch(self.prefix):
            raise InvalidInput(
                f"prefix must be empty or a path such as '/bandit'; got {self.prefix!r}. Begin it "
                "with a slash, and leave out the one at the end."
            )
        origins = self.cors_origins
        known = isinstance(origins, tuple) and all(isinstance(each, str) for each in origins)
        if not known or not all(each == "*" or _ORIGIN.fullmatch(each) for each in origins):
            raise InvalidInput(
                f"cors_origins must be a list of origins; got {origins!r}. "
                "Write cors_origins = ['https://shop.example'], without a path."
            )
        whole("connections", self.connections, 1, "Connections that a worker keeps open at once.")
        whole("body_limit", self.body_limit, 1024)
        whole("rate_limit", self.rate_limit, 0, "Requests per second, key and kind; 0 is no limit.")
        _check_sign_in(self)
        if self.database is not None and not self.database.startswith(SCHEMES):
            raise InvalidInput(
                "database of a server must be a PostgreSQL address; it is not. Write "
                "'postgresql://user@host/name', or leave it out: each experiment has SQLite then."
            )
        if self.database is not None and "options=" in self.database:
            raise InvalidInput(
                "database of a server must have no options; it has some. Leave them out: they "
                "select the schema of each experiment."
            )

    @classmethod
    def read(cls, folder: str | Path) -> ServerSettings:
        """Read the settings of a folder and of the environment."""
        path = Path(folder).resolve() / SERVER_FILE
        text = read_text(path, "server", f"Make it with discreet serve --folder {folder} --init.")
        environment = from_environment(os.environ)
        for name in ("vault", "anchor"):
            if name in environment:
                raise InvalidInput(
                    f"DISCREET_{name.upper()} must be left out with a folder of experiments; it is "
                    "set. Each experiment has its own; anchors = '…' in server.toml names a folder "
                    "for anchors."
                )
        return _built(cls, parse_toml(text, path, "server") | environment, path.parent, "server")

    def address(self, name: str) -> str:
        """Return the prefix of the paths of an experiment."""
        return f"{self.prefix}/v1/experiments/{name}"

    def schema(self, name: str) -> str:
        """Return the address of an experiment's schema in the server's database."""
        joint = "&" if "?" in str(self.database) else "?"
        return f"{self.database}{joint}options=-csearch_path%3D{schema_name(name)}"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one experiment; times are in seconds, or in words such as "6h".

    The service awaits losses for ``window`` seconds after a batch is sealed; the release is due
    ``settle`` seconds later. For ``remember`` seconds after the end of a batch a repeated
    Idempotency-Key is recognised. ``default_action`` may be given by name. ``question`` describes
    the experiment to readers of its pages.
    """

    experiment: str
    plan: Plan
    folder: Path = Path()
    server: ServerSettings = ServerSettings(rate_limit=OWN_RATE)
    question: str = ""
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
    internal_metrics: bool = False
    lease: int = 64

    def __post_init__(self) -> None:
        if not isinstance(self.experiment, str) or not self.experiment.strip():
            raise InvalidInput(
                f"experiment must be a name; got {self.experiment!r}. Write experiment = 'welcome'."
            )
        _check_texts(self, "database", "vault")
        if not isinstance(self.question, str) or len(self.question) > LONGEST_QUESTION:
            raise InvalidInput(
                f"question must be text of up to {LONGEST_QUESTION} characters; it is not. Cut it."
            )
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
        step = "A request that is sent again after that counts a second time."
        in_range("remember", self.remember, LEAST_MEMORY, 366 * 86_400.0, step)
        one_of("waiting", self.waiting, WAITING)
        one_of("journal", self.journal, ("decide", "observe"))
        one_of("mode", self.mode, MODES)
        whole("lease", self.lease, 1)
        self._check_plan()

    def _check_plan(self) -> None:
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
        if (plan.imported or 0) > LONGEST:
            raise InvalidInput(
                f"plan.imported must be at most {LONGEST:,} in a service, which stores its rows; "
                f"got {plan.imported:,}. Import the log with discreet import --out, and make its "
                "releases a prior: prior_from_released."
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
                    f"plan.budget.{name} must be at most {most:g} to protect people; got "
                    f"{value:g}. Choose a smaller one, or set allow_idealised = true for a test."
                )
        ideal = REAL_ARITHMETIC in assumptions(plan.event) or not plan.budget.private
        if ideal and not self.allow_idealised:
            raise InvalidInput(
                "plan must have mechanism 'structured' and a finite epsilon to protect people; "
                "this one does not. Correct it, or set allow_idealised = true for a test."
            )

    @property
    def archived(self) -> bool:
        """True if the experiment is in the archive of its server: it is only read."""
        place = self.folder.parent
        return place.name == ARCHIVE and (place.parent / SERVER_FILE).is_file()

    @property
    def postgres(self) -> bool:
        """True if the database is a PostgreSQL server."""
        return self.database.startswith(SCHEMES)

    @property
    def default_name(self) -> int | str | None:
        """Name or number of the default action; None if the catalogue begins empty."""
        plan = self.plan
        return action_name(plan, self.default_action) if plan.n_actions else None

    @property
    def unit(self) -> str:
        """Unit of privacy: one decision, or everything that one user contributes."""
        return self.plan.unit

    @property
    def fixed(self) -> dict[str, object]:
        """Settings that can never change, by the keys of the file."""
        plan = self.plan.to_config()
        people = {name: plan.pop(name) for name in PEOPLE if name in plan}
        return {"plan": plan, **people}

    @property
    def values(self) -> dict[str, object]:
        """Settings by the keys of the file; keys that the file leaves out have defaults."""
        names = {each.name for each in fields(self)} - {"folder", "server"}
        own = {name: getattr(self, name) for name in names}
        return own | {name: getattr(self.server, name) for name in OF_SERVER} | self.fixed

    def place(self, name: str) -> Path:
        """Return a path that the file names, relative to the file."""
        return self.folder / name

    @classmethod
    def read(cls, path: str | Path) -> Settings:
        """Read the settings of a TOML file."""
        return cls.of_text(read_experiment_file(path), path)

    @classmethod
    def of_text(cls, text: str, path: str | Path) -> Settings:
        """Return the settings of a TOML file whose text was read before."""
        file, written = Path(path).resolve(), parse_toml(text, path, "experiment")
        given = {**written, **_given_by_server(file, written.get("database"))}
        return cls.from_config(given, file.parent)

    @classmethod
    def from_config(cls, document: Mapping[str, Any], folder: Path) -> Settings:
        """Return the settings of a mapping; unknown keys are refused by name."""
        given = dict(document)
        if not isinstance(given.get("plan"), Mapping):
            raise InvalidInput("experiment must have a table [plan]. Add the table.")
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
                "has the form of an older version. Write unit = 'user', batches_per_user = 10 and "
                "records_per_batch = 1."
            )
        if "holdback" in given:
            raise InvalidInput(
                "holdback must be left out; the file has it. Delete the line: a new experiment "
                "compares by [plan.control], share = 0.1 and action = 0."
            )
        people = {name: given.pop(name) for name in PEOPLE if name in given}
        if isinstance(planned.get("prior"), str):  # the file that discreet import --public wrote
            planned["prior"] = read_document(folder / planned["prior"])
        if isinstance(planned.get("actions"), Mapping):
            planned["actions"] = catalogue_config(planned["actions"], folder)
        # Releases follow the public clock of the service, never the answers.
        plan = Plan.from_config(planned | people | {"releases": "on_request"})
        for name in ("window", "settle", "remember"):
            if isinstance(given.get(name), str) and given[name][-1:] in UNITS_OF_TIME:
                given[name] = seconds_of(name, given[name])
        listening = {name: given.pop(name) for name in OF_SERVER if name in given}
        listening = {"rate_limit": OWN_RATE} | listening
        server = _built(ServerSettings, listening, folder, "experiment")
        if "server" in given:
            raise InvalidInput("experiment must have no server in its file. Delete the line.")
        return _built(cls, given | {"plan": plan, "server": server}, folder, "experiment")


def _built(cls: type[Built], given: Mapping[str, Any], folder: Path, where: str) -> Built:
    if "folder" in given:
        raise InvalidInput(f"{where} must have no folder in its file. Delete the line.")
    values = dict(given) | {"folder": folder}
    for name in ("cors_origins", "sign_in_proxies"):
        if isinstance(values.get(name), list):
            values[name] = tuple(values[name])
    return build(cls, values, where, {})


def schema_name(name: str) -> str:
    """Return the PostgreSQL schema of an experiment."""
    return f"experiment_{name.replace('-', '_')}"


def experiment_name(name: str) -> str:
    """Check a name that is used as a folder, as a part of an address and as a schema."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"name must be 1 to 48 small letters, digits and hyphens; got {name!r}. "
            "Write welcome-2, for instance."
        )
    return name


def _given_by_server(path: Path, own_database: object) -> Mapping[str, object]:
    """Return the settings that replace those of an experiment file: of its server, if it is in a
    folder of experiments, else of the environment."""
    place = path.parent.parent
    hosted = path.name == EXPERIMENT_FILE and place.name in (SERVED, ARCHIVE)
    if not hosted or not (place.parent / SERVER_FILE).is_file():
        return from_environment(os.environ)
    server, name = ServerSettings.read(place.parent), path.parent.name
    given: dict[str, object] = {
        each: getattr(server, each) for each in ("host", "port", "connections", "cors_origins")
    }
    if server.database and not (isinstance(own_database, str) and own_database.startswith(SCHEMES)):
        given["database"] = server.schema(name)
    return given | {"prefix": server.address(name)}


def read_experiment_file(path: str | Path) -> str:
    """Return the text of an experiment file."""
    return read_text(path, "experiment", "Make one with discreet serve --init.")
