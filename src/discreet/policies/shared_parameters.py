"""Parameters that several policies share, with the numbers that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.arrays.backend import per_run
from discreet.policies.allocation import Policy
from discreet.releases.policy_view import PolicyView
from discreet.types import Array
from discreet.validate import in_range, positive


@dataclass(frozen=True)
class GapWeight(Policy):
    """``scale`` γ0 and ``exponent`` ρ give the weight γ_m of a predicted gap in batch m."""

    scale: float = 1.0
    exponent: float = 0.5

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        in_range("exponent", self.exponent, 0.0, 10.0)

    def gap_weight(self, view: PolicyView, features: Array) -> Any:
        """γ_m = γ0 · max(1, Σ_{j<m} s_j·B_j)^ρ, frozen inside a batch; s_j is what release j
        still counts."""
        clock = float(max(1, view.remembered_rounds))
        return per_run(self.scale * clock**self.exponent, features)


@dataclass(frozen=True)
class ConfidenceWidth(Policy):
    """``width`` β gives the confidence widths β·r_a, with the released radii r_a."""

    width: float = 1.0
    uses_radii: ClassVar[bool] = True

    def __post_init__(self) -> None:
        in_range("width", self.width, 0.0, 1e12)

    def widths(self, view: PolicyView, features: Array) -> Array:
        """β·r_a: (..., n, p) -> (..., n, A)."""
        return per_run(self.width, features) * view.radii(features)
