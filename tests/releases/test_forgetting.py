"""A half-life: old releases count less in the pool, the replay and the radii, and cost nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from catalogue import OracleCase, batch_for
from discreet.client.recomputation import recompute
from discreet.design.schedule import Schedule
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.releases.release import Gram, Predictor, Release
from discreet.releases.released import Released
from discreet.releases.statistics import HALF_LIVES, remembered
from discreet.simulate.engine import run
from oracles.test_pooled_ridge import arrays, chain, standard_draws
from reference import policy_optimisation
from reference import ridge as literal
from tolerances import EXACT, SOLVER

ACTIONS, WIDTH = 3, 4
BUDGET = dc.Budget(1.0, 1e-5)


def history(count, half_life, grams=False, seed=0):
    """So many made-up releases."""
    rng = np.random.default_rng(seed)
    released = Released(ACTIONS, Schedule(half_life=half_life))
    for number in range(1, count + 1):
        weights = rng.uniform(-0.5, 1.0, size=(ACTIONS, WIDTH))
        half = rng.normal(size=(ACTIONS, WIDTH, WIDTH))
        gram = Gram(half @ half.swapaxes(-1, -2), dense=False, step=1.0) if grams else None
        records = int(rng.integers(1, 60))
        released = released.add(Release(number, records, Predictor(weights, "clip"), gram))
    return released


@given(st.integers(0, 60), st.integers(1, 9))
def test_what_counts_is_halved_and_ends(count, half_life):
    kept = remembered(range(count), half_life)
    assert [item for item, _ in kept] == list(range(count))[-(HALF_LIVES * half_life + 1) :]
    for item, share in kept:
        age = count - 1 - item
        assert share == pytest.approx(0.5 ** (age / half_life), rel=1e-15)
        assert share >= 2.0**-HALF_LIVES
    assert remembered(range(count), None) == [(item, 1) for item in range(count)]


@pytest.mark.parametrize("half_life", [1, 2])
@pytest.mark.parametrize("geometry", ["learned", "plain"])
@pytest.mark.parametrize("budget", [dc.Budget.none(), BUDGET], ids=str)
def test_the_pool_is_the_literal_one(half_life, geometry, budget):
    case = OracleCase(dc.PooledRidge(geometry=geometry), budget)
    scales = case.calibrated
    mechanism = replace(scales, problem=replace(scales.problem, half_life=half_life))
    batches = [batch_for(case, rows, seed=rows) for rows in (1, 30, 4, 50, 20, 9, 40, 33, 12)]
    numbers = (0.6, 1e-8, 10.0, scales.gram, scales.response, scales.stretched)
    drawn = standard_draws("bandit", batches)
    expected = literal.pooled([arrays(b) for b in batches], drawn, 0.5, *numbers, half_life)
    middle = 0.5 * np.sqrt(2.0) * np.eye(scales.problem.p)[0]
    for fit, found in zip(chain(mechanism, batches), expected, strict=True):
        np.testing.assert_allclose(
            fit.predictor.weights, found.theta + middle, rtol=SOLVER, atol=1e3 * SOLVER
        )
        assert (fit.statistics.following is None) == (geometry == "plain")
        if geometry == "learned":
            for name in ("following", "signal"):
                np.testing.assert_allclose(
                    getattr(fit.statistics, name), getattr(found, name), rtol=1e-6, atol=1e-6
                )


@pytest.mark.parametrize("half_life", [None, 1, 2, 3])
@pytest.mark.parametrize("count", [1, 4, 6, 13, 30])
def test_the_replay_is_the_literal_one_over_what_still_counts(half_life, count):
    released, x = history(count, half_life), np.random.default_rng(1).normal(size=(5, WIDTH))
    found = dc.ReplayBonusPO(learning_rate=0.05, bonus=0.1).probabilities(released, x)
    kept = [
        (item, 1.0 if half_life is None else 0.5 ** ((count - item.number) / half_life))
        for item in released.items
        if half_life is None or count - item.number <= 5 * half_life
    ]
    lengths = [part * item.records for item, part in kept]
    for row, probabilities in zip(x, found, strict=True):
        losses = [item.predictor.losses(row[None])[0] for item, _ in kept]
        expected = policy_optimisation.replay_bonus_po(losses, lengths, 0.05, 0.1)
        np.testing.assert_allclose(probabilities, expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("half_life", [None, 1, 3])
def test_radii_and_rounds_count_as_much_as_the_releases(half_life):
    released, x = (
        history(9, half_life, grams=True),
        np.random.default_rng(2).normal(size=(4, WIDTH)),
    )
    parts = [
        1.0 if half_life is None else 0.5 ** ((9 - i.number) / half_life) for i in released.items
    ]
    total = sum(s * i.gram.values for s, i in zip(parts, released.items, strict=True)) + np.eye(
        WIDTH
    )
    expected = np.sqrt(np.einsum("ni,aij,nj->na", x, np.linalg.inv(total), x))
    np.testing.assert_allclose(released.radii(x), expected, rtol=1e-9)
    compact = Released(ACTIONS, released.schedule)
    for item in released.items:  # as a simulation does, release by release
        compact = compact.add(item)._compact()
    np.testing.assert_allclose(compact.radii(x), expected, rtol=1e-9)
    counted = sum(s * i.records for s, i in zip(parts, released.items, strict=True) if s >= 1 / 32)
    assert released.remembered_rounds == pytest.approx(counted, rel=1e-12)
    gamma = dc.SquareCB(scale=2.0, exponent=0.5).gap_weight(released, x)
    np.testing.assert_allclose(gamma, 2.0 * max(1.0, counted) ** 0.5)
    assert released.rounds == sum(item.records for item in released.items)


def plan(half_life, budget=BUDGET, **words):
    sizes = {"n_actions": 2, "features": dc.UnitBall(2), "first_batch": 4, "longest_batch": 8}
    return dc.Plan(**{**sizes, **words}, budget=budget, half_life=half_life)


def test_noise_may_dominate_for_thousands_of_releases(tmp_path):
    """Matrices make rows about as long as one: they stay where they are, however long a chain."""
    sizes = {"features": dc.UnitBall(1), "first_batch": 2, "longest_batch": 2}
    noisy = plan(1, **sizes)
    learner = dc.Learner(
        noisy, noise=dc.SecureNoise(fast=True), draws=np.random.default_rng(0), window=None
    )
    for _ in range(1_101):
        decided = learner.decide(np.full((2, 1), 0.3))
        learner.observe(decided.id, [0.0, 1.0])
    released = learner.released
    assert len(released.items) == 1_100
    for item in released.items:  # the noise is not seeded: bounds that leave room
        assert np.isfinite(item.predictor.weights).all()
        assert 2.0**-40 < np.abs(item.statistics.matrix).max() < 2.0**40
    # Whoever has the documents finds the same, and notices a matrix with another power of two.
    released.save(tmp_path / "released.json")
    assert len(recompute(Released.load(tmp_path / "released.json"))) == 1_100
    forged = released.items[500]
    numbers = replace(forged.statistics, matrix=2.0 * forged.statistics.matrix)
    items = list(released.items[: forged.number])
    items[-1] = replace(forged, statistics=numbers)
    with pytest.raises(dc.CorruptRelease, match=r"statistics\.matrix of release"):
        recompute(replace(released, items=tuple(items)))


def learnt(plan):
    learner = dc.Learner(plan, draws=np.random.default_rng(0))
    for _ in range(4):
        decided = learner.decide(np.full((8, 2), 0.3))
        learner.observe(decided.id, np.asarray(decided.action == 1, dtype=float))
    learner.decide(np.zeros((0, 2)))
    return learner


def test_the_ledger_knows_nothing_of_a_half_life_and_releases_can_be_recomputed():
    forgets, keeps = learnt(plan(1)), learnt(plan(None))
    assert forgets.ledger.to_json() == keeps.ledger.to_json()
    assert plan(1).event == plan(None).event
    assert set(recompute(forgets.released)) == {1, 2, 3, 4}
    other = replace(forgets.released, plan=plan(2).to_config())
    with pytest.raises(dc.CorruptRelease, match="predictor of release 2"):
        recompute(other)


def test_the_noise_of_a_prediction_is_that_of_what_still_counts():
    lengths = [50, 60, 70, 80, 90]
    for half_life in (None, 1, 2):
        mechanism = plan(half_life).mechanism
        assert isinstance(mechanism, PooledStatistics)
        decay = 1.0 if half_life is None else 0.5 ** (1 / half_life)
        p, clear = mechanism.problem.p, 10.0 * mechanism.gram**2
        for m, found in enumerate(mechanism.prediction_noise(lengths), start=1):
            w = [decay ** (m - 1 - i) * n / (n + clear * p) for i, n in enumerate(lengths[:m])]
            signal = sum(each * n for each, n in zip(w, lengths, strict=False))
            size = mechanism.response * 2 * p * np.sqrt(sum(each**2 for each in w))
            assert found == pytest.approx(size / signal, rel=1e-12)


@pytest.mark.parametrize("policy", [dc.AdaptivePO(), dc.LinUCB(width=0.3)])
def test_many_runs_at_once_are_the_runs_alone(policy):
    x = np.random.default_rng(3).uniform(-0.7, 0.7, size=(150, 2))
    y = (x[:, 0] > 0).astype(np.int64)
    plans = [plan(1, budget, policy=policy) for budget in (BUDGET, dc.Budget(4.0, 1e-5))]
    found = run(plans, plans[0].features.map(x), y, seeds=[0, 1])
    alone = [[dc.evaluate(one, x, y, seed=seed).loss for seed in (0, 1)] for one in plans]
    np.testing.assert_allclose(found[:, :, -1], alone, rtol=0, atol=EXACT)
    with pytest.raises(dc.InvalidInput, match="one schedule"):
        run([plan(1), plan(2)], plans[0].features.map(x), y, seeds=[0])
