"""P2B and the shuffle model: exact crowds, a literal loop, and what amplification allows."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dc
from discreet.lab.rivals import CodedBandit, coded_bandit
from discreet.lab.rivals.linucb_rivals import amplified, local_budget
from discreet.lab.rivals.rival_contract import RivalPlan, noise_multiplier
from discreet.lab.rivals.runner import run
from discreet.simulate.played_batches import shuffle

BUDGET = dc.Budget(2.0, 1e-3)
ROUNDS, ACTIONS, SEED = 180, 2, 3


def shown(people, share, threshold):
    """The law of what the shuffler shows, by hand: an entry for every count."""
    law = binom.pmf(np.arange(people + 2), people, share)
    law[0], law[1:threshold] = law[:threshold].sum(), 0.0
    return law


@pytest.mark.parametrize("crowd", [9, 10, 17])
def test_divergences_of_a_crowd(crowd):
    share, threshold, epsilon = 0.4, 10, 0.6
    more, less = shown(crowd + 1, share, threshold), np.append(shown(crowd, share, threshold), 0.0)
    grown = math.exp(epsilon)
    expected = [np.maximum(a - grown * b, 0).sum() for a, b in ((more, less), (less, more))]
    found = coded_bandit.crowd_divergences(share, threshold, epsilon, np.array([crowd]))[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_the_threshold_is_the_smallest_that_keeps_the_budget():
    share, threshold = coded_bandit.sampling(BUDGET, "tight")
    assert coded_bandit.crowd_delta(share, threshold, 1.0) <= BUDGET.delta / 2
    assert coded_bandit.crowd_delta(share, threshold - 1, 1.0) > BUDGET.delta / 2
    # Where leaving a crowd shows more than ε no threshold helps.
    assert coded_bandit.crowd_delta(0.7, 50, 1.0) == 1.0


def test_published_crowds_leak_more_than_they_claim():
    """Ten people with one code: the shuffler shows ten reports only if all of them are there."""
    share, threshold = coded_bandit.sampling(BUDGET, "published")
    assert (
        coded_bandit.crowd_divergences(share, threshold, BUDGET.epsilon, np.array([9])).max() > 0.1
    )


@pytest.mark.parametrize("constants", ["tight", "published"])
def test_a_coded_run_is_the_literal_loop(constants):
    rng = np.random.default_rng(1)
    contexts = rng.normal(size=(ROUNDS, 2))
    features, labels = dc.UnitBall(2).map(contexts), (contexts[:, 0] > 0).astype(int)
    rival = CodedBandit(codes=2, constants=constants, batches=2)
    budget = dc.Budget(1.0, 0.2)
    played = run([RivalPlan(rival, ACTIONS, 3, budget)], features, labels, [SEED])[0, 0]
    share, least = coded_bandit.sampling(budget, constants)
    order, u = shuffle(SEED, ROUNDS)
    codes = coded_bandit.coded(features[order][None, None], coded_bandit.code_centres(features, 2))[
        0, 0
    ].argmax(-1)
    kept, batch, lost = np.zeros((ACTIONS, 2, 2)), np.zeros((ACTIONS, 2, 2)), []
    passed = 0
    for t, row in enumerate(order):
        if t and t % 90 == 0:
            for key in np.ndindex(*batch.shape):
                crowd = batch[key] if constants == "tight" else batch[:, key[1]].sum()
                kept[key] += batch[key] * (crowd >= least)
            passed, batch[:] = kept.sum(), 0.0
        n = kept[:, codes[t]].sum(-1)
        values = (kept[:, codes[t], 1] - n / 2) / (1 + n) - rival.width / np.sqrt(1 + n)
        tied = np.flatnonzero(values <= values.min() + 1e-12)
        action = int(u[t, 0] * ACTIONS) if t < 90 else tied[int(u[t, 0] * len(tied))]
        loss = int(action != labels[row])
        lost.append(loss)
        batch[action, codes[t], loss] += u[t, 1] < share
    assert passed > 0
    ends = np.cumsum([16, 24, 36, 54, 50])
    np.testing.assert_allclose(played, np.cumsum(lost)[ends - 1] / ends)


def test_amplification_is_used_up_and_never_exceeded():
    budget = dc.Budget(1.0, 1e-5)
    for people in (10, 1000, 100_000):
        local = local_budget(budget, people)
        assert noise_multiplier(local) <= noise_multiplier(budget)
        if local is not budget:
            half = budget.delta / 2
            assert amplified(local.epsilon, people, half) <= budget.epsilon
            # Either the bound or its condition is reached.
            assert amplified(local.epsilon + 1e-6, people, half) > budget.epsilon
            rest = (math.e + 1) * (1 + math.exp(-local.epsilon) / 2) * people * local.delta
            assert rest == pytest.approx(half)
    assert local_budget(budget, 10) is budget
    assert local_budget(budget, 100_000) is not budget
