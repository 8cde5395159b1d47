"""An OpenFeature provider: an evaluation is a decision, a tracked event is its loss or reward."""

# ruff: noqa: ARG001, ARG002  (OpenFeature itself returns the default value when a method here raises)

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

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

from discreet.client.flag_decisions import (
    AGAIN,
    NEW,
    STALE,
    ExperimentFlag,
    FlagDecisions,
    ServiceFacts,
)
from discreet.client.transport import UNREADABLE
from discreet.errors import DiscreetError, InvalidInput, ServiceError
from discreet.types import JsonObject


def outcome_of(facts: ServiceFacts | None, details: TrackingEventDetails) -> JsonObject:
    """``loss`` or ``reward`` of the details, or their value in the outcome of the experiment."""
    named: JsonObject = {
        word: details.attributes[word] for word in ("loss", "reward") if word in details.attributes
    }
    if named or details.value is None or facts is None:
        return named
    return {facts.outcome: details.value}


Typed = Callable[[object], Any]
"""Function that returns a value of one type, and None for a value of another."""


def typed_value(flag: ExperimentFlag, action: int | str, typed: Typed) -> Any:
    """Return the value of an action, which must have the requested type."""
    value = typed(flag.value(action))
    if value is None:
        raise TypeMismatchError("flag must be evaluated as the type of its values; it is not.")
    return value


def _only(*kinds: type) -> Typed:
    """Return the function for values of these classes; a truth value is no number."""

    def typed(value: object) -> Any:
        wrong = isinstance(value, bool) and bool not in kinds
        return value if isinstance(value, kinds) and not wrong else None

    return typed


def _number(value: object) -> Any:
    number = _only(int, float)(value)
    return None if number is None else float(number)


def _resolver(typed: Typed) -> Callable[..., FlagResolutionDetails[Any]]:
    """Return a method of the provider that evaluates flags of one type."""

    def resolve(
        self: DiscreetProvider,
        flag_key: str,
        default_value: object,
        evaluation_context: Given = None,
    ) -> FlagResolutionDetails[Any]:
        return self._resolve(flag_key, evaluation_context, typed)

    return resolve


def _resolver_in_thread(
    typed: Typed,
) -> Callable[..., Coroutine[Any, Any, FlagResolutionDetails[Any]]]:
    """Return the same method for programs with an event loop, which it does not block."""
    resolve = _resolver(typed)

    async def run(*given: object, **named: object) -> FlagResolutionDetails[Any]:
        return await asyncio.to_thread(resolve, *given, **named)

    return run


def is_refused(error: DiscreetError) -> bool:
    return not isinstance(error, ServiceError) or error.status in (401, 403)


def start_error(name: str, error: DiscreetError) -> OpenFeatureError:
    """Fatal where only an operator can help: a key that is refused, values that are missing."""
    kind = ProviderFatalError if is_refused(error) else ProviderNotReadyError
    return kind(f"flag {name!r}: {error}")


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


__all__ = ["DiscreetProvider", "ExperimentFlag"]
LOG = logging.getLogger("discreet.openfeature")
WAITING = 10_000
"""Outcomes that may wait to be sent; more are dropped, so that memory stays bounded."""
REASONS = {NEW: Reason.SPLIT, AGAIN: Reason.CACHED, STALE: Reason.STALE}
Given: TypeAlias = EvaluationContext | None


class DiscreetProvider(AbstractProvider):
    """Flags that experiments of ``discreet serve`` decide.

    ``flags`` maps each flag to its experiment. A person, named by the targeting key, keeps
    the decision until a new release is served. The provider looks for one at most every
    ``refresh`` seconds. Background threads do this and send outcomes.
    """

    def __init__(self, flags: Mapping[str, ExperimentFlag], *, refresh: float = 60.0) -> None:
        super().__init__()
        self._flags = {name: FlagDecisions(name, flag) for name, flag in flags.items()}
        self._refresh, self._looked = refresh, dict.fromkeys(flags, time.monotonic())
        self._state = dict.fromkeys(flags, ProviderEvent.PROVIDER_READY)
        self._background = ThreadPoolExecutor(4, "discreet-openfeature")
        self._places = threading.BoundedSemaphore(WAITING)

    def get_metadata(self) -> Metadata:
        return Metadata(name="discreet")

    def initialize(self, evaluation_context: EvaluationContext) -> None:
        """Fetch the facts of every experiment; fail if one does not answer."""
        for each in self._flags.values():
            if each.flag.fixed is None:
                self._state[each.name] = ProviderEvent.PROVIDER_ERROR
                try:
                    each.look()
                except DiscreetError as error:
                    raise start_error(each.name, error) from error
                self._state[each.name] = ProviderEvent.PROVIDER_READY

    def shutdown(self) -> None:
        """Send the outcomes that wait, and close the connections."""
        self._background.shutdown(wait=True)
        for each in self._flags.values():
            each.client.close()

    resolve_boolean_details = _resolver(_only(bool))
    resolve_string_details = _resolver(_only(str))
    resolve_integer_details = _resolver(_only(int))
    resolve_float_details = _resolver(_number)
    resolve_object_details = _resolver(_only(dict, list))
    resolve_boolean_details_async = _resolver_in_thread(_only(bool))
    resolve_string_details_async = _resolver_in_thread(_only(str))
    resolve_integer_details_async = _resolver_in_thread(_only(int))
    resolve_float_details_async = _resolver_in_thread(_number)
    resolve_object_details_async = _resolver_in_thread(_only(dict, list))

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: Given = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Report an outcome for the flags of this event; returns at once."""
        person = None if evaluation_context is None else evaluation_context.targeting_key
        if person is None or tracking_event_details is None:
            return
        for each in self._flags.values():
            outcome = outcome_of(each.facts, tracking_event_details)
            if tracking_event_name == (each.flag.event or each.name) and outcome:
                self._send(partial(each.observe, person, outcome))

    def _resolve(self, name: str, given: Given, typed: Typed) -> FlagResolutionDetails[Any]:
        each = self._flags.get(name)
        if each is None:
            raise FlagNotFoundError(f"flag must be one of the provider's; {name!r} is not.")
        flag = each.flag
        if flag.fixed is not None:
            value = typed_value(flag, flag.fixed, typed)
            return FlagResolutionDetails(value, reason=Reason.STATIC, variant=str(flag.fixed))
        self._look_again(each)
        if each.facts is None:
            raise ProviderNotReadyError("experiment must have answered once; it has not yet.")
        for action in each.facts.actions:  # before a slot is taken
            typed_value(flag, action, typed)
        if given is None or given.targeting_key is None:
            raise TargetingKeyMissingError("context must have a targeting key; it has none.")
        try:
            decision, how = each.decide(each.facts, given.targeting_key, given.attributes)
        except (DiscreetError, LookupError) as error:  # a lookup fails in an answer of others
            raise evaluation_error(error) from None
        return FlagResolutionDetails(
            typed_value(flag, decision.action, typed),
            reason=REASONS[how],
            variant=str(decision.action),
            flag_metadata={"release": decision.release, "stored": decision.stored},
        )

    def _look_again(self, each: FlagDecisions) -> None:
        """Look for a newer release in the background, if it is time."""
        now = time.monotonic()
        wait = 1.0 if each.facts is None else self._refresh
        if now - self._looked[each.name] >= wait:
            self._looked[each.name] = now
            self._send(partial(self._look, each))

    def _look(self, each: FlagDecisions) -> None:
        if each.looking.acquire(blocking=False):  # one at a time: no older answer comes last
            try:
                self._look_once(each)
            finally:
                each.looking.release()

    def _look_once(self, each: FlagDecisions) -> None:
        changed, state, message = False, ProviderEvent.PROVIDER_READY, None
        try:
            changed = each.look()
        except DiscreetError as error:
            refused = each.facts is None or is_refused(error)
            state = ProviderEvent.PROVIDER_ERROR if refused else ProviderEvent.PROVIDER_STALE
            message = f"flag {each.name!r}: {error}"
        before, self._state[each.name] = self._state[each.name], state
        if state is not before and (message or set(self._state.values()) == {state}):
            self.emit(state, ProviderEventDetails(flags_changed=[each.name], message=message))
        if changed:
            self.emit_provider_configuration_changed(
                ProviderEventDetails(flags_changed=[each.name])
            )

    def _send(self, work: Callable[[], object]) -> None:
        """Run ``work`` in the background."""
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
