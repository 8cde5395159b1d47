"""What a mechanism is calibrated for, beside the budget."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.privacy.budget import ONCE, Participation


@dataclass(frozen=True)
class Problem:
    """The public facts on which sensitivities and noise depend.

    ``p`` features (bias included), ``feedback`` "bandit" or "full", ``losses`` "general" or
    "one_label", and ``radii`` where the policy asks for confidence radii, which need a Gram.
    The budget is for one person, who takes part as ``participation`` says: a mechanism's event is
    that of one record in one release, small enough that all of a person's records cost the budget.
    ``joint`` says that rows are features of a context and an action together, in one block.
    ``half_life`` is for oracles that pool releases: after so many more a release counts half.

    >>> Problem(n_actions=3, p=11, feedback="full").heard
    3
    """

    n_actions: int
    p: int
    feedback: str = "bandit"
    losses: str = "general"
    radii: bool = False
    participation: Participation = ONCE
    half_life: int | None = None
    joint: bool = False

    @property
    def heard(self) -> int:
        """How many losses one record tells: 1, or A with full feedback."""
        return self.n_actions if self.feedback == "full" else 1
