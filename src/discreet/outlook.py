"""What a plan's noise means for its predictions, from public numbers alone.

The noise of a predicted loss is comparable between plans: losses lie in [0, 1]. What it allows was
measured on 111 public sets. [docs/choosing-epsilon.md, "Before there are any data"]
"""

from __future__ import annotations

from discreet.advice import advise
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.plan import Plan

HELPFUL = 0.5
"""Below this noise the default was ahead of the best fixed action on half of the public sets."""
HOPELESS = 0.75
"""Above this noise it lost more than the best fixed action on average."""


def prediction_noise(plan: Plan, batches: int) -> list[float] | None:
    """The noise of a predicted loss after each batch; None where a plan's oracle cannot say."""
    mechanism = plan.mechanism
    if not isinstance(mechanism, PooledStatistics) or not plan.budget.private:
        return None
    schedule = plan.schedule
    return mechanism.prediction_noise(
        [schedule.length(batch) for batch in range(1, batches + 1) if schedule.fitted(batch)]
    )


def too_noisy(plan: Plan) -> str | None:
    """A sentence where the noise is likely to outweigh what can be learnt until the horizon."""
    if plan.horizon is None:
        return None
    noise = prediction_noise(plan, len(plan.schedule.lengths()))
    if noise is None or (noise and noise[-1] <= HOPELESS):
        return None
    at_end = f"a predicted loss has noise of ±{noise[-1]:.2g}" if noise else "nothing is released"
    return (
        f"{plan.budget.text} is unlikely to beat the best fixed action within {plan.horizon:,} "
        f"rounds: {at_end} in the end. Use a larger ε, fewer actions or columns, or more rounds."
    )


def warn_if_too_noisy(plan: Plan, stacklevel: int = 4) -> None:
    """Advise whoever makes something of the plan."""
    words = too_noisy(plan)
    if words is not None:
        advise("too-much-noise", words, stacklevel)
