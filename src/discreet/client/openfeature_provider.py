"""An OpenFeature provider: an evaluation is a decision, a tracked event is its loss or reward."""

# ruff: noqa: ARG001, ARG002  (OpenFeature itself returns the default value when a method here raises)

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from openfeature.evaluation_context import EvaluationContext
from openfeature.event import ProviderEvent, ProviderEventDetails
from openfeature.exception import (
    FlagNotFoundError,
    GeneralError,
    InvalidContextError,
    OpenFeatureError,
    ParseError,
    ProviderFatalError,
    ProviderNotReadyError,
    TargetingKeyMissingError,
    TypeMismatchError,
)
from openfeature.flag_evaluation import FlagResolutionDetails, Reason
from openfeature.provider import AbstractProvider, Metadata
from openfeature.track import TrackingEventDetails

from discreet.client.http_client import Client, Decision, unavailable
from discreet.client.transport import UNREADABLE
from discreet.errors import DiscreetError, InvalidInput, ServiceError
from discreet.types import JsonMapping, JsonObject

__all__ = ["DiscreetProvider", "ExperimentFlag"]
LOG = logging.getLogger("discreet.openfeature")
REMEMBERED = 100_000
"""People whose decision a process remembers; the one stored first is forgotten first."""
WAITING = 10_000
"""Outcomes that may wait to be sent; more are dropped, so that memory stays bounded."""
VECTOR = "features"
"""The attribute that holds the context where it is a list of numbers."""
Given: TypeAlias = EvaluationContext | None
Kinds = tuple[type[Any], ...]
"""Classes of the values of a type; a truth value is no number."""


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

    def value(self, action: int | str, kinds: Kinds) -> Any:
        """Return the value of an action, which must have the requested type."""
        value: Any = action if self.values is None else self.values[action]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise TypeMismatchError("flag must be evaluated as the type of its values; it is not.")
        return float(value) if float in kinds else value


class ServiceFacts(NamedTuple):
    """Status and schema of a service, as far as its callers need them."""

    release: int
    by_user: bool
    columns: frozenset[str] | None
    """The names of a context's columns; None if it is a list of numbers."""
    actions: tuple[int | str, ...]
    outcome: str

    @classmethod
    def of(cls, client: Client) -> ServiceFacts:
        status, schema = client.status(), client.schema()
        try:
            features = schema["features"]
            features = features if "fields" in features else features.get("context", {})
            columns = frozenset(each["name"] for each in features.get("fields", ()))
            return cls(
                status["serving"],
                status["unit"] == "user",
                columns if "fields" in features else None,
                tuple(schema["actions"] or range(schema["n_actions"])),
                "reward" if schema["outcome"]["kind"] == "Reward" else "loss",
            )
        except (LookupError, TypeError, AttributeError):
            raise ServiceError(
                "status and schema must be those of discreet serve; these are not. Check the "
                "address.",
                code=UNREADABLE,
            ) from None

    def context(self, attributes: Mapping[str, object]) -> object:
        """Return the part of an application's context that the experiment needs."""
        if self.columns is None:
            return attributes.get(VECTOR)
        return {
            name: value.isoformat() if isinstance(value, date) else value
            for name, value in attributes.items()
            if name in self.columns
        }


class FlagDecisions:
    """Decisions of one flag, one for each person and release, and facts of the service."""

    def __init__(self, name: str, flag: ExperimentFlag) -> None:
        self.name, self.flag = name, flag
        self.client = Client(flag.url, flag.key, deadline=flag.deadline)
        self.facts: ServiceFacts | None = None
        self.refreshed, self.state = time.monotonic(), ProviderEvent.PROVIDER_READY
        self._held: OrderedDict[str, tuple[Decision, int]] = OrderedDict()
        self._lock, self.refreshing = threading.Lock(), threading.Lock()

    def refresh(self) -> bool:
        """Fetch the served release; return whether it is another than before."""
        before, facts = self.facts, ServiceFacts.of(self.client)
        if self.flag.values is not None and not set(facts.actions) <= set(self.flag.values):
            raise InvalidInput(
                f"values of flag {self.name!r} must have every action of the experiment, "
                f"{', '.join(map(str, facts.actions))}; some are missing. Add them."
            )
        self.facts = facts
        return before is not None and before.release != facts.release

    def decide(
        self, facts: ServiceFacts, person: str, attributes: Mapping[str, object]
    ) -> tuple[Decision, Reason]:
        """The decision for a person, the same until a release comes, and its reason: requested
        now, remembered, or remembered from an older release while the service does not answer."""
        held, release = self._held.get(person, (None, -1))
        if held is not None and release == facts.release:
            return held, Reason.CACHED
        try:
            decision = self._requested(facts, person, facts.context(attributes))
        except ServiceError as error:
            if held is not None and unavailable(error):
                return held, Reason.STALE
            raise
        with self._lock:
            self._held[person] = decision, facts.release
            self._held.move_to_end(person)
            if len(self._held) > REMEMBERED:
                self._held.popitem(last=False)
        return decision, Reason.SPLIT

    def observe(self, person: str, outcome: JsonMapping) -> None:
        """Report the outcome of the last decision for a person, if it counts."""
        decision, _ = self._held.get(person, (None, -1))
        if decision is not None and decision.stored:
            self.client.observe(decision, **outcome)

    def _requested(self, facts: ServiceFacts, person: str, context: object) -> Decision:
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


def _resolver(*kinds: type) -> Callable[..., FlagResolutionDetails[Any]]:
    """Return a method of the provider that evaluates flags whose values have these classes."""

    def resolve(
        self: DiscreetProvider,
        flag_key: str,
        default_value: object,
        evaluation_context: Given = None,
    ) -> FlagResolutionDetails[Any]:
        return self._resolve(flag_key, evaluation_context, kinds)

    return resolve


def _in_thread(*kinds: type) -> Callable[..., Coroutine[Any, Any, FlagResolutionDetails[Any]]]:
    """Return the same method for programs with an event loop, which it does not block."""

    async def run(*given: object, **named: object) -> FlagResolutionDetails[Any]:
        return await asyncio.to_thread(_resolver(*kinds), *given, **named)

    return run


def is_refused(error: DiscreetError) -> bool:
    return not isinstance(error, ServiceError) or error.status in (401, 403)


def evaluation_error(error: Exception) -> OpenFeatureError:
    """The error that an application gets; OpenFeature returns its default value."""
    # Privacy: the words of the service may repeat a value, and applications log these messages.
    # [docs/privacy/threat-model.md, "What stays inside"]
    if isinstance(error, InvalidInput):
        return InvalidContextError("attributes must be numbers, text and lists; some are not.")
    if not isinstance(error, ServiceError) or error.code == UNREADABLE:
        return ParseError("answer must be that of discreet serve; it is not.")
    if error.status == 422:
        return InvalidContextError(
            f"context must fit the schema of the experiment; {error.field or 'a field'} does not."
        )
    reason = error.code or error.status or "no answer"
    return GeneralError(f"experiment must decide; it did not ({reason}).")


class DiscreetProvider(AbstractProvider):
    """Flags that experiments of ``discreet serve`` decide.

    ``flags`` maps each flag to its experiment. A person, named by the targeting key, keeps
    the decision until a new release is served. The provider checks for one at most every
    ``refresh`` seconds. Background threads do this and send outcomes.
    """

    def __init__(self, flags: Mapping[str, ExperimentFlag], *, refresh: float = 60.0) -> None:
        super().__init__()
        self._flags = {name: FlagDecisions(name, flag) for name, flag in flags.items()}
        self._refresh = refresh
        self._background = ThreadPoolExecutor(4, "discreet-openfeature")
        self._places = threading.BoundedSemaphore(WAITING)

    def get_metadata(self) -> Metadata:
        return Metadata(name="discreet")

    def initialize(self, evaluation_context: EvaluationContext) -> None:
        """Fetch the facts of every experiment; fail if one does not answer."""
        for each in self._flags.values():
            if each.flag.fixed is None:
                each.state = ProviderEvent.PROVIDER_ERROR
                try:
                    each.refresh()
                except DiscreetError as error:  # fatal where only an operator can help
                    kind = ProviderFatalError if is_refused(error) else ProviderNotReadyError
                    raise kind(f"flag {each.name!r}: {error}") from error
                each.state = ProviderEvent.PROVIDER_READY

    def shutdown(self) -> None:
        """Send the outcomes that wait, and close the connections."""
        self._background.shutdown(wait=True)
        for each in self._flags.values():
            each.client.close()

    resolve_boolean_details = _resolver(bool)
    resolve_string_details = _resolver(str)
    resolve_integer_details = _resolver(int)
    resolve_float_details = _resolver(int, float)
    resolve_object_details = _resolver(dict, list)
    resolve_boolean_details_async = _in_thread(bool)
    resolve_string_details_async = _in_thread(str)
    resolve_integer_details_async = _in_thread(int)
    resolve_float_details_async = _in_thread(int, float)
    resolve_object_details_async = _in_thread(dict, list)

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: Given = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Report an outcome for the flags of this event; returns at once.

        It is ``loss`` or ``reward`` of the details, or their value.
        """
        person = None if evaluation_context is None else evaluation_context.targeting_key
        if person is None or tracking_event_details is None:
            return
        value, named = tracking_event_details.value, tracking_event_details.attributes
        for each in self._flags.values():
            outcome: JsonObject = {
                word: named[word] for word in ("loss", "reward") if word in named
            }
            if not outcome and value is not None and each.facts is not None:
                outcome = {each.facts.outcome: value}
            if tracking_event_name == (each.flag.event or each.name) and outcome:
                self._send(partial(each.observe, person, outcome))

    def _resolve(self, name: str, given: Given, kinds: Kinds) -> FlagResolutionDetails[Any]:
        each = self._flags.get(name)
        if each is None:
            raise FlagNotFoundError(f"flag must be one of the provider's; {name!r} is not.")
        flag = each.flag
        if flag.fixed is not None:
            value = flag.value(flag.fixed, kinds)
            return FlagResolutionDetails(value, reason=Reason.STATIC, variant=str(flag.fixed))
        now, facts = time.monotonic(), each.facts
        if now - each.refreshed >= (1.0 if facts is None else self._refresh):
            each.refreshed = now
            self._send(partial(self._refresh_flag, each))
        if facts is None:
            raise ProviderNotReadyError("experiment must have answered once; it has not yet.")
        for action in facts.actions:  # before a slot is taken
            flag.value(action, kinds)
        if given is None or given.targeting_key is None:
            raise TargetingKeyMissingError("context must have a targeting key; it has none.")
        try:
            decision, reason = each.decide(facts, given.targeting_key, given.attributes)
        except (DiscreetError, LookupError) as error:  # a lookup fails in an answer of others
            raise evaluation_error(error) from None
        return FlagResolutionDetails(
            flag.value(decision.action, kinds),
            reason=reason,
            variant=str(decision.action),
            flag_metadata={"release": decision.release, "stored": decision.stored},
        )

    def _refresh_flag(self, each: FlagDecisions) -> None:
        """Check for a newer release, one request at a time: no older answer comes last."""
        if not each.refreshing.acquire(blocking=False):
            return
        changed, state, message = False, ProviderEvent.PROVIDER_READY, None
        try:
            try:
                changed = each.refresh()
            except DiscreetError as error:
                refused = each.facts is None or is_refused(error)
                state = ProviderEvent.PROVIDER_ERROR if refused else ProviderEvent.PROVIDER_STALE
                message = f"flag {each.name!r}: {error}"
            before, each.state = each.state, state
            details = ProviderEventDetails(flags_changed=[each.name], message=message)
            states = {other.state for other in self._flags.values()}
            if state is not before and (message or states == {state}):
                self.emit(state, details)
            if changed:
                self.emit_provider_configuration_changed(details)
        finally:
            each.refreshing.release()

    def _send(self, work: Callable[[], object]) -> None:
        if not self._places.acquire(blocking=False):
            LOG.warning("too many outcomes wait to be sent: one was dropped")
            return

        def run() -> None:
            try:
                work()
            except ServiceError as error:  # its message may repeat what was sent
                LOG.warning("an outcome was not stored: %s", error.code or "no answer")
            except InvalidInput:
                LOG.warning("an outcome was not stored: not a finite number")
            finally:
                self._places.release()

        try:
            self._background.submit(run)
        except RuntimeError:  # shut down
            self._places.release()
