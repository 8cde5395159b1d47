"""What a plan costs a machine: the size of a release, and the time and memory of a fit.

Estimates from public numbers alone. Their constants were measured on one core of an ordinary
machine, and say what to expect, not what is guaranteed. [docs/performance.md, "Large plans"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from discreet.text import duration

if TYPE_CHECKING:
    from discreet.plan.plan import Plan

TEXT = 18
"""Bytes of a number in a document: sixteen digits, a sign and a comma."""
DRAW = 2e-5
"""Seconds for one number of a fit with exact noise."""
FLOPS = 1e10
"""Floating-point operations in a second, in products of matrices."""
HELD = 200
"""Bytes of memory for each number while a release is fitted and written."""
KEPT = 24
"""Bytes of memory for each number of an earlier release, which later fits read."""
LARGE, SLOW = 5e6, 10.0
"""Bytes of a document, and seconds of a fit, from which a plan is called large."""


class PlanSize(NamedTuple):
    """Estimates for one release; seconds and memory are None where they are not known."""

    document: float
    seconds: float | None
    seconds_each: float | None
    memory: float | None
    memory_each: float | None

    @property
    def text(self) -> str:
        """The estimates in words."""
        said = f"A release is a document of about {_bytes(self.document)}"
        if self.seconds is None or self.seconds_each is None or self.memory is None:
            return f"{said}."
        time, memory = duration(_rounded(max(0.1, self.seconds))), _bytes(self.memory)
        words = f"{said}. Its fit takes about {time} on one core, and {memory} of memory."
        if self.warning is not None and self.memory_each is not None:
            slower, wider = duration(_rounded(self.seconds_each)), _bytes(self.memory_each)
            words += f" Each earlier release adds {slower} and {wider}."
        return words

    @property
    def warning(self) -> str | None:
        """A sentence where a plan is so large that documents and fits will be a burden."""
        if self.document < LARGE and (self.seconds or 0.0) < SLOW:
            return None
        return (
            f"this plan is large: documents of about {_bytes(self.document)}"
            + (f" and fits of about {duration(_rounded(self.seconds))}" if self.seconds else "")
            + ". They grow with actions × features². Hash wide categories into fewer slots, leave "
            "out columns, or give actions features of their own with a Catalogue."
        )


def plan_size(plan: Plan) -> PlanSize:
    """The estimates for a plan."""
    problem, pooling, p = plan.problem, plan.pooling, plan.features.p
    blocks = 1 if problem.feedback == "full" else plan.blocks
    triangles, weights = blocks * p * (p + 1) // 2, plan.blocks * p
    if pooling is None:
        numbers = weights + (blocks * p * p if problem.radii else 0)
        return PlanSize(float(TEXT * numbers), None, None, None, None)
    matrices = 2 * p * p if pooling.stretched else 0
    numbers = triangles + 2 * weights + matrices + (blocks * p * p if problem.radii else 0)
    drawn = triangles + weights if plan.budget.private else 0
    changed = 4.0 * blocks * p**3 / FLOPS if pooling.stretched else triangles / FLOPS
    seconds = DRAW * drawn + 20.0 * blocks * p**3 / FLOPS
    held = float(HELD * numbers), float(KEPT * numbers)
    return PlanSize(float(TEXT * numbers), seconds, changed, *held)


def _rounded(value: float) -> float:
    """To two digits: an estimate is no better."""
    return float(f"{value:.2g}")


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{_rounded(count / size):g} {unit}"
    return f"{max(1.0, _rounded(count)):g} bytes"
