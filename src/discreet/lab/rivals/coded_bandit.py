"""P2B: people report a code, an action and a loss; rare codes are removed.

[Malekzadeh et al. 2020]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.arrays.backend import as_like, namespace
from discreet.lab.rivals.rival_contract import BatchClock, Rival, RivalProblem, Scales
from discreet.policies.allocation import is_first_minimum
from discreet.privacy.budget import Budget
from discreet.types import Array, NumpyArray

PUBLISHED_THRESHOLD = 10
"""l in the paper's experiments; its δ = exp(−Ω(l(1 − q)²)) has no constant."""
LARGEST_SHARE = 0.75
"""With more reports, crowds would have to be far larger."""
EXACT_CROWDS = 8
"""Crowds of up to 8·l people are computed; larger ones are bounded."""


@dataclass(frozen=True)
class CodedBandit(Rival):
    """A context becomes one of ``codes`` public codes; everyone reports with probability q.

    A shuffler keeps a batch's reports that enough others share. LinUCB on codes:
    argmin_a (Σ y − ½n)/(1 + n) − β/√(1 + n), with n reports of code and action.

    ``published``: ε = log(q(2 − q)/(1 − q) + 1 − q) gives q, and a code needs l = 10 reports. It
    hides a code in its crowd; *actions and losses of a popular code pass as they are*, so a person
    with another loss than everybody else is seen with probability q.
    ``tight``: the whole report (code, action, loss) needs l equal ones, and q and l are exact for
    replacement of one record: q = min(¾, 1 − e^(−ε/2)), l from binomial tails.

    The codes are means of clusters of public contexts. Here these are rows of the data set itself,
    the same for every seed (``code_centres``), which favours this rival.

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

    assumes = "a trusted shuffler that counts; the server sees reports of crowds"

    def clock(self, rounds: int) -> BatchClock:
        return BatchClock(math.ceil(rounds / self.batches), 1.0)

    def private_scales(self, problem: RivalProblem, budget: Budget) -> Scales:  # noqa: ARG002
        """Reports have no noise."""
        return Scales()


@lru_cache(maxsize=1024)
def sampling(budget: Budget, constants: str) -> tuple[float, int]:
    """Return q, the probability of a report, and l, the number of equal reports that pass.

    Without privacy both are 1.
    """
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
    """Return δ at ε of one more or one less report in a crowd of any size: exact, by binomials.

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
    share: float, threshold: int, epsilon: float, crowds: NumpyArray
) -> NumpyArray:
    """Return Σ max(0, P − e^ε P') of crowds of n + 1 and n people, both ways: (2, crowds)."""
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


STEPS = 10
LEARNT_FROM = 4096
"""Number of rows from which the codes are learnt."""


def passed(reports: Array, least: Array, whole: Array) -> Array:
    """Return counts (S, R, A, K, 2) that the shuffler passes: whole reports, or all of a code."""
    xp = namespace(reports)
    alike = reports >= least[..., None]
    crowd = reports.sum(-1).sum(-2)[..., None, :, None] >= least[..., None]
    through = xp.where(whole[..., None] > 0.5, alike, crowd)
    return xp.where(through, reports, xp.zeros_like(reports))


def code_centres(contexts: NumpyArray, codes: int) -> NumpyArray:
    """Return at most ``codes`` centres (K, p) by Lloyd's algorithm, on rows drawn at random.

    They depend on the data set (T, p) alone: codes are public, so no seed may change them.
    """
    order = np.random.default_rng(0).permutation(len(contexts))[:LEARNT_FROM]
    rows = contexts[order].astype(np.float64)
    centres = rows[:codes]
    for _ in range(STEPS):
        nearest = np.argmin((centres**2).sum(1) - 2.0 * rows @ centres.T, axis=1)
        member = nearest[:, None] == np.arange(len(centres))
        size = member.sum(0)[:, None]
        centres = np.where(size > 0, member.T.astype(float) @ rows / np.maximum(size, 1), centres)
    return np.asarray(centres)


def coded(features: Array, centres: NumpyArray) -> Array:
    """Return rows (S, 1, T, p) as indicators of the nearest of K centres: (S, 1, T, K)."""
    near = as_like(centres, features)
    distance = (near**2).sum(-1) - 2.0 * features @ near.mT
    return namespace(features).astype(is_first_minimum(distance), features.dtype)
