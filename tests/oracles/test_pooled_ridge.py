"""PooledRidge against a loop over releases; and that these are all that it knows of the past."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from catalogue import (
    ACTIONS,
    DIMENSION,
    NONE,
    PRIVATE,
    SHAPES,
    WIDTH,
    OracleCase,
    batch_for,
    plan_of,
    stacked,
)
from discreet.batch import Batch
from discreet.oracles.mechanisms import geometry, pooled_statistics
from discreet.releases.canonical import decode_array
from libraries import LIBRARIES
from reference import ridge as literal
from tolerances import SOLVER

SEED = 11
LENGTHS = (1, 3, 40, 7)
PARTS = ("features", "losses", "observed")
CENTRE = math.sqrt(2.0)
"""The bias feature is 1/√2, so a constant c is the bias weight c·√2."""


def chain(oracle, batches, noise=None, wrap=lambda batch: batch):
    """Fits that go on from each other's statistics, as those of a learner do."""
    noise, earlier, fits = noise or dc.SeededNoise(SEED), (), []
    for number, each in enumerate(batches, start=1):
        fits.append(oracle.fit(wrap(each), noise.for_batch(number), earlier))
        earlier = (*earlier, fits[-1].statistics)
    return fits


def batches_for(case, lengths=LENGTHS, seed=0):
    return [batch_for(case, rows, seed=100 * seed + rows) for rows in lengths]


def arrays(batch):
    return tuple(getattr(batch, name) for name in PARTS)


def uncentred(theta, middle):
    return theta + middle * CENTRE * np.eye(WIDTH)[0]


# What it computes


def standard_draws(feedback, batches):
    """Draws of each fit of a chain: for the Gram, the response, and outcome sums."""
    blocks, draws = 1 if feedback == "full" else ACTIONS, []
    for number in range(1, len(batches) + 1):
        noise = dc.SeededNoise(SEED, number)
        packed = noise.normal("gram", (blocks, WIDTH * (WIDTH + 1) // 2))
        outcomes = () if feedback == "full" else (noise.normal("told", (2 + 2 * ACTIONS,)),)
        draws.append((packed, noise.normal("response", (ACTIONS, WIDTH)), *outcomes))
    return draws


@pytest.mark.parametrize("geometry", ["learned", "plain"])
@pytest.mark.parametrize("budget", [NONE, PRIVATE, dc.Budget(50.0, 1e-5)], ids=str)
@pytest.mark.parametrize("numbers", [(0.4, 1e-6, 10.0), (1.5, 0.3, 0.0)], ids=str)
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
def test_every_release_of_a_chain_is_the_literal_one(feedback, losses, numbers, budget, geometry):
    check_chain(feedback, losses, numbers, budget, geometry)


@pytest.mark.parametrize("budget", [NONE, dc.Budget(8.0, 1e-5), dc.Budget(50.0, 1e-5)], ids=str)
def test_every_release_of_a_chain_of_clicks_is_the_literal_one(budget):
    signals = check_chain("bandit", "general", NUMBERS, budget, "learned", clicks=True)
    assert signals[-1][0] == 0.0
    assert signals[-1][1] < 0.15


def test_work_that_clear_contexts_do_not_use_changes_no_bit(monkeypatch):
    case = OracleCase(dc.PooledRidge(), dc.Budget(0.1, 1e-5))
    batches = batches_for(case)
    short = chain(case.calibrated, batches)
    assert [each.statistics.signal[0] for each in short] == [1.0] * len(batches)
    monkeypatch.setattr(pooled_statistics, "surely", lambda _: False)
    for one, other in zip(short, chain(case.calibrated, batches), strict=True):
        np.testing.assert_array_equal(one.predictor.weights, other.predictor.weights)
        for name in ("following", "signal"):
            np.testing.assert_array_equal(
                getattr(one.statistics, name), getattr(other.statistics, name)
            )


NUMBERS = (0.4, 1e-6, 10.0)


def check_chain(feedback, losses, numbers, budget, geometry, clicks=False):
    """Compare all that a chain publishes with the transcription; return the signals.

    With ``clicks`` losses are 0.9 and more, so that contexts are unclear and the offset is large.
    """
    floor, ridge, clear = numbers
    oracle = dc.PooledRidge(
        floor=floor, ridge=ridge, clear=clear, response_weight=2.0, geometry=geometry
    )
    case = OracleCase(oracle, budget, feedback, losses)
    batches = batches_for(case)
    if clicks:
        batches = [
            replace(each, losses=0.9 + 0.1 * each.losses)
            for each in batches_for(case, (60, 400, 90, 700))
        ]
    scales = case.calibrated
    assert scales.response * (2.0 if feedback == "bandit" else 1.0) == scales.gram
    stretched = geometry == "learned"
    assert scales.stretched == stretched
    draws, middle = standard_draws(feedback, batches), literal.middle(losses, ACTIONS)
    expected = literal.pooled(
        [arrays(each) for each in batches],
        draws,
        middle,
        *numbers,
        scales.gram,
        scales.response,
        stretched,
    )
    matrix = np.eye(WIDTH) if stretched else None
    fits = chain(case.calibrated, batches)
    for data, fit, drawn, found in zip(batches, fits, draws, expected, strict=True):
        assert_close(fit.predictor.weights, uncentred(found.theta, middle))
        assert fit.predictor.link == "clip"
        seen = fit.statistics
        assert (seen.records, seen.variance) == (data.records, scales.gram**2)
        assert_close(seen.matrix, matrix)
        assert_close(seen.following, found.following)
        sums = None
        if stretched and feedback == "bandit":
            sums = literal.outcome_sums(data.losses, data.observed, 0.5) + scales.gram * drawn[2]
        assert_close(seen.outcome_sums, sums)
        assert_close(seen.signal, found.signal)
        matrix = found.following
    return [each.signal for each in expected]


def assert_close(found, expected, tolerance=SOLVER):
    assert (found is None) == (expected is None)
    if expected is not None:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def joined(batches):
    return Batch(*(np.concatenate(parts) for parts in zip(*map(arrays, batches), strict=True)))


@pytest.mark.parametrize("lengths", [(1,), (1, 2), (2, 4, 8), LENGTHS], ids=str)
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
def test_without_a_budget_it_is_least_squares_on_the_whole_past(feedback, losses, lengths):
    """The ridge of 1e-6 only decides what no record shows: there a loss is the middle one."""
    case = OracleCase(dc.PooledRidge(geometry="plain"), NONE, feedback, losses)
    batches = batches_for(case, lengths)
    data = joined(batches)
    found = chain(case.calibrated, batches)[-1].predictor.weights
    assert_close(found, least_squares(data, np.ones(data.records), losses), 1e-6)


def all_clear(pool, _):
    """λ = 1: no prediction starts from action means."""
    return 1.0 + 0.0 * pool.offset


def least_squares(data, weights, losses):
    """θ_a of plain features that minimises Σ w·(y − φᵀθ)² over the rows that tell of action a."""
    middle, found = literal.middle(losses, ACTIONS), []
    for action in range(ACTIONS):
        shown = data.observed[:, action]
        root = np.sqrt(weights[shown])
        centred = root * (data.losses[shown, action] - middle)
        theta = np.linalg.lstsq(root[:, None] * data.features[shown], centred, rcond=1e-3)[0]
        found.append(uncentred(theta, middle))
    return np.array(found)


def linear(case, lengths, offset):
    """Weights of losses that are linear in the context, and batches with these losses."""
    slopes = 0.02 * np.random.default_rng(5).uniform(-1.0, 1.0, size=(ACTIONS, WIDTH))
    truth = slopes + offset * CENTRE * np.eye(WIDTH)[0]
    batches = batches_for(case, lengths)
    return truth, [replace(each, losses=each.features @ truth.T) for each in batches]


@pytest.mark.parametrize("offset", [0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_without_a_budget_a_linear_truth_is_found_whatever_the_offset(
    feedback, offset, monkeypatch
):
    case = OracleCase(dc.PooledRidge(), NONE, feedback)
    monkeypatch.setattr(geometry.Pool, "clear", all_clear)
    truth, batches = linear(case, (60, 20, 100, 30), offset)
    for fit in chain(case.calibrated, batches):
        assert_close(fit.predictor.weights, truth, 1e-6)


@pytest.mark.parametrize("offset", [0.02, 0.5, 0.97])
def test_where_contexts_are_unclear_the_error_vanishes_with_the_records(offset):
    """Slopes are drawn together and means toward the mean of all, ten times less each time."""
    case, errors = OracleCase(dc.PooledRidge(), NONE, "bandit"), []
    for size in (100, 1_000, 10_000):
        truth, batches = linear(case, (size, 2 * size), offset)
        fit = chain(case.calibrated, batches)[-1]
        assert fit.statistics.signal[0] == 0.0
        errors.append(np.abs(fit.predictor.weights - truth).max())
    assert errors[1] < errors[0] / 3
    assert errors[2] < errors[1] / 3
    assert errors[2] < 1e-4


# Where it runs


@pytest.mark.parametrize("geometry", ["learned", "plain"])
@pytest.mark.parametrize(("feedback", "losses"), SHAPES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_stacked_chain_is_its_single_chains(feedback, losses, library, geometry):
    """Seeds (S, 1) meet runs (R,): budgets, floors and ridges differ, and one is infinite."""
    wrap = (lambda data: data) if library == "numpy" else as_torch(pytest.importorskip("torch"))
    epsilons = (0.5, 2.0, 50.0, math.inf)
    floors = (0.2, 0.4, 0.8, 0.4)
    cases = [
        OracleCase(
            dc.PooledRidge(floor=floor, ridge=floor / 10, geometry=geometry),
            dc.Budget(epsilon, 1e-5) if math.isfinite(epsilon) else NONE,
            feedback,
            losses,
        )
        for epsilon, floor in zip(epsilons, floors, strict=True)
    ]
    seeds = (3, 8)
    data = [batches_for(cases[0], seed=seed) for seed in seeds]
    together = chain(
        dc.stack([case.calibrated for case in cases]),
        [stacked(each) for each in zip(*data, strict=True)],
        dc.SeededNoise(seeds),
        wrap,
    )
    for s, seed in enumerate(seeds):
        for r, case in enumerate(cases):
            alone = chain(case.calibrated, data[s], dc.SeededNoise(seed))
            for one, many in zip(alone, together, strict=True):
                assert_close(np.asarray(many.predictor.weights)[s, r], one.predictor.weights)
                for name in ("gram", "response", "following", "outcome_sums", "signal"):
                    several = getattr(many.statistics, name)
                    cell = None if several is None else np.asarray(several)[s, r]
                    assert_close(cell, getattr(one.statistics, name))


def as_torch(torch):
    return lambda data: Batch(*(torch.asarray(part) for part in arrays(data)))


def labelled(rows):
    contexts = np.random.default_rng(4).normal(size=(rows, DIMENSION))
    return contexts, (contexts[:, 0] > 0).astype(int) + (contexts[:, 1] > 0.5)


# What it knows of the past, and of the batch


def published(policy=None, **change):
    """Plan and releases of a private run, as documents."""
    contexts, labels = labelled(63)
    parts = {"policy": policy or dc.ReplayBonusPO(), "horizon": 63, **change}
    learner = dc.Learner(plan_of(budget=PRIVATE, **parts), noise=dc.SecureNoise(fast=True))
    for context, label in zip(contexts, labels, strict=True):
        decision = learner.decide(context)
        if decision.stored:
            wrong = (np.arange(ACTIONS) != label).astype(float)
            full = learner.plan.feedback == "full"
            learner.observe([decision.id], [wrong if full else wrong[decision.action]])
    documents = [each.to_json() for each in learner.released.items]
    return json.loads(json.dumps(learner.plan.to_config())), json.loads(json.dumps(documents))


def unpacked(packed):
    """Symmetric blocks from upper triangles in row order."""
    rows, columns = np.triu_indices(WIDTH)
    blocks = np.zeros((len(packed), WIDTH, WIDTH))
    blocks[:, rows, columns] = packed
    blocks[:, columns, rows] = packed
    return blocks


FORMS = [
    pytest.param({}, id="learned"),
    pytest.param({"oracle": dc.PooledRidge(geometry="plain")}, id="plain"),
    pytest.param({"policy": dc.LinUCB()}, id="radii"),
    pytest.param({"feedback": "full"}, id="full"),
    pytest.param({"feedback": "full", "losses": "one_label"}, id="labels"),
]


@pytest.mark.parametrize("form", FORMS)
def test_releases_follow_from_published_numbers_alone(form):
    """A reader with the documents repeats every step after the noise.

    Release m holds one noisy batch, in the coordinates that release m − 1 published for it.
    Predictor and next matrix follow from all sums so far; weights, floors and the centre come
    from the plan.
    """
    plan, documents = published(**{"oracle": dc.PooledRidge(), **form})
    assert len(documents) == 5
    floor, ridge, clear = (float(plan["oracle"][name]) for name in ("floor", "ridge", "clear"))
    middle = literal.middle(form.get("losses", "general"), ACTIONS)
    learned = plan["oracle"]["geometry"] == "learned" and "policy" not in form
    matrix, history = np.eye(WIDTH) if learned else None, []
    for document in documents:
        n, event, sums = document["records"], document["event"], document["statistics"]
        sigma = float(event["multiplier"]) * float(event["sensitivity"])
        assert sums["records"] == n
        assert float(sums["variance"]) == pytest.approx(sigma**2, rel=1e-12)
        public = {
            name: decode_array(sums[name]) if name in sums else None
            for name in ("gram", "response", "matrix", "following", "told", "signal")
        }
        public["gram"] = unpacked(public["gram"])
        # What was fitted is the matrix that was published, to the last bit.
        np.testing.assert_array_equal(public["matrix"], matrix)
        history.append(
            literal.Sums(
                public["gram"], public["response"], n, sigma, public["matrix"], public["told"]
            )
        )
        theta, following, signal = literal.conclusion(history, floor, ridge, clear)
        history[-1].signal = public["signal"]
        weights = decode_array(document["predictor"]["weights"])
        assert_close(weights, uncentred(theta, middle), 1e-9)
        assert_close(public["following"], following, 1e-8)  # integers of 31 bits
        assert_close(public["signal"], signal, 1e-9)
        if document["gram"] is not None:
            assert_close(decode_array(document["gram"]["values"]), public["gram"], 1e-12)
        matrix = public["following"]


def test_void_slots_count_in_the_weight():
    """n is the number of slots: a batch of silence weighs as much as one of answers."""
    case = OracleCase(dc.PooledRidge(), PRIVATE)
    data = batch_for(case, 20)
    silent = replace(data, observed=np.zeros_like(data.observed))
    sums = [chain(case.calibrated, [each])[0].statistics for each in (data, silent)]
    assert sums[0].records == sums[1].records == 20
    assert sums[0].variance == sums[1].variance
    one, two = (geometry.pooled([each], 10.0) for each in sums)
    assert (one.records, one.noise) == (two.records, two.noise)
    # The number of answers is read off the noisy count, and off nothing else.
    assert [each.observed_count for each in sums] == [each.outcome_sums[0] for each in sums]


@pytest.mark.parametrize(
    "wrong", [{"floor": 0.0}, {"ridge": 0.0}, {"clear": -1.0}, {"floor": math.nan}], ids=str
)
def test_numbers_that_mean_nothing_are_refused(wrong):
    with pytest.raises(dc.InvalidInput, match=next(iter(wrong))):
        dc.PooledRidge(**wrong)
