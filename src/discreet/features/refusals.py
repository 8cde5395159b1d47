"""What a refused value of a context is told, in the words of its own sender."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import InvalidInput

LONGEST = 80
"""Characters of a value that a message repeats."""


def shown(value: Any) -> str:
    """The value as a message repeats it: NumPy's wrapping left out, and cut if it is long."""
    try:
        plain = isinstance(value, np.generic) and value.dtype.kind != "M"
        text = repr(value.item() if plain else value)
    except Exception:  # for example a whole number with more digits than Python prints
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def refusal(name: str, rule: str, value: Any, step: str) -> InvalidInput:
    """The error for a value that breaks the rule of its feature."""
    return InvalidInput(f"feature {name!r} must be {rule}; got {shown(value)}. {step}")


def missing(name: str, rule: str, value: Any) -> InvalidInput:
    """The error for None, NaN and their like in a feature that declares nothing for them."""
    return InvalidInput(
        f"feature {name!r} must be {rule}; got {shown(value)}, which is a missing value. "
        "Send a value, or declare the feature with stand_in=… or indicator=True."
    )
