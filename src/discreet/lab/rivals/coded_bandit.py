"""P2B: people report a code, an action and a loss; rare codes are removed.

[Malekzadeh et al. 2020]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from discreet.lab.rivals.noise_clocks import BatchClock
from discreet.lab.rivals.rival_contract import CONSTANTS, RivalProblem, Scales
from discreet.privacy.budget import Budget
from discreet.validate import in_range, one_of, whole

PUBLISHED_THRESHOLD = 10
"""l in the paper's experiments; its δ = exp(−Ω(l(1 − q)²)) has no constant."""
LARGEST_SHARE = 0.75
"""With more reports, crowds would have to be far larger."""
EXACT_CROWDS = 8
"""Crowds of up to 8·l people are computed; larger ones are bounded."""


@dataclass(frozen=True)
class CodedBandit:
    """A context becomes one of ``codes`` public codes; everyone reports with probability q.

    A shuffler keeps a batch's reports that enough others share. LinUCB on codes:
    argmin_a (Σ y − ½n)/(1 + n) − β/√(1 + n), with n reports of code and action.

    ``published``: ε = log(q(2 − q)/(1 − q) + 1 − q) gives q, and a code needs l = 10 reports. It
    hides a code in its crowd; *actions and losses of a popular code pass as they are*, so a person
    with another loss than everybody else is seen with probability q.
    ``tight``: the whole report (code, action, loss) needs l companions, and q and l are exact for
    replacement of one record: q = min(¾, 1 − e^(−ε/2)), l from binomial tails.

    The codes are means of clusters, learnt from the very contexts (``coded_runs``): in deployment
    they would have to be public, and here they favour this rival.

    >>> sampling(Budget(math.log(2), 1e-5), "published")
    (0.5, 10)
    >>> share, companions = sampling(Budget(1.0, 1e-5), "tight")
    >>> round(share, 4), companions
    (0.3935, 38)

    Privacy: [docs/privacy/rivals.md, "Codes and crowds"]
    """

    width: float = 0.1
    codes: int = 16
    constants: str = "tight"
    batches: int = 16

    assumes: ClassVar[str] = "a trusted shuffler that counts; the server sees reports of crowds"

    def __post_init__(self) -> None:
        in_range("width", self.width, 0.0, math.inf)
        one_of("constants", self.constants, CONSTANTS)
        whole("codes", self.codes, 1)
        whole("batches", self.batches, 1)

    def clock(self, rounds: int) -> BatchClock:
        return BatchClock(math.ceil(rounds / self.batches), 1.0)

    def scales(self, problem: RivalProblem, budget: Budget) -> Scales:  # noqa: ARG002
        """Reports have no noise."""
        return Scales()


@lru_cache(maxsize=1024)
def sampling(budget: Budget, constants: str) -> tuple[float, int]:
    """q, with which a person reports, and l, how many alike reports pass; 1, 1 without privacy."""
    if not budget.private:
        return 1.0, 1
    if constants == "published":
        # q(2 − q)/(1 − q) + 1 − q is 1/(1 − q).
        return 1.0 - math.exp(-budget.epsilon), PUBLISHED_THRESHOLD
    share = min(LARGEST_SHARE, 1.0 - math.exp(-budget.epsilon / 2))
    low, high = 1, 2  # a higher threshold is a function of what a lower one shows, so δ falls
    while crowd_delta(share, high, budget.epsilon / 2) > budget.delta / 2:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = crowd_delta(share, middle, budget.epsilon / 2) <= budget.delta / 2
        low, high = (low, middle) if enough else (middle, high)
    return share, high


def crowd_delta(share: float, threshold: int, epsilon: float) -> float:
    """δ at ε of one more report in a crowd of any size, or one less: exact, by binomials.

    The shuffler shows Binomial(n, q) if that is at least l, else nothing. Where 1/(1 − q) ≤ e^ε a
    shown count k tells against ε only above c = 1 − (1 − q)e^−ε of n + 1, which a larger crowd
    reaches with probability at most exp(−(n + 1)·KL(c, q)).
    """
    largest = EXACT_CROWDS * threshold
    c = 1.0 - (1.0 - share) * math.exp(-epsilon)
    if (1.0 - share) * math.exp(epsilon) < 1.0 - 1e-9 or c <= share:
        return 1.0  # leaving is not covered
    divergence = c * math.log(c / share) + (1.0 - c) * math.log((1.0 - c) / (1.0 - share))
    exact = crowd_divergences(share, threshold, epsilon, np.arange(threshold - 1, largest))
    return max(float(exact.max()), math.exp(-(largest + 1) * divergence))


def crowd_divergences(
    share: float, threshold: int, epsilon: float, crowds: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Σ max(0, P − e^ε P') of crowds of n + 1 and n people, forth and back: (2, crowds)."""
    from scipy.stats import binom

    n, seen = crowds[:, None], np.arange(threshold, crowds.max() + 2)
    nothing = threshold - 1
    more, less = (
        np.hstack([binom.pmf(seen, people, share), binom.cdf(nothing, people, share)])
        for people in (n + 1, n)
    )
    grown = math.exp(epsilon)
    return np.stack(
        [np.maximum(one - grown * two, 0.0).sum(1) for one, two in ((more, less), (less, more))]
    )
