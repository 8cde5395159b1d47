"""Errors for values of a context: they name the feature and its rule, never the value."""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidInput, kind_of


def refusal(name: str, rule: str, value: Any, step: str, got: str | None = None) -> InvalidInput:
    """The error for a value that breaks the rule of its feature; ``got`` says how, if not by its
    kind."""
    return InvalidInput(f"feature {name!r} must be {rule}; got {got or kind_of(value)}. {step}")


def missing(name: str, rule: str) -> InvalidInput:
    """The error for None, NaN and their like in a feature that declares nothing for them."""
    return InvalidInput(
        f"feature {name!r} must be {rule}; got a missing value. "
        "Send a value, or declare the feature with stand_in=… or indicator=True."
    )
