"""The oracles are as accurate as their lemmas say, where the truth is known."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.batch import Batch
from discreet.lab import theory
from discreet.lab.theory.known_bandits import LeastSquares, gap_class, mechanism_for, random_class
from discreet.privacy.noise import SeededNoise
from reference.finite import exponential_mechanism

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
    fit = mechanism_for(truth, epsilon).fit(batch, SeededNoise(rounds.seeds).for_batch(1))
    said = fit.predictor.losses(truth.features)[:, 0]
    wrong = (policy * (said - truth.expected[rounds.worlds]) ** 2).sum(axis=-1)
    return batch.records * (wrong @ truth.chances)


def test_one_batch_is_fitted_as_well_as_the_lemmas_say():
    """Bounds at δ = 10⁻⁶ over 200 fits with fixed seeds."""
    truth = random_class(32, 3)
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
    truth = gap_class(32, 3, 0.4)
    rounds = truth.draw(T, SEEDS)
    oracle = LeastSquares(truth, SEEDS)
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
