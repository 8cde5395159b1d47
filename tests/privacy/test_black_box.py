"""An attacker who sees only releases: what can be told about one record, and about half the noise.

Worst pair of the structured ridge: same action, unit contexts with c·c' = −¾, losses 1 and 0;
the statistics of the two worlds are exactly one sensitivity apart. The statistic is the
projection of the released Gram and weights' response on their difference, the test is the
Gaussian one, both fixed beforehand.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.oracles.moments import exact_moments
from discreet.oracles.perturb import noisy_gram, noisy_response
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import Gaussian
from discreet.types import Batch

TRIALS = 2600
"""Releases a world: half the noise has μ = 0.54, its lower bound exceeds 0.27 by 4.8 s.d."""
FALSE_ALARM = 1e-6


def world(context, loss):
    features = dc.UnitBall(2).map(np.asarray(context))
    return Batch(features, np.full((1, 2), loss), np.array([[True, False]]))


def vector(gram, response):
    rows, columns = np.triu_indices(gram.shape[-1])
    svec = gram[..., rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))
    return np.concatenate([svec.ravel(), response.ravel()])


def projections(batch, direction, sigma, count):
    """What an attacker computes from each of ``count`` releases of one world."""
    moments, noise = exact_moments(batch, "bandit", "general"), dc.SecureNoise()
    seen = []
    for _ in range(count):
        gram = noisy_gram(moments, sigma, noise, batch.features)
        response = noisy_response(moments, sigma, noise, batch.features)
        seen.append(vector(gram, response) @ direction)
    return np.asarray(seen)


def certified_epsilon(noise_share):
    """Lower bound on ε at δ = 1e-5, wrong with probability at most FALSE_ALARM."""
    budget = dc.Budget(1.0, 1e-5)
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(2), budget=budget)
    sigma = plan.oracle.scales.gram * noise_share
    angle = math.acos(-0.75)
    first, second = world([1.0, 0.0], 1.0), world([math.cos(angle), math.sin(angle)], 0.0)
    exact = [exact_moments(batch, "bandit", "general") for batch in (first, second)]
    means = [vector(m.gram * m.gram_unit, m.response * m.response_unit) for m in exact]
    distance = np.linalg.norm(means[0] - means[1])
    assert distance == pytest.approx(math.sqrt(81 / 32), rel=1e-5)
    direction = (means[0] - means[1]) / distance
    seen = [projections(batch, direction, sigma, TRIALS) for batch in (first, second)]
    # Gaussian trade-off: μ = distance/σ from a lower bound on the difference and an upper one on σ.
    spread = math.sqrt((seen[0].var(ddof=1) + seen[1].var(ddof=1)) / 2)
    upper = spread * math.sqrt((2 * TRIALS - 2) / stats.chi2.ppf(FALSE_ALARM / 2, 2 * TRIALS - 2))
    gap = seen[0].mean() - seen[1].mean()
    lower = gap - stats.norm.isf(FALSE_ALARM / 2) * upper * math.sqrt(2 / TRIALS)
    return 0.0 if lower <= 0 else epsilon(Gaussian(upper / lower, 1.0), 1e-5)


@pytest.mark.long
def test_an_attacker_cannot_certify_more_than_the_claim():
    assert 0.05 < certified_epsilon(1.0) <= 1.0  # about 0.25: the attack has some power


@pytest.mark.long
def test_an_attacker_catches_half_the_noise():
    assert certified_epsilon(0.5) > 1.0
