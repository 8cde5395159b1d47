"""From the context of a request to features; a complaint tells the rule, never what was sent."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.plan import Plan


class Invalid(InvalidInput):
    """Invalid input with the field that is to blame."""

    def __init__(self, message: str, field: str | None) -> None:
        super().__init__(message)
        self.field = field


def features_of(plan: Plan, context: Any) -> np.ndarray[Any, Any]:
    """The features of one context (p,); a complaint tells the rule, never what was sent."""
    if not plan.features.is_single(context):
        raise Invalid("context must be a single one; it is not. Send one a request.", "context")
    try:
        features: np.ndarray[Any, Any] = plan.features.map(context)[0]
    except InvalidInput as error:
        # Errors end up in logs: what the core says was given may be private there.
        rule, given, _ = str(error).partition("; got ")
        said = f"{rule}; it is not. Send it as GET /v1/schema says." if given else str(error)
        raise Invalid(said, _field(plan, rule)) from None
    return features


def features_of_many(plan: Plan, contexts: list[Any]) -> list[np.ndarray[Any, Any] | Exception]:
    """The features of each context, or what is wrong with it; one that is wrong spoils no other."""
    if len(contexts) > 1:
        with suppress(InvalidInput):
            rows = plan.features.map(contexts)
            if len(rows) == len(contexts):  # not one context that was taken apart
                return list(rows)
    return [_features_or_error(plan, context) for context in contexts]


def _features_or_error(plan: Plan, context: Any) -> np.ndarray[Any, Any] | Exception:
    try:
        return features_of(plan, context)
    except Exception as error:
        return error


def _field(plan: Plan, rule: str) -> str:
    """Which part of a context a complaint is about."""
    names = [field.name for field in getattr(plan.features, "fields", ())]
    blamed = [name for name in names if rule.startswith(f"feature {name!r} ")]
    return ".".join(["context", *blamed])
