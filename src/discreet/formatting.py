"""Privacy levels and durations in words, the same in commands, reports and pages."""

from __future__ import annotations

import math
from collections.abc import Sequence


def epsilon_text(epsilon: float, digits: int = 4) -> str:
    """``0.1``, ``1.234`` or ``∞``.

    >>> epsilon_text(1.0), epsilon_text(1.23456), epsilon_text(math.inf)
    ('1', '1.235', '∞')
    """
    return "∞" if math.isinf(epsilon) else f"{epsilon:.{digits}g}"


def guarantee_text(epsilon: float, delta: float) -> str:
    """ε and δ together; a δ of zero is not written.

    >>> guarantee_text(1.0, 1e-5), guarantee_text(2.0, 0.0), guarantee_text(math.inf, 0.0)
    ('ε = 1, δ = 1e-05', 'ε = 2', 'ε = ∞ (no privacy)')
    """
    if math.isinf(epsilon):
        return "ε = ∞ (no privacy)"
    return f"ε = {epsilon_text(epsilon)}" + (f", δ = {delta:g}" if delta else "")


def about(count: float) -> str:
    """An estimated count, to two digits.

    >>> about(235_608), about(7)
    ('240,000', '7')
    """
    return f"{float(f'{count:.2g}'):,.0f}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names one after the other; of a long list the first few, and how many more there are.

    >>> listed(["none", "mail"]), listed([f"film {k}" for k in range(1_000)], 2)
    ('none, mail', 'film 0, film 1 and 998 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def duration(seconds: float) -> str:
    """Three digits below a minute, whole seconds or minutes above; round an estimate first.

    >>> [duration(seconds) for seconds in (0.25, 40, 200, 7_500)]
    ['0.25 s', '40 s', '3 min 20 s', '2 h 5 min']
    """
    if round(seconds, 1) < 60:  # 59.97 would be written as 60 s
        return f"{max(0.0, seconds):.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
