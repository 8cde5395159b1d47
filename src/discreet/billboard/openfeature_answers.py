"""Values, outcomes and errors as OpenFeature has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openfeature.exception import (
    GeneralError,
    InvalidContextError,
    OpenFeatureError,
    ParseError,
    ProviderFatalError,
    ProviderNotReadyError,
    TypeMismatchError,
)
from openfeature.track import TrackingEventDetails

from discreet.billboard.flag_decisions import ExperimentFlag, ServiceFacts
from discreet.billboard.transport import UNREADABLE
from discreet.errors import DiscreetError, InvalidInput, ServiceError


def outcome_of(facts: ServiceFacts | None, details: TrackingEventDetails) -> dict[str, Any]:
    """``loss`` or ``reward`` of the details, or their value, as the experiment hears it."""
    named: dict[str, Any] = {
        word: details.attributes[word] for word in ("loss", "reward") if word in details.attributes
    }
    if named or details.value is None or facts is None:
        return named
    return {facts.outcome: details.value}


def typed_value(flag: ExperimentFlag, action: int | str, typed: Callable[[Any], Any]) -> Any:
    value = typed(flag.value(action))
    if value is None:
        raise TypeMismatchError("flag must be evaluated as the type of its values; it is not.")
    return value


def as_boolean(value: Any) -> Any:
    return value if isinstance(value, bool) else None


def as_text(value: Any) -> Any:
    return value if isinstance(value, str) else None


def as_integer(value: Any) -> Any:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_number(value: Any) -> Any:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def as_object(value: Any) -> Any:
    return value if isinstance(value, (dict, list)) else None


def is_refused(error: DiscreetError) -> bool:
    return not isinstance(error, ServiceError) or error.status in (401, 403)


def start_error(name: str, error: DiscreetError) -> OpenFeatureError:
    """Fatal where only an operator can help: a key that is refused, values that are missing."""
    kind = ProviderFatalError if is_refused(error) else ProviderNotReadyError
    return kind(f"flag {name!r}: {error}")


def evaluation_error(error: Exception) -> OpenFeatureError:
    """What an application is told; OpenFeature returns its default value."""
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
    said = error.code or error.status or "no answer"
    return GeneralError(f"experiment must decide; it did not ({said}).")
