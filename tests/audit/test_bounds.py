"""Lower bounds from hits: never too large more often than stated, and as large as theory says."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from discreet import Budget
from discreet.audit.finding import (
    Hits,
    clopper_pearson,
    epsilon_bound,
    gaussian_epsilon,
    gaussian_hits,
    measured_epsilon,
    shift_bound,
    unlucky,
)
from tolerances import EXACT

SHIFTS = {1.0: 0.26805, 2.0: 0.50155, 4.0: 0.92493, 8.0: 1.66603}


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("alpha", [0.05, 1e-3])
def test_limits_of_a_rate_err_as_rarely_as_stated(rate, alpha):
    """Exactly: the probability of all counts whose limits miss the rate."""
    n = 60
    counts = np.arange(n + 1)
    law = binom.pmf(counts, n, rate)
    limits = np.array([clopper_pearson(int(k), n, alpha) for k in counts])
    assert law[limits[:, 0] > rate + EXACT].sum() <= alpha
    assert law[limits[:, 1] < rate - EXACT].sum() <= alpha


@pytest.mark.parametrize(
    ("first", "second", "gaussian"),
    [
        (0.27, 0.73, False),
        (0.05, 0.05 * math.e, False),
        (0.5, 0.5, False),
        (norm.cdf(-0.45), norm.cdf(0.45), True),
    ],
)
def test_a_bound_exceeds_the_truth_as_rarely_as_stated(first, second, gaussian):
    n, alpha = 40, 0.05
    truth = max(math.log(second / first), math.log((1 - first) / (1 - second)))
    law = np.outer(*(binom.pmf(range(n + 1), n, rate) for rate in (first, second)))
    wrong = 0.0
    for (k, m), chance in np.ndenumerate(law):
        hits = Hits(k, m, n)
        too_large = epsilon_bound(hits, 0.0, alpha) > truth + EXACT
        wrong += chance * (shift_bound(hits, alpha) > 0.9 if gaussian else too_large)
    assert wrong <= alpha


@pytest.mark.parametrize(("level", "expected"), [(1, 0.74), (2, 1.71), (4, 3.67), (8, 7.58)])
def test_what_ten_thousand_releases_can_show_at_99_percent(level, expected):
    hits = gaussian_hits(SHIFTS[level], 10_000)
    found = measured_epsilon(hits, Budget(level, 1e-5), 0.01, gaussian=True)
    assert found == pytest.approx(expected, abs=0.011)


@pytest.mark.parametrize(("level", "runs"), [(1, 649), (2, 205), (4, 74), (8, 48)])
def test_how_many_releases_certify_half_the_noise(level, runs):
    """Known elsewhere; a fifth fewer do not suffice, a tenth more do."""

    def certified(trials):
        hits = gaussian_hits(2 * SHIFTS[level], trials)
        return measured_epsilon(hits, Budget(level, 1e-5), 0.01, gaussian=True) > level

    assert certified(math.ceil(1.1 * runs))
    assert not certified(math.floor(0.8 * runs))


def test_nothing_is_proven_by_equal_hits_or_by_certainty_the_wrong_way():
    for hits in (Hits(50, 50, 100), Hits(100, 0, 100), Hits(0, 0, 100), Hits(100, 100, 100)):
        assert epsilon_bound(hits, 0.0, 1e-3) == 0.0
        assert shift_bound(hits, 1e-3) == 0.0


def test_gaussian_epsilon_inverts_the_formula():
    for shift in SHIFTS.values():
        level = gaussian_epsilon(shift, 1e-5)
        delta = norm.cdf(shift / 2 - level / shift) - math.exp(level) * norm.cdf(
            -shift / 2 - level / shift
        )
        assert delta == pytest.approx(1e-5, rel=1e-6)
    assert gaussian_epsilon(0.0, 1e-5) == 0.0


@pytest.mark.parametrize("points", [0, 5000])
@pytest.mark.parametrize("together", [False, True], ids=["own noise", "the same noise"])
def test_a_bad_day_is_as_rare_as_stated(points, together):
    """Exactly, over all hits; rates that were averaged over points lie a deviation off."""
    trials, alpha, counts = 200, 1e-3, np.arange(201)
    declared = gaussian_hits(2.0, trials)

    def proven(hits):
        return shift_bound(hits, 0.01)

    limit = unlucky(declared, proven, alpha, points)
    assert 0.25 * proven(declared) < limit < proven(declared)
    off = math.sqrt(0.25 / points) if points else 0.0
    laws = [binom.pmf(counts, trials, norm.cdf(s) - s * off) for s in (-1, 1)]
    joint = np.outer(*laws)
    if together:  # the second world misses where the first one hits too often
        joint = np.zeros_like(joint)
        joint[counts, counts[::-1]] = laws[0]
    low = sum(joint[k, m] for k, m in np.argwhere(joint > 0) if proven(Hits(k, m, trials)) < limit)
    assert low <= alpha
