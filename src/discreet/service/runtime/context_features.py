"""Turn the context of a request into features. Errors state the rule, never the private value."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.plan import Plan


class Invalid(InvalidInput):
    """Invalid input, and the field that breaks the rule."""

    def __init__(self, message: str, field: str | None) -> None:
        super().__init__(message)
        self.field = field


def features_of(plan: Plan, context: Any) -> np.ndarray[Any, Any]:
    """The features of one context (p,); an error states the rule, never the private value."""
    if not plan.features.is_single(context):
        raise Invalid("context must be one context; this is a list. Send one context.", "context")
    try:
        features: np.ndarray[Any, Any] = plan.features.map(context)[0]
    except InvalidInput as error:
        # Errors end up in logs, so the private value after "got" is left out.
        rule, given, _ = str(error).partition("; got ")
        broken = f"{rule}; this context breaks the rule. GET /v1/schema lists the rules."
        said = broken if given else str(error)
        raise Invalid(said, _field(plan, rule)) from None
    return features


def features_of_many(plan: Plan, contexts: list[Any]) -> list[np.ndarray[Any, Any] | Exception]:
    """The features of each context, or its error; an invalid context does not affect the others."""
    if len(contexts) > 1:
        with suppress(InvalidInput):
            rows = plan.features.map(contexts)
            if len(rows) == len(contexts):  # otherwise map() read the list as one context
                return list(rows)
    return [_features_or_error(plan, context) for context in contexts]


def _features_or_error(plan: Plan, context: Any) -> np.ndarray[Any, Any] | Exception:
    try:
        return features_of(plan, context)
    except Exception as error:
        return error


def _field(plan: Plan, rule: str) -> str:
    """The part of a context that an error is about."""
    names = [field.name for field in getattr(plan.contexts, "fields", ())]
    blamed = [name for name in names if rule.startswith(f"feature {name!r} ")]
    return ".".join(["context", *blamed])
