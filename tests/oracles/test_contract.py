"""The promises of every oracle, checked over the catalogue."""

import warnings
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

import discreet as dc
from catalogue import (
    ACTIONS,
    FEATURES,
    ORACLES,
    WIDTH,
    OracleCase,
    batch_for,
    every_oracle,
    features,
    stacked,
)
from discreet.batch import Batch
from discreet.plan import plan as plans
from discreet.plan.config import to_config
from discreet.privacy.events import NonPrivate
from discreet.releases.statistics import PUBLISHED
from tolerances import EXACT, SOLVER

NOISE = dc.SeededNoise(5, 2)
regressions = [each for each in every_oracle if "FiniteClass" not in each.id]


def numbers(fit):
    """Everything that a fit publishes, as one list of arrays."""
    gram = [] if fit.gram is None else [fit.gram.values]
    names = ("gram", "response", *PUBLISHED.values())
    pool = [] if fit.statistics is None else [getattr(fit.statistics, name) for name in names]
    return [fit.predictor.weights, *gram, *(each for each in pool if each is not None)]


def same(one, other, tolerance):
    for mine, yours in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_allclose(mine, yours, rtol=tolerance, atol=tolerance)


def test_the_catalogue_is_complete():
    assert {type(case.oracle).__name__ for case in ORACLES.values()} == set(plans.ORACLES.built_in)
    for name in ("Ridge", "Logistic"):
        mechanisms = {c.oracle.mechanism for n, c in ORACLES.items() if n.startswith(name)}
        assert mechanisms == {"structured", "paper"}
    private = {case.budget.private for case in ORACLES.values()}
    assert private == {True, False}


@pytest.mark.parametrize("case", every_oracle)
def test_shapes_and_link(case):
    fit = case.calibrated.fit(batch_for(case, 30), NOISE)
    assert fit.predictor.weights.shape == (ACTIONS, WIDTH)
    assert (fit.gram is not None) == case.radii
    predicted = fit.predictor.losses(features(4))
    assert predicted.shape == (4, ACTIONS)
    assert np.isfinite(predicted).all()
    if case.oracle.bounded:
        assert ((predicted >= 0) & (predicted <= 1)).all()


@pytest.mark.parametrize("case", every_oracle)
def test_seeded_fits_repeat_and_leave_their_input_alone(case):
    data = batch_for(case, 30)
    kept = data.features.copy(), data.losses.copy(), data.observed.copy()
    first, second = (case.calibrated.fit(data, NOISE) for _ in range(2))
    same(first, second, 0.0)
    for mine, yours in zip((data.features, data.losses, data.observed), kept, strict=True):
        np.testing.assert_array_equal(mine, yours)


@pytest.mark.parametrize("case", [each for each in regressions if each.values[0].budget.private])
def test_another_batch_has_other_noise(case):
    data = batch_for(case, 30)
    one, other = (case.calibrated.fit(data, NOISE.for_batch(number)) for number in (1, 2))
    assert (one.predictor.weights != other.predictor.weights).all()


@pytest.mark.parametrize("case", every_oracle)
def test_the_order_of_rows_does_not_matter(case):
    data = batch_for(case, 30)
    order = np.random.default_rng(0).permutation(30)
    shuffled = Batch(data.features[order], data.losses[order], data.observed[order])
    same(case.calibrated.fit(data, NOISE), case.calibrated.fit(shuffled, NOISE), SOLVER)


@pytest.mark.parametrize("case", every_oracle)
def test_losses_that_were_not_observed_are_never_read(case):
    data = batch_for(case, 30)
    data.observed[::3] = False
    poisoned = np.where(data.observed, data.losses, np.nan)
    same(
        case.calibrated.fit(data, NOISE),
        case.calibrated.fit(replace(data, losses=poisoned), NOISE),
        EXACT,
    )


def edge_batches(case):
    """n = 1, n < p, one label, an action never played, a void row, nothing but void rows."""
    yield "one row", batch_for(case, 1)
    yield "fewer rows than features", batch_for(case, WIDTH - 1)
    for label in (0.0, 1.0):
        data = batch_for(case, 20)
        yield f"all losses {label}", replace(data, losses=np.full_like(data.losses, label))
    data = batch_for(case, 20)
    if case.feedback == "bandit":
        only = np.tile(np.arange(ACTIONS) == 1, (20, 1))
        yield "one action only", replace(data, observed=only)
    observed = data.observed.copy()
    observed[7] = False
    yield "a void row", replace(data, observed=observed)
    yield "all void", replace(data, observed=np.zeros_like(observed))
    same_rows = np.repeat(data.features[:1], 20, axis=0)
    yield "one context only", replace(data, features=same_rows)


@pytest.mark.parametrize("case", every_oracle)
def test_edges(case):
    for name, data in edge_batches(case):
        for noise in (NOISE, dc.SecureNoise()):
            fit = case.calibrated.fit(data, noise)
            assert all(np.isfinite(array).all() for array in numbers(fit)), name
            assert fit.predictor.weights.shape == (ACTIONS, WIDTH), name


def hostile(rng):
    """Rows outside the ball, not finite, with losses outside [0, 1] and any actions."""
    rows = int(rng.choice([1, 2, 7, 60]))
    x = rng.normal(size=(rows, WIDTH)) * 10.0 ** rng.uniform(-3, 300)
    x[rng.random(x.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e308])
    losses = rng.normal(size=(rows, ACTIONS)) * rng.choice([1.0, 1e300])
    losses[rng.random(losses.shape) < 0.1] = np.nan
    return Batch(x, losses, rng.random((rows, ACTIONS)) < rng.choice([0.0, 0.3, 1.0]))


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("case", [each for each in every_oracle if each.values[0].budget.private])
def test_a_private_fit_neither_raises_nor_warns_for_any_rows(case, epsilon):
    """Either would be a release."""
    mechanism = replace(case, budget=replace(case.budget, epsilon=epsilon)).calibrated
    rng, earlier = np.random.default_rng(1), ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            fit = mechanism.fit(hostile(rng), dc.SecureNoise(), earlier)
            earlier = earlier if fit.statistics is None else (*earlier, fit.statistics)
            assert all(np.isfinite(array).all() for array in numbers(fit))


@pytest.mark.parametrize("case", every_oracle)
def test_a_void_row_only_counts(case):
    """It adds to the public number of records and nothing else: its features are not read."""
    data = batch_for(case, 20)
    data.observed[7] = False
    moved = data.features.copy()
    moved[7] = features(1, seed=77)
    same(
        case.calibrated.fit(data, NOISE),
        case.calibrated.fit(replace(data, features=moved), NOISE),
        SOLVER,
    )


def stackable():
    """(name, cases) of one structure: three ridges, or three budgets, or both."""
    for name, case in ORACLES.items():
        if not case.budget.private:
            continue
        epsilons = (0.5, case.budget.epsilon, 8.0)
        if isinstance(case.oracle, dc.FiniteClass):
            oracles = [case.oracle] * 3
        else:
            oracles = [replace(case.oracle, ridge=ridge) for ridge in (1e-3, 0.05, 0.7)]
        budgets = [dc.Budget(epsilon, case.budget.delta) for epsilon in epsilons]
        pairs = zip(oracles, budgets, strict=True)
        cases = [replace(case, oracle=oracle, budget=budget) for oracle, budget in pairs]
        yield pytest.param(cases, id=name)


@pytest.mark.parametrize("cases", list(stackable()))
@pytest.mark.parametrize("also_none", [False, True], ids=["private", "with-none"])
def test_a_stack_fits_like_its_members(cases, also_none):
    """(S, 1, n, p) rows and R oracles give (S, R, A, p); ε = ∞ may be among them."""
    if also_none:
        cases = [*cases, replace(cases[0], budget=dc.Budget.none())]
    seeds, runs, rows = (3, 8), len(cases), 25
    mechanism = dc.stack([case.calibrated for case in cases])
    data = [batch_for(cases[0], rows, seed) for seed in seeds]
    together = mechanism.fit(stacked(data), dc.SeededNoise(seeds, 4))
    for s, seed in enumerate(seeds):
        for r, case in enumerate(cases):
            alone = case.calibrated.fit(data[s], dc.SeededNoise(seed, 4))
            cell = np.broadcast_to(together.predictor.weights, (2, runs, ACTIONS, WIDTH))[s, r]
            np.testing.assert_allclose(cell, alone.predictor.weights, rtol=SOLVER, atol=SOLVER)
            if alone.gram is None:
                continue
            values = together.gram.values
            values = np.broadcast_to(values, (2, runs, *values.shape[2:]))[s, r]
            mine = released_radii(alone.gram, alone.predictor)
            yours = released_radii(replace(together.gram, values=values, step=1.0), alone.predictor)
            np.testing.assert_allclose(yours, mine, rtol=SOLVER, atol=SOLVER)


def released_radii(gram, predictor):
    """Radii rather than Grams: without noise a dense matrix and blocks say the same."""
    release = dc.Release(1, 1, predictor, replace(gram, step=1.0))
    return dc.Released(ACTIONS).add(release).radii(features(5))


@pytest.mark.parametrize("case", every_oracle)
def test_a_plan_calibrates_writes_and_reads_its_oracle(case):
    plan = case.plan()
    data = batch_for(case, 10)
    same(plan.mechanism.fit(data, NOISE), case.calibrated.fit(data, NOISE), 0.0)
    again = dc.Plan.from_config(plan.to_config())
    assert again.digest == plan.digest
    same(again.mechanism.fit(data, NOISE), plan.mechanism.fit(data, NOISE), 0.0)


@pytest.mark.parametrize("case", every_oracle)
def test_events_are_known_before_any_data(case):
    event = case.calibrated.event
    assert isinstance(event, NonPrivate) == (not case.budget.private)
    assert case.calibrated.noise_norm >= 0.0
    if not case.budget.private and not isinstance(case.oracle, dc.FiniteClass):
        assert case.calibrated.noise_norm == 0.0


@pytest.mark.parametrize("case", every_oracle)
def test_an_oracle_is_configuration_alone(case):
    """A plan keeps it as it was given; what it is calibrated into is another thing, frozen too."""
    assert case.plan().oracle is case.oracle
    assert isinstance(case.oracle, dc.Oracle)
    assert not isinstance(case.calibrated, dc.Oracle)
    assert not {"fit", "event", "noise_norm"} & set(dir(case.oracle))
    assert {each.name for each in fields(case.oracle)} == set(to_config(case.oracle)) - {"kind"}
    for item in (case.oracle, case.calibrated):
        assert vars(item).keys() == {each.name for each in fields(item)}
        for each in fields(item):
            assert each.init
            with pytest.raises(FrozenInstanceError):
                setattr(item, each.name, 1.0)


def test_what_cannot_be_had_is_refused():
    none, pure = dc.Budget.none(), dc.Budget(1.0)
    refused = [
        OracleCase(dc.Ridge(), pure),
        OracleCase(dc.Ridge(mechanism="paper"), pure),
        OracleCase(dc.Logistic(noise="gaussian"), pure),
        OracleCase(dc.Logistic(), pure, radii=True),
        OracleCase(dc.Logistic(noise="gamma"), dc.Budget(1.0, 1e-5), radii=True),
        OracleCase(dc.FiniteClass(np.zeros((2, ACTIONS, WIDTH))), none, radii=True),
        OracleCase(dc.FiniteClass(np.zeros((2, ACTIONS + 1, WIDTH))), none),
        OracleCase(dc.FiniteClass(np.zeros((2, ACTIONS, WIDTH + 1))), none),
    ]
    for case in refused:
        with pytest.raises(dc.InvalidInput):
            _ = case.calibrated
    with pytest.raises(dc.InvalidInput, match="FastCB"):
        dc.Plan(
            n_actions=ACTIONS, features=FEATURES, policy=dc.FastCB(), oracle=dc.Ridge(), budget=none
        )
