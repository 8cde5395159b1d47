"""Algorithm 1, and batched play against a known truth, beside loops that do it literally."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.arrays.stacking import stack
from discreet.batch import Batch
from discreet.design.schedule import Schedule
from discreet.lab import theory
from discreet.lab.theory import known_bandits
from discreet.oracles import FiniteClass
from discreet.oracles.mechanisms.finite_choice import FiniteChoice
from discreet.privacy.noise import SeededNoise
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.simulate.engine import Family
from reference.policy_optimisation import exponential_update
from tolerances import EXACT, SOLVER


def drawn(chances, u):
    return int(min(np.searchsorted(np.cumsum(chances), u, side="right"), len(chances) - 1))


def literal_algorithm_1(truth, rounds, seed, rate, fit):
    """π_{t+1}(c, a) ∝ π_t(c, a)·exp(−η·f̂_t(c, a)) for all contexts, with a fresh fit each round."""
    contexts, A = truth.expected.shape[1:]
    world = rounds.worlds[seed]
    policies = [[1 / A] * A for _ in range(contexts)]
    rows, regret = [], 0.0
    for t in range(rounds.horizon):
        c = rounds.contexts[seed, t]
        action = drawn(policies[c], rounds.u[seed, t, 0])
        regret += float(np.dot(policies[c], truth.gaps[world, c]))
        rows.append((c, action, float(rounds.v[seed, t] < truth.expected[world, c, action])))
        fitted = fit(rows)
        policies = [
            exponential_update(policy, fitted[context], rate)
            for context, policy in enumerate(policies)
        ]
    return regret


def least_squares(truth):
    """The first minimiser of the summed squared loss, as a table."""

    def fit(rows):
        totals = np.zeros(truth.predictions.shape[-1])
        for c, action, loss in rows:
            totals += (truth.predictions[c, action] - loss) ** 2
        return truth.predictions[..., int(totals.argmin())]

    return fit


def test_algorithm_1_with_a_finite_class():
    truth = known_bandits.random_class(6, 3, 4)
    rounds = truth.draw(60, 3)
    rates = (0.05, 0.7)
    oracle = known_bandits.LeastSquares(truth, 3, 2)
    found = known_bandits.vanilla_po(truth, rounds, oracle, rates)
    assert oracle.counts.sum(axis=-1).tolist() == [[60.0] * 3] * 2
    for r, rate in enumerate(rates):
        for seed in range(3):
            expected = literal_algorithm_1(truth, rounds, seed, rate, least_squares(truth))
            assert found.total[r, seed] == pytest.approx(expected, abs=EXACT * 1000)
    assert found.fits == 60
    assert found.ends.tolist() == [1, 3, 7, 15, 31, 60]


def literal_batched(truth, rounds, seed, policy, oracle):
    """Row by row through the core's policy and FiniteClass."""
    schedule = Schedule(1, rounds.horizon)
    released, regret = Released(truth.n_actions, schedule), 0.0
    world = rounds.worlds[seed]
    for number, length in enumerate(schedule.lengths(), start=1):
        x, losses, observed = [], [], []
        for t in range(schedule.start(number), schedule.start(number) + length):
            c = rounds.contexts[seed, t]
            chances = policy.probabilities(released, truth.features[[c]])[0]
            regret += float(chances @ truth.gaps[world, c])
            action = drawn(chances / chances.sum(), rounds.u[seed, t, 0])
            x.append(truth.features[c])
            losses.append((rounds.v[seed, t] < truth.expected[world, c]).astype(float))
            observed.append(np.arange(truth.n_actions) == action)
        if schedule.fitted(number):
            batch = Batch(np.array(x), np.array(losses), np.array(observed))
            fit = oracle.fit(batch, SeededNoise(rounds.seeds[seed]).for_batch(number))
            released = released.add(Release(number, length, fit.predictor))
    assert len(released.items) == theory.fits(rounds.horizon)
    return regret


@pytest.mark.parametrize("epsilon", [np.inf, 2.0])
def test_batched_play_is_the_core_row_by_row(epsilon):
    truth = known_bandits.random_class(7, 3, 4)
    rounds = truth.draw(100, 2)
    policies = [dc.BonusPO(rate_scale=4.0, bonus_scale=0.1), dc.BonusPO()]
    run = Family(stack(policies), known_bandits.mechanism_for(truth, epsilon), "bandit")
    found = known_bandits.play_known(run, truth, rounds)
    budget = dc.Budget(epsilon) if np.isfinite(epsilon) else dc.Budget.none()
    plain = FiniteClass(truth.weights).calibrate(dc.Problem(3, 4), budget)
    for r, policy in enumerate(policies):
        for seed in range(2):
            expected = literal_batched(truth, rounds, seed, policy, plain)
            assert found.total[r, seed] == pytest.approx(expected, abs=1e-9)
    assert found.fits == theory.fits(100) == 6


def test_known_contexts_sum_like_the_finite_class():
    truth = known_bandits.random_class(9, 3, 5)
    rng = np.random.default_rng(0)
    x = np.eye(5)[rng.integers(5, size=(2, 1, 40))]
    weights = (np.arange(3) == rng.integers(3, size=(2, 4, 40, 1))) * 1.0
    losses = rng.random((2, 1, 40, 3))
    given = FiniteClass(truth.weights), dc.Problem(3, 5), dc.Budget.none()
    ours = known_bandits.KnownContexts.of(*given)._summed_losses(x, weights, losses, None)
    theirs = FiniteChoice.of(*given)._summed_losses(x, weights, losses, None)
    assert ours.shape == (2, 4, 9)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SOLVER)
    with pytest.raises(TypeError, match="FiniteClass"):
        known_bandits.KnownContexts.of(*given)._summed_losses(x, weights, losses, 2**20)
