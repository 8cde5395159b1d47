"""Privacy levels and durations in words, the same in commands, reports and pages."""

from __future__ import annotations

import math


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


def duration(seconds: float) -> str:
    """Three digits below a minute, whole seconds or minutes above; round an estimate first.

    >>> [duration(seconds) for seconds in (0.25, 40, 200, 7_500)]
    ['0.25 s', '40 s', '3 min 20 s', '2 h 5 min']
    """
    if round(seconds, 1) < 60:  # 59.97 would be written as 60 s
        return f"{max(0.0, seconds):.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
