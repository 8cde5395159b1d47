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
from discreet.design.schedule import LONGEST, WAITING, seconds_of
from discreet.design.schedule import UNITS as UNITS_OF_TIME
from discreet.errors import InvalidInput
from discreet.plan.config import build
from discreet.plan.plan import Plan
from discreet.privacy.events import REAL_ARITHMETIC, assumptions
from discreet.releases.canonical import read_document
from discreet.service.experiment_file import catalogue_config, from_environment
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
LONGEST_QUESTION, YEAR = 500, 366 * 86_400.0
MOST = {"epsilon": 20.0, "delta": 1e-3}
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
_ORIGIN = re.compile(r"\*|https?://[^/\s]+")


def port_number(port: Any) -> int:
    """Return a port that a server can listen on; 0 stands for any free port."""
    if whole("port", port, 0) > 65_535:
        raise InvalidInput(f"port must be at most 65535; got {port}. Choose one above 1023.")
    return int(port)


def _is_network(address: object) -> bool:
    try:
        return bool(ip_network(address))  # type: ignore[arg-type]
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Settings of the HTTP server: of a folder, or of an experiment that is served alone."""

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
        port_number(self.port)
        whole("connections", self.connections, 1, "Connections that a worker keeps open at once.")
        whole("body_limit", self.body_limit, 1024)
        whole("rate_limit", self.rate_limit, 0, "Requests per second, key and kind; 0 is no limit.")
        if self.sign_in_role is not None:
            one_of("sign_in_role", self.sign_in_role, ("viewer", "editor"))
        header, proxies, origins = self.sign_in_header, self.sign_in_proxies, self.cors_origins
        path = re.fullmatch(r"(/[A-Za-z0-9._~-]+)*", str(self.prefix))
        listed = isinstance(origins, tuple) and all(_ORIGIN.fullmatch(str(x)) for x in origins)
        named = header is None or re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", str(header))
        together = (header is None) == (not proxies) and all(map(_is_network, proxies))
        for name, holds, rule in (
            ("host", isinstance(self.host, str) and self.host, "text"),
            ("prefix", path, "empty or a path such as '/bandit', without a slash at its end"),
            ("cors_origins", listed, "a list such as ['https://shop.example'], without a path"),
            ("sign_in_header", named, "the name of a header, such as 'X-Webauth-User'"),
            (
                *("sign_in_proxies", together),
                "addresses such as ['127.0.0.1'], given together with sign_in_header",
            ),
        ):
            if not holds:
                value = getattr(self, name)
                raise InvalidInput(f"{name} must be {rule}; got {value!r}. Correct it.")
        if self.database is not None and (
            not self.database.startswith(SCHEMES) or "options=" in self.database
        ):
            raise InvalidInput(
                "database of a server must be a PostgreSQL address without options; it is not. "
                "Write 'postgresql://user@host/name', or leave it out: each experiment has SQLite "
                "then."
            )

    @classmethod
    def read(cls, folder: str | Path) -> ServerSettings:
        path = Path(folder).resolve() / SERVER_FILE
        text = read_text(path, "server", f"Make it with discreet serve --folder {folder} --init.")
        environment = from_environment(os.environ)
        if own := sorted({"vault", "anchor"} & environment.keys()):
            raise InvalidInput(
                f"DISCREET_{own[0].upper()} must be left out with a folder of experiments; it is "
                "set. Each experiment has its own; anchors = '…' in server.toml names a folder "
                "for anchors."
            )
        return _built(cls, parse_toml(text, path, "server") | environment, "server", path.parent)

    def address(self, name: str) -> str:
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
        for name in ("experiment", "database", "vault"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise InvalidInput(f"{name} must be text; got {value!r}. Name it.")
        if not isinstance(self.question, str) or len(self.question) > LONGEST_QUESTION:
            rule = f"text of up to {LONGEST_QUESTION} characters"
            raise InvalidInput(f"question must be {rule}; it is not. Cut it.")
        for name in ("public_releases", "allow_idealised", "internal_metrics"):
            if not isinstance(value := getattr(self, name), bool):
                raise InvalidInput(f"{name} must be true or false; got {value!r}. Write one.")
        for name, least, most, advice in (
            ("window", 0.01, YEAR, "Rows of the last decisions are written after a batch is "
             "sealed: without a window they would be void."),
            ("settle", 0.0, 86_400.0, ""),
            # Clients try again for about a minute.
            ("remember", 60.0, YEAR, "A request that is sent again after that counts a second "
             "time."),
        ):  # fmt: skip
            in_range(name, getattr(self, name), least, most, advice)
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
        if self.allow_idealised:
            return
        if REAL_ARITHMETIC in assumptions(plan.event) or not plan.budget.private:
            raise InvalidInput(
                "plan must have mechanism 'structured' and a finite epsilon to protect people; "
                "this one does not. Correct it, or set allow_idealised = true for a test."
            )
        for name, most in MOST.items():
            if (value := getattr(plan.budget, name)) > most:
                raise InvalidInput(
                    f"plan.budget.{name} must be at most {most:g} to protect people; got "
                    f"{value:g}. Choose a smaller one, or set allow_idealised = true for a test."
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
        planned = dict(given.pop("plan"))
        if misplaced := [name for name in (*PEOPLE, "releases") if name in planned]:
            raise InvalidInput(
                f"plan.{misplaced[0]} must be left out; the file has it. Write unit, "
                "batches_per_user and records_per_batch at the top of the file, and window for "
                "the time of releases."
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
        server = _built(ServerSettings, listening, "experiment", folder)
        return _built(cls, given, "experiment", folder, plan=plan, server=server)


def _built(
    cls: type[Built], given: Mapping[str, Any], where: str, folder: Path, **parts: object
) -> Built:
    values = parts | {"folder": folder}
    if clash := sorted(values.keys() & given.keys()):
        raise InvalidInput(f"{where} must have no {clash[0]} in its file. Delete the line.")
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return build(cls, {**given, **lists, **values}, where, {})


def schema_name(name: str) -> str:
    """Return the PostgreSQL schema of an experiment."""
    return f"experiment_{name.replace('-', '_')}"


def experiment_name(name: str) -> str:
    """Check a name that is used as a folder, as a part of an address and as a schema."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?", name):
        raise InvalidInput(
            f"name must be 1 to 48 small letters, digits and hyphens; got {name!r}. "
            "Write welcome-2, for instance."
        )
    return name


def _given_by_server(path: Path, own_database: object) -> Mapping[str, object]:
    """Return settings of the server of a file's folder, or else of the environment."""
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
    return read_text(path, "experiment", "Make one with discreet serve --init.")
