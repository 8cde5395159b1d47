"""What a privacy curve says, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.text import epsilon_text

if TYPE_CHECKING:
    from discreet.simulate.privacy_curve import PrivacyCurve


def verdict(curve: PrivacyCurve) -> str:
    """From which ε on the plan beats the best fixed action, and what that ε costs."""
    first = curve.helps_from
    rounds = f"{curve.rounds:,} rounds"
    finite = [epsilon for epsilon in curve.epsilons if math.isfinite(epsilon)]
    if first is None:
        reason = "not even ε = ∞" if math.isinf(curve.epsilons[-1]) else "not even the largest"
        return (
            f"The set is too small for any ε to help: on {rounds} no interval lies below the best "
            f"fixed action, {reason}. Take more rounds, fewer columns, or better scaled ones."
        )
    if math.isinf(first) and finite:
        return (
            f"The set is too small for any of these ε: on {rounds} only ε = ∞ beats the best fixed "
            "action, so there is something to learn, but not with this noise. Take more rounds or "
            "a larger ε."
        )
    said = f"From ε = {epsilon_text(first)} on, the plan beats the best fixed action on {rounds}"
    points = {point.epsilon: point for point in curve.table}
    if math.inf in points and math.isfinite(first):
        outcome = curve.plan.outcome
        change = outcome.difference_of(points[first].loss - points[math.inf].loss)
        compared = f"{abs(change):.2g} {'more' if change > 0 else 'less'} {outcome.word}"
        said += f"; ε = {epsilon_text(first)} has {compared} than no privacy"
    return f"{said}."
