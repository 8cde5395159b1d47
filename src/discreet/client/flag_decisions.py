"""Decisions behind feature flags: one for each person and release, kept in memory."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import NamedTuple

from discreet.client.http_client import Client, Decision, unavailable
from discreet.client.transport import UNREADABLE
from discreet.errors import InvalidInput, ServiceError
from discreet.types import JsonMapping, JsonObject

REMEMBERED = 100_000
"""People whose decision a process remembers; the one stored first is forgotten first."""
NEW, AGAIN, STALE = "new", "again", "stale"
"""Decided now; remembered; remembered from an older release while the service does not answer."""
VECTOR = "features"
"""The attribute that holds the context where it is a list of numbers."""


@dataclass(frozen=True)
class ExperimentFlag:
    """A flag whose value an experiment chooses.

    ``values`` are the values of the actions, by name or number; without them the value is the
    action itself. ``fixed`` is an action for every person without a request, for instance when
    the experiment is over. ``event`` is the name under which outcomes are tracked, by default
    that of the flag. ``deadline`` is in seconds for one request.
    """

    url: str
    key: str | None = field(default=None, repr=False)
    values: Mapping[int | str, object] | None = None
    fixed: int | str | None = None
    event: str | None = None
    deadline: float = 0.5

    def __post_init__(self) -> None:
        if self.fixed is not None and self.values is not None and self.fixed not in self.values:
            raise InvalidInput(
                f"fixed must be an action of values; got {self.fixed!r}. Add its value."
            )

    def value(self, action: int | str) -> object:
        """Return the value of an action."""
        return action if self.values is None else self.values[action]


class ServiceFacts(NamedTuple):
    """Status and schema of a service, as far as its callers need them."""

    release: int
    by_user: bool
    columns: frozenset[str] | None
    actions: tuple[int | str, ...]
    outcome: str


class Held(NamedTuple):
    decision: Decision
    release: int


class FlagDecisions:
    """Decisions of one flag by person, and the facts of the service that makes them."""

    def __init__(self, name: str, flag: ExperimentFlag) -> None:
        self.name, self.flag = name, flag
        self.client = Client(flag.url, flag.key, deadline=flag.deadline)
        self.facts: ServiceFacts | None = None
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._lock, self.looking = threading.Lock(), threading.Lock()

    def look(self) -> bool:
        """Fetch the served release; return whether it is another than before."""
        before, facts = self.facts, _facts(self.client.status(), self.client.schema())
        if self.flag.values is not None and not set(facts.actions) <= set(self.flag.values):
            raise InvalidInput(
                f"values of flag {self.name!r} must have every action of the experiment, "
                f"{', '.join(map(str, facts.actions))}; some are missing. Add them."
            )
        self.facts = facts
        return before is not None and before.release != facts.release

    def decide(
        self, facts: ServiceFacts, person: str, attributes: Mapping[str, object]
    ) -> tuple[Decision, str]:
        """The decision for a person, and whether it is new; the same until a release comes."""
        held = self.held(person)
        if held is not None and held.release == facts.release:
            return held.decision, AGAIN
        try:
            decision = self._requested(facts, person, attributes)
        except ServiceError as error:
            if held is not None and unavailable(error):
                return held.decision, STALE
            raise
        with self._lock:
            self._held[person] = Held(decision, facts.release)
            self._held.move_to_end(person)
            if len(self._held) > REMEMBERED:
                self._held.popitem(last=False)
        return decision, NEW

    def held(self, person: str) -> Held | None:
        """Return the remembered decision of a person."""
        with self._lock:
            return self._held.get(person)

    def observe(self, person: str, outcome: JsonMapping) -> None:
        """Report the outcome of the last decision for a person, if it counts."""
        held = self.held(person)
        if held is not None and held.decision.stored:
            self.client.observe(held.decision, **outcome)

    def _requested(
        self, facts: ServiceFacts, person: str, attributes: Mapping[str, object]
    ) -> Decision:
        context = _context(facts, attributes)
        given: JsonObject = {"user": person if facts.by_user else None, "sticky": person}
        # Privacy: other processes of the application send the same name, so that a person
        # takes one slot for each release. [docs/privacy/service.md, "Requests that are sent again"]
        identity = f"{self.name}\0{facts.release}\0{person}".encode("utf-8", "surrogatepass")
        name = hashlib.sha256(identity).hexdigest()
        try:
            return self.client.decide(context, idempotency_key=name, **given)
        except ServiceError as error:
            if error.code != "idempotency_key_used":
                raise
        # The person counts in a batch that is over: show the same, and let it count no more.
        return replace(self.client.decide(context, deferred=True, **given), stored=False)


def _facts(status: JsonMapping, schema: JsonMapping) -> ServiceFacts:
    try:
        return ServiceFacts(
            status["serving"],
            status["unit"] == "user",
            _columns(schema["features"]),
            tuple(schema["actions"] or range(schema["n_actions"])),
            "reward" if schema["outcome"]["kind"] == "Reward" else "loss",
        )
    except (LookupError, TypeError):
        raise ServiceError(
            "status and schema must be those of discreet serve; these are not. Check the address.",
            code=UNREADABLE,
        ) from None


def _columns(features: JsonMapping) -> frozenset[str] | None:
    """The names of a context's columns; None if it is a list of numbers."""
    if "fields" in features:
        return frozenset(each["name"] for each in features["fields"])
    return _columns(features["context"]) if "context" in features else None


def _context(facts: ServiceFacts, attributes: Mapping[str, object]) -> object:
    """Return the part of an application's context that the experiment needs."""
    if facts.columns is None:
        return attributes.get(VECTOR)
    return {name: _plain(value) for name, value in attributes.items() if name in facts.columns}


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value
