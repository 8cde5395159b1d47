"""The logistic certificate at many records: true gradients, by exact arithmetic, in any order."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import discreet as dc
from discreet.arrays.backend import sigmoid
from discreet.audit.noise_sources import Chosen
from discreet.batch import Batch
from discreet.oracles.mechanisms import legal_rows as sums
from discreet.oracles.mechanisms import logistic, newton
from discreet.oracles.mechanisms.legal_rows import (
    GRID,
    UNIT,
    attainable_norm,
    exact_scores,
    exact_sums,
    legal_rows,
)
from discreet.oracles.mechanisms.newton import TOLERANCE
from discreet.privacy import noise as noise_module

MANY = 2**17
WIDTH = 10
ORDERS = ("sorted by label", "alternating", "random")


def oracle(noise, **changes):
    budget = dc.Budget(1.0, 1e-5 if noise == "gaussian" else 0.0)
    return dc.Logistic(noise=noise, **changes).calibrate(dc.Problem(2, WIDTH), budget)


def batch(seed, order, records=MANY, contexts=1):
    """One context again and again: sums whose roundings all go one way."""
    rng = np.random.default_rng(seed)
    known = dc.UnitBall(WIDTH - 1).map(rng.normal(size=(contexts, WIDTH - 1)))
    losses = (rng.random(records) < 0.6).astype(float)
    if order != "random":
        losses.sort()
    if order == "alternating":
        losses = losses.reshape(2, -1).T.reshape(-1)
    observed = np.zeros((records, 2), dtype=bool)
    # One action is played nearly always: its sums are as long as they can be.
    observed[np.arange(records), (rng.random(records) < 0.01).astype(int)] = True
    rows = known[rng.integers(contexts, size=records)]
    return Batch(rows, np.repeat(losses[:, None], 2, axis=1), observed)


def true_norm(theta, rows, weights, labels, ridge, tilt):
    """‖∇J(θ)‖ over all blocks with 50 digits: equal rows are counted, not added up."""
    total = Decimal(0)
    with localcontext() as context:
        context.prec = 50
        unit = 1 / (GRID * Decimal(2).sqrt())
        for action, vector in enumerate(theta):
            mine = weights[:, action] > 0
            given = np.column_stack([rows[mine], labels[mine, action]])
            mixed = given @ np.random.default_rng(0).normal(size=given.shape[1])
            _, first, counts = np.unique(mixed, return_index=True, return_counts=True)
            numbers = [Decimal(float(value)) for value in vector]
            gradient = [
                Decimal(float(b)) + Decimal(float(ridge)) * number
                for b, number in zip(tilt[action], numbers, strict=True)
            ]
            for (*z, label), count in zip(given[first].tolist(), counts.tolist(), strict=True):
                x = [Decimal(value) * unit for value in z]
                score = sum(a * b for a, b in zip(x, numbers, strict=True))
                slope = 1 / (1 + (-score).exp()) - Decimal(label)
                gradient = [g + count * slope * a for g, a in zip(gradient, x, strict=True)]
            total += sum(g * g for g in gradient)
        return float(total.sqrt())


@pytest.fixture
def solved(monkeypatch):
    """Arguments and results of the solver."""
    seen = {}
    honest = newton.minimise

    def spy(features, weights, labels, ridge, tilt, tolerance, grid):
        theta = honest(features, weights, labels, ridge, tilt, tolerance, grid)
        seen.update(rows=grid, weights=weights, labels=labels, ridge=np.max(ridge), tilt=tilt)
        seen["theta"] = theta
        # All blocks together stay within half the tolerance; rounding has the other half.
        assert tolerance * math.sqrt(2) == pytest.approx(TOLERANCE / 2)
        return theta

    monkeypatch.setattr(newton, "minimise", spy)
    return seen


def sequential(grid, factors):
    """A plain float sum, row after row, as a matrix product may take it."""
    x = grid * (math.sqrt(0.5) / GRID)
    return np.stack([(factors[:, a, None] * x).sum(axis=0) for a in range(factors.shape[1])])


def stays(objective, here, tolerance, accelerate=False):  # noqa: ARG001
    """Gradient steps that achieve nothing."""
    return here


def check(solved, noise, seed, order):
    fitted = oracle(noise)
    fitted.fit(batch(seed, order), dc.SecureNoise())
    tolerance = float(fitted._tolerance(MANY))
    assert tolerance == TOLERANCE  # no larger one is needed at this size
    assert true_norm(**solved) <= tolerance


def check_seeds(solved, noise, order, seeds):
    for seed in seeds:
        check(solved, noise, seed, order)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", ["gamma", "gaussian"])
def test_true_gradients_keep_the_public_tolerance(noise, seed, solved):
    check(solved, noise, seed, ORDERS[seed % 3])


@pytest.mark.parametrize("noise", ["gamma", "gaussian"])
def test_a_plain_float_sum_is_caught(noise, solved, monkeypatch):
    monkeypatch.setattr(newton, "exact_sums", sequential)
    monkeypatch.setattr(newton, "NEWTON_STEPS", 12)
    monkeypatch.setattr(newton, "gradient_steps", stays)  # they would go on for minutes
    with pytest.raises(AssertionError, match=r"\d+e-08 <="):
        check_seeds(solved, noise, "sorted by label", range(4))


def test_the_order_of_rows_changes_neither_answer_nor_work(solved, monkeypatch):
    evaluations, honest = [], newton.LogisticObjective.at

    def counted(objective, theta):
        evaluations[-1] += 1
        return honest(objective, theta)

    monkeypatch.setattr(newton.LogisticObjective, "at", counted)
    data = batch(3, "random")
    draws = {"objective blocks": np.random.default_rng(1).normal(size=(2, WIDTH))}
    rng, answers = np.random.default_rng(2), []
    by_label = np.argsort(data.losses[:, 0], kind="stable")
    for order in (np.arange(MANY), by_label, by_label[::-1], rng.permutation(MANY)):
        evaluations.append(0)
        rows = Batch(data.features[order], data.losses[order], data.observed[order])
        oracle("gaussian").fit(rows, Chosen(draws))
        answers.append(solved["theta"])
    assert len(set(evaluations)) == 1
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=0, atol=1e-13)


# The arithmetic, number by number.


def integers(n, p, seed=0):
    rng = np.random.default_rng(seed)
    rows = Batch(rng.normal(size=(n, p)), np.ones((n, 2)), np.ones((n, 2), dtype=bool))
    return legal_rows(rows, "full", "general").grid


@pytest.mark.parametrize("p", [2, 11, 16, 17, 300])
def test_scores_have_three_roundings(p):
    grid, rng = integers(5, p), np.random.default_rng(1)
    theta = rng.normal(size=(4, p)) * np.array([1e-12, 1.0, 1e3, 1.0])[:, None]
    theta[3] *= 10.0 ** rng.integers(-12, 3, size=p)  # great and small numbers together
    found = exact_scores(grid, theta)
    for row, action in product(range(5), range(4)):
        whole = sum(
            Fraction(z) * Fraction(t) for z, t in zip(grid[row], theta[action], strict=True)
        )
        with localcontext() as context:
            context.prec = 60
            unit = 1 / (GRID * Decimal(2).sqrt())
            true = Fraction(Decimal(whole.numerator) / Decimal(whole.denominator) * unit)
        rest = 2.0 * p**2.5 * 2.0**-33 * float(np.abs(theta[action]).max())
        assert abs(Fraction(found[row, action]) - true) <= UNIT * (3.01 * abs(true) + rest)


def test_coarse_products_are_whole_numbers_that_add_up_exactly():
    for p in (1, 2, 11, 16, 17, 300, 8192):
        bits = (sums._EXACT // (GRID * p)).bit_length() - 1
        assert p * GRID * 2**bits <= 2**53 < p * GRID * 2 ** (bits + 2)
    assert sums._EXACT_ROWS * GRID * GRID <= 2**53


@pytest.mark.parametrize("rows", [1, 4097, 3 * sums._EXACT_ROWS + 5])
def test_sums_lose_nothing(rows):
    """All terms alike and on one side: the worst case of a plain sum."""
    grid = np.tile(integers(1, 3, seed=7), (rows, 1))
    factors = np.full((rows, 2), [1.0 / 3.0, -0.9])
    found = exact_sums(grid, factors)
    for action, column in product(range(2), range(3)):
        whole = rows * Fraction(factors[0, action]) * Fraction(grid[0, column])
        true = float(whole / GRID) * math.sqrt(0.5)
        assert abs(found[action, column] - true) <= 6 * UNIT * abs(true)
    plain = sequential(grid, factors)
    if rows > sums._EXACT_ROWS:
        assert np.abs(plain / found - 1.0).max() > 6 * UNIT


def test_the_exponential_is_as_accurate_as_the_event_assumes():
    """Within 4 units in the last place: in the array function that gradients use."""
    assert any("4 units in the last place" in text for text in logistic.CONTINUOUS)
    points = np.random.default_rng(0).uniform(-40.0, 40.0, size=4000)
    found = np.exp(points)
    with localcontext() as context:
        context.prec = 40
        for point, value in zip(points.tolist(), found.tolist(), strict=True):
            true = Decimal(point).exp()
            assert abs(Decimal(value) - true) <= 4 * Decimal(math.ulp(float(true)))


def test_scores_beyond_the_range_of_the_exponential_are_certain():
    np.testing.assert_array_equal(sigmoid(np.array([-1e4, -745.2, 745.2, 1e4])), [0, 0, 1, 1])


# The tolerance that grows with the batch.


@pytest.mark.parametrize("records", [1, 1000, MANY])
@pytest.mark.parametrize("ridge", [5.0, 1000.0])
def test_computed_gradients_are_within_their_bound(records, ridge):
    """A quarter of what is attainable bounds the error of a gradient, far from optimal too."""
    data = batch(1, "sorted by label", max(2, records))
    legal = legal_rows(data, "bandit", "general")
    rng = np.random.default_rng(4)
    theta, tilt = rng.normal(size=(2, WIDTH)), 30.0 * rng.normal(size=(2, WIDTH))
    given = (legal.grid, legal.weights, legal.targets, ridge, tilt)
    objective = newton.LogisticObjective.of(
        legal.features, legal.weights, legal.targets, np.full((2, 1), ridge), tilt, legal.grid
    )
    shown = math.sqrt(float(objective.at(theta).steepness.sum()))
    bound = attainable_norm(max(2, records), WIDTH, ridge, np.linalg.norm(tilt)) / 4
    assert abs(shown - true_norm(theta, *given)) <= math.sqrt(2) * float(bound)


def only_plain_steps(monkeypatch):
    """No Newton, and acceleration that achieves nothing."""
    monkeypatch.setattr(newton, "NEWTON_STEPS", 0)
    honest = newton.gradient_steps

    def steps(objective, here, tolerance, accelerate=False):
        return here if accelerate else honest(objective, here, tolerance)

    monkeypatch.setattr(newton, "gradient_steps", steps)


@pytest.mark.parametrize(("records", "ridge", "size"), [(200, 5.0, 50.0), (4096, 100.0, 3.0)])
def test_plain_gradient_steps_alone_reach_what_is_attainable(records, ridge, size, monkeypatch):
    """The theorem behind the solver: rounding cannot stop it above this norm."""
    only_plain_steps(monkeypatch)
    legal = legal_rows(batch(2, "sorted by label", records), "bandit", "general")
    tilt = size * np.random.default_rng(0).normal(size=(2, WIDTH))
    tolerance = float(attainable_norm(records, WIDTH, ridge, np.linalg.norm(tilt)))
    assert tolerance < 1e-9
    given = (legal.weights, legal.targets, np.full(2, ridge), tilt, tolerance)
    theta = newton.minimise(legal.features, *given, legal.grid)
    certified = true_norm(theta, legal.grid, legal.weights, legal.targets, ridge, tilt)
    assert certified <= math.sqrt(2) * 1.25 * tolerance


def test_a_far_start_goes_back_to_zero():
    """Steps from a point with a gradient above Λ could leave the ball that the bound covers."""
    legal = legal_rows(batch(2, "random", 200), "bandit", "general")
    objective = newton.LogisticObjective.of(
        legal.features,
        legal.weights,
        legal.targets,
        np.full((2, 1), 5.0),
        np.zeros((2, WIDTH)),
        legal.grid,
    )
    near = newton.minimise(
        legal.features, legal.weights, legal.targets, np.full(2, 5.0), np.zeros((2, WIDTH)), 1e-9
    )
    here = objective.at(np.stack([near[0], np.full(WIDTH, 1e6)]))
    start = here.or_zero(objective).theta
    np.testing.assert_array_equal(start, [near[0], np.zeros(WIDTH)])


def test_the_tolerance_is_public_and_paid_for():
    """It grows with the records, never with what they say, and the output noise with it."""
    for noise, ridge in product(("gamma", "gaussian"), (1e-6, 0.01)):
        made = oracle(noise, ridge=ridge)
        found = [float(made._tolerance(n)) for n in (10, 1000, MANY, 2**20, 2**22)]
        assert found == sorted(found)
        assert found[0] == TOLERANCE
        assert found[-1] > 2 * TOLERANCE
        total, scale = made._ridge_and_scale(2**22)
        largest = {"gamma": 36.8 * WIDTH, "gaussian": 8.3 * math.sqrt(WIDTH)}[noise] * float(scale)
        attainable = float(attainable_norm(2**22, WIDTH, total, largest))
        assert found[-1] == pytest.approx(2 * math.sqrt(2) * attainable)
        shown = float(made._output_scale(total, found[-1])) / (2 * found[-1] / float(total))
        assert shown == pytest.approx(
            1 / logistic.OUTPUT_SHARE if noise == "gamma" else logistic.OUTPUT_MULTIPLIER
        )


def test_the_event_covers_the_largest_batch():
    made = oracle("gaussian", ridge=1e-6)
    output = made.event.events[1]
    for records in (1, 1000, MANY, 2**22):
        ridge, _ = made._ridge_and_scale(records)
        shift = 2 * float(made._tolerance(records)) / float(ridge)
        assert shift <= output.sensitivity * (1 + 1e-12)
        assert float(made._output_scale(ridge, shift * ridge / 2)) >= output.multiplier * shift * (
            1 - 1e-12
        )


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_secure_draws_have_a_largest_size(word, monkeypatch):
    monkeypatch.setattr(noise_module, "_words", lambda count: np.full(count, word, dtype=np.uint64))
    extreme = dc.SecureNoise()
    assert 8.0 < np.abs(extreme.normal("any", (5,))).max() <= noise_module.LARGEST_NORMAL
    size = np.linalg.norm(extreme.ball("any", (5,)))
    assert size <= 5 * noise_module.LARGEST_EXPONENTIAL
    assert word or size > 5 * 36.0
