"""Bandits with known truth: their draws, Algorithm 1 and batched play, and the oracles' errors.

Play is compared with literal loops, errors with the bounds of their lemmas.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import discreet as dc
from discreet.arrays.stacking import stack
from discreet.batch import Batch
from discreet.data import fried, linear, load, logistic
from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.features.unit_ball import UnitBall
from discreet.lab import theory
from discreet.lab.theory import known_bandits
from discreet.oracles import FiniteClass
from discreet.oracles.mechanisms.finite_choice import FiniteChoice
from discreet.privacy.noise import SeededNoise
from discreet.releases.release import Predictor, Release
from discreet.releases.released import Released
from discreet.simulate.engine import Family
from reference.finite import exponential_mechanism
from reference.policy_optimisation import exponential_update
from tolerances import EXACT, SOLVER

CLASSES = {
    "random": known_bandits.random_class(8, 3, 5),
    "gap": known_bandits.gap_class(8, 3, 0.2, 5),
}


@pytest.mark.parametrize("truth", CLASSES.values(), ids=CLASSES)
def test_every_world_is_a_function_of_the_class(truth):
    """Realizability: f* ∈ F."""
    functions = np.moveaxis(truth.predictions, -1, 0)  # (F, C, A)
    for world in truth.expected:
        assert min(abs(function - world).max() for function in functions) < EXACT


@pytest.mark.parametrize("truth", CLASSES.values(), ids=CLASSES)
def test_losses_have_their_expectation(truth):
    """By binomial counts; the seed is fixed, and 1 in 10⁶ would fail."""
    T = 40_000
    rounds = truth.draw(T, 1, first_seed=3)
    expected = truth.expected[rounds.worlds[0]]
    losses = rounds.v[0][:, None] < expected[rounds.contexts[0]]
    tail = 1e-6 / (2 * expected.size)
    for context in range(5):
        rows = losses[rounds.contexts[0] == context]
        low, high = binom.ppf([tail, 1 - tail], len(rows), expected[context][:, None]).T
        assert (rows.sum(axis=0) >= low).all()
        assert (rows.sum(axis=0) <= high).all()
    low, high = binom.ppf([tail, 1 - tail], T, 1 / 5)
    counts = np.bincount(rounds.contexts[0], minlength=5)
    assert ((counts >= low) & (counts <= high)).all()


@pytest.mark.parametrize("epsilon", [np.inf, 0.5])
def test_playing_blindly_in_the_hard_instance_costs_what_it_should(epsilon):
    T, A, F = 10_000, 5, 32
    truth = known_bandits.gap_class(F, A, known_bandits.worst_gap(T, A, F, epsilon))
    cost = T * truth.gaps.mean(axis=-1)
    expected = 0.5 * np.sqrt(A * T * np.log(F) * (1 + 1 / epsilon))
    np.testing.assert_allclose(cost, expected, rtol=1e-9)


@pytest.mark.parametrize("make", [linear, logistic, fried])
def test_generated_sets_know_their_truth(make):
    data = make(300)
    truth = known_bandits.known(data)
    np.testing.assert_array_equal(truth.expected[0], data.expected)
    if data.weights is not None:
        link = "identity" if make is linear else "logistic"
        predicted = Predictor(data.weights, link).losses(
            UnitBall(data.dimension).map(data.contexts)
        )
        np.testing.assert_allclose(predicted, truth.expected[0], rtol=0, atol=1e-9)


def test_mistakes_are_refused():
    with pytest.raises(InvalidInput, match="digits"):
        known_bandits.known(load("digits"))
    with pytest.raises(InvalidInput, match="finite class"):
        _ = known_bandits.known(linear(50)).predictions
    with pytest.raises(InvalidInput, match="expected"):
        known_bandits.table(np.full((2, 3, 2), 1.5))
    with pytest.raises(InvalidInput, match="horizon"):
        known_bandits.random_class(2, 2).draw(0, 1)


# --- regret --------------------------------------------------------------------------------------


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


# --- errors of oracles ---------------------------------------------------------------------------

SEEDS = 30


@given(
    totals=st.lists(st.floats(0, 100), min_size=1, max_size=60),
    epsilon=st.floats(0.05, 10),
    delta=st.floats(1e-6, 0.9),
)
@settings(max_examples=1000, deadline=None)
def test_the_exponential_mechanism_seldom_exceeds_the_least_loss_by_much(totals, epsilon, delta):
    """P(L > min L + α) ≤ δ/2, by the exact probabilities and on every data set."""
    chances = exponential_mechanism(totals, epsilon, 1.0)
    excess = theory.exponential_mechanism_excess(len(totals), delta, epsilon)
    far = [p for p, total in zip(chances, totals, strict=True) if total > min(totals) + excess]
    assert sum(far) <= delta / 2 * (1 + 1e-9)


def collected(truth, policy, rows, seeds):
    """Batches of i.i.d. rows under one policy (C, A), and the worlds they come from."""
    rounds = truth.draw(rows, seeds)
    chances = np.broadcast_to(policy, truth.expected.shape[1:])
    actions = (np.cumsum(chances, axis=-1)[rounds.contexts] <= rounds.u[..., :1]).sum(axis=-1)
    expected = truth.expected[rounds.worlds]
    losses = rounds.v[..., None] < expected[np.arange(seeds)[:, None], rounds.contexts]
    observed = actions[..., None] == np.arange(truth.n_actions)
    x = truth.features[rounds.contexts]
    return Batch(x[:, None], losses[:, None] * 1.0, observed[:, None]), rounds


def squared_errors(truth, batch, rounds, epsilon, policy):
    """n·‖f̃ − f*‖²_π of every seed's fit."""
    fit = known_bandits.mechanism_for(truth, epsilon).fit(
        batch, SeededNoise(rounds.seeds).for_batch(1)
    )
    predicted = fit.predictor.losses(truth.features)[:, 0]
    wrong = (policy * (predicted - truth.expected[rounds.worlds]) ** 2).sum(axis=-1)
    return batch.records * (wrong @ truth.chances)


def test_one_batch_is_fitted_as_well_as_the_lemmas_say():
    """Bounds at δ = 10⁻⁶ over 200 fits with fixed seeds."""
    truth = known_bandits.random_class(32, 3)
    policy = np.array([0.6, 0.3, 0.1])
    batch, rounds = collected(truth, policy, 2000, 100)
    for epsilon in (np.inf, 0.5):
        errors = squared_errors(truth, batch, rounds, epsilon, policy)
        excess = (
            0.0 if np.isinf(epsilon) else theory.exponential_mechanism_excess(32, 1e-6, epsilon)
        )
        assert errors.max() <= theory.approximate_erm_error(32, 1e-6, excess)
    at_random = squared_errors(truth, batch, rounds, 1e-6, policy)
    assert at_random.max() > theory.approximate_erm_error(32, 1e-6), "the bound can be exceeded"


def test_adaptive_least_squares_is_as_accurate_in_every_round_as_its_lemma_says():
    """Σ_{s≤t} ‖f̂_t − f*‖²_{π_s} ≤ 24·log(|F|/δ) for all t, at δ = 10⁻⁴ a seed: 0.3 % in all."""
    T, rate = 400, 0.2
    truth = known_bandits.gap_class(32, 3, 0.4)
    rounds = truth.draw(T, SEEDS)
    oracle = known_bandits.LeastSquares(truth, SEEDS)
    tables = np.moveaxis(truth.predictions, -1, 0)  # (F, C, A)
    expected = truth.expected[rounds.worlds]
    played, worst = np.zeros(expected.shape), 0.0  # Σ_s π_s(c, a)
    sums = np.zeros(expected.shape)
    seeds = np.arange(SEEDS)
    for t in range(T):
        logits = -rate * sums
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        policy = weights / weights.sum(axis=-1, keepdims=True)
        played += policy
        c = rounds.contexts[:, t]
        actions = (np.cumsum(policy[seeds, c], axis=-1) <= rounds.u[:, t, :1]).sum(axis=-1)
        losses = (rounds.v[:, t] < expected[seeds, c, actions]) * 1.0
        oracle.learn(c, actions[None], losses[None])
        fitted = tables[oracle.squares[0].argmin(axis=-1)]
        sums += fitted
        errors = (played * (fitted - expected) ** 2).sum(axis=-1) @ truth.chances
        worst = max(worst, float(errors.max()))
    assert 0 < worst <= theory.least_squares_error(32, 1e-4)
