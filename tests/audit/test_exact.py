"""What is computed: distances, densities, choices, costs; known answers, and faults."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.audit.finding import FAILS, HOLDS, gaussian_epsilon
from discreet.audit.gaussian import (
    GaussianRelease,
    exact_gaussian,
    exact_gram,
    largest_distance,
    shift_of,
)
from discreet.audit.noise_sources import Chosen
from discreet.audit.objective import Objective, exact_gaussian_objective
from discreet.audit.proof_facts import log_probabilities
from discreet.audit.second_accountant import agree, epsilon_of, recompute
from discreet.audit.subjects import MECHANISMS, Subject, subjects
from discreet.errors import CorruptRelease
from discreet.oracles.mechanisms.newton import TOLERANCE
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import ExponentialMechanism, Gaussian, NonPrivate, compose, event_json
from discreet.privacy.sensitivities import ridge_sensitivity

RIDGE = Subject("ridge-structured", "bandit", "general", 2.0)


@pytest.mark.parametrize(
    "subject", [pytest.param(s, id=s.name) for s in subjects(MECHANISMS, [2.0]) if s.ridge]
)
def test_worst_pairs_attain_the_declared_distance(subject):
    apart = GaussianRelease(subject).distance(*subject.worst_pair())
    near = 1e-5 if subject.earlier else 1e-6  # stretched rows are cut off at 20 bits twice
    assert apart == pytest.approx(shift_of(subject.calibrated.event), rel=near)


@pytest.mark.parametrize("mechanism", ["ridge-structured", "ridge-pooled", "default-plan"])
def test_the_reader_gets_back_what_was_summed(mechanism):
    """Statistics read from a release without noise are those of its records, and what is told."""
    subject = replace(RIDGE, mechanism=mechanism)
    seen = GaussianRelease(subject, records=3)
    context, loss = np.array([0.6, 0.8]), 1.0
    read = seen.mean(subject.record(context, loss, 1))
    b = np.array([1.0, 0.6, 0.8]) / math.sqrt(2)
    rows, columns = np.triu_indices(3)
    svec = np.outer(b, b)[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))
    told = [1.0, 0.5, 0.0, 0.0, 0.25, 0.5] if subject.stretched else []
    expected = np.concatenate([np.zeros(6), svec, np.zeros(3), 0.5 * b, told])
    np.testing.assert_allclose(read, expected, atol=2e-6)


@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_the_reader_gets_back_the_noise_of_a_thousand_repaired_releases(feedback):
    """With three times the noise many matrices are indefinite: the fit repairs them."""
    subject = replace(RIDGE, feedback=feedback)
    seen, silence, rng = GaussianRelease(subject), Chosen(), np.random.default_rng(0)
    empty, fit = seen.read.batch(), subject.calibrated.fit
    fit(empty, silence)
    draws = {n: 3.0 * rng.normal(size=(1000, *shape)) for n, shape in silence.requested.items()}
    release = fit(empty, Chosen(draws))
    shifted = release.gram.values + seen.read._public[1] * np.eye(3)
    assert 0.1 < (np.linalg.eigvalsh(shifted)[..., 0] < 0).mean() < 0.5
    expected = np.concatenate([draws[n].reshape(1000, -1) for n in ("gram", "response")], axis=1)
    np.testing.assert_allclose(seen.read(release) / seen.read.sigma, expected, atol=1e-8)


def test_what_was_released_before_does_not_show():
    """Plain rows are those of the batch alone, whatever was pooled with them."""
    subject = replace(RIDGE, mechanism="ridge-pooled")
    read = GaussianRelease(subject).read
    first, second = subject.worst_pair()
    past = subject.calibrated.fit(first, dc.SecureNoise(fast=True)).statistics
    alone = read(subject.calibrated.fit(second, Chosen()))
    later = read(subject.calibrated.fit(second, Chosen(), (past,)))
    np.testing.assert_array_equal(later, alone)


def test_noise_is_declared_for_everything_that_is_told():
    for mechanism, sizes in (("ridge-pooled", [12, 6]), ("ridge-stretched", [12, 6, 6])):
        subject = replace(RIDGE, mechanism=mechanism)
        read, made = GaussianRelease(subject).read, subject.calibrated
        assert [part.stop - part.start for part in read.parts] == sizes
        scales = zip((made.gram, made.response, made.gram), sizes, strict=False)
        assert read.sigma.tolist() == [scale for scale, size in scales for _ in range(size)]


@pytest.mark.parametrize(
    ("mechanism", "weight"),
    [("ridge-structured", 1.0), ("ridge-pooled", 2.0), ("ridge-stretched", 2.0)],
)
def test_the_optimiser_finds_the_constant_of_the_proof(mechanism, weight):
    subject = replace(RIDGE, mechanism=mechanism)
    release = GaussianRelease(subject)
    found = largest_distance(subject, release.distance, starts=1) * subject.calibrated.gram
    proven = ridge_sensitivity("bandit", 2, weight=weight, normalised=subject.stretched)
    assert found == pytest.approx(proven, rel=1e-4)


@pytest.mark.parametrize(
    ("clear", "records"),
    # Bounds are nearly zero and infinite with one record, and close to one with four thousand.
    [*itertools.product((0.0, 0.5, 1.0), (1, 600)), (0.0, 4_000)],
)
def test_no_bounds_of_rows_move_the_constant(clear, records):
    """Shortened rows and losses are legal ones: unit rows attain the constant, none exceeds it."""
    subject = Subject("ridge-stretched", "bandit", "general", 2.0)
    subject.__dict__["earlier"] = subject.past(subject.earlier[-1].following, clear)
    release = GaussianRelease(subject, records)
    found = largest_distance(subject, release.distance, starts=1) * subject.calibrated.gram
    proven = ridge_sensitivity("bandit", 2, weight=2.0, normalised=True)
    assert found == pytest.approx(proven, rel=1e-4)
    assert found <= (1.0 + 1e-9) * proven


def test_losses_inside_are_tried_where_their_squares_are_released():
    """With small responses no pair of losses at the ends is the worst one."""
    subject = Subject("ridge-stretched", "bandit", "general", 2.0)
    oracle = dc.PooledRidge(response_weight=0.125)
    subject.__dict__["calibrated"] = oracle.calibrate(subject.problem, subject.budget)
    release = GaussianRelease(subject)
    found = largest_distance(subject, release.distance, starts=1) * subject.calibrated.gram
    proven = ridge_sensitivity("bandit", 2, weight=0.125, normalised=True)
    assert 0.999 * proven < found <= (1.0 + 1e-9) * proven
    same_action = 2.0 + 2.0 * 0.0625**2 + 0.5 * 0.0625**4 + 0.25
    other_actions = 2.625 + 2.0 * 0.0625**2
    assert found**2 > 1.06 * max(same_action, other_actions)


def test_one_label_needs_rows_at_an_obtuse_angle():
    """2 + 2N + N²/2, N = 1 − 1/A: plain rows, which meet at b·b' ≥ 0, do not reach it."""
    subject = Subject("ridge-stretched", "full", "one_label", 2.0)
    release, N = GaussianRelease(subject), 2 / 3
    found = largest_distance(subject, release.distance, starts=1) * subject.calibrated.gram
    assert found**2 == pytest.approx(2 + 2 * N + N**2 / 2, rel=1e-4)
    without = replace(subject)
    without.__dict__["earlier"] = ()
    release = GaussianRelease(without)
    least = largest_distance(without, release.distance, starts=1) * subject.calibrated.gram
    assert least**2 < found**2 - 0.1


def test_movement_without_noise_is_an_infinite_distance(monkeypatch):
    release = GaussianRelease(RIDGE)
    covariance = release.covariance.copy()
    covariance[1] = covariance[:, 1] = 0.0
    monkeypatch.setitem(release.__dict__, "covariance", covariance)
    assert release.distance(*RIDGE.worst_pair()) == math.inf


@pytest.mark.parametrize("mechanism", ["logistic-gaussian", "logistic-paper"])
@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_the_gram_for_radii_is_tight(mechanism, feedback, monkeypatch):
    """√2 for blocks, √(2A) for A equal blocks of a dense matrix; half its noise is noticed."""
    subject = Subject(mechanism, feedback, "general", 2.0)
    finding = exact_gram(subject, starts=1)
    assert finding.verdict == HOLDS
    assert "share of 1.00000" in finding.said
    halved = replace(subject.calibrated_with_gram, gram=subject.calibrated_with_gram.gram / 2)
    monkeypatch.setitem(subject.__dict__, "calibrated_with_gram", halved)
    assert exact_gram(subject, starts=1).verdict == FAILS


def test_an_exact_finding_states_its_epsilon():
    finding = exact_gaussian(RIDGE, starts=1)
    assert finding.exact == pytest.approx(2.0, abs=1e-3)
    assert finding.exact <= 2.0


@pytest.mark.parametrize("mechanism", ["logistic-gamma", "logistic-gaussian", "logistic-paper"])
@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_ridge_and_scale_are_read_off_the_fit(mechanism, feedback):
    subject = Subject(mechanism, feedback, "general", 1.0)
    objective = Objective(subject, 2)
    total, scale = subject.calibrated._ridge_and_scale(2)
    assert objective.ridge == pytest.approx(float(total), rel=1e-6)
    assert objective.scale == pytest.approx(float(scale), rel=1e-6)
    hidden = getattr(subject.calibrated, "_output_scale", lambda *_: 0.0)(total, TOLERANCE)
    assert objective.output == pytest.approx(float(hidden), rel=1e-6)
    assert (objective.output == 0.0) == (mechanism == "logistic-paper")


@pytest.mark.parametrize("mechanism", ["logistic-gamma", "logistic-gaussian"])
def test_densities_of_two_worlds_have_the_same_integral(mechanism):
    """Over the weights of one action; the other action has no record."""
    subject = Subject(mechanism, "bandit", "general", 2.0)
    objective = Objective(subject, 1)
    reach = 60.0 * objective.scale / objective.ridge
    axis = np.linspace(-reach, reach, 801)
    theta = np.zeros((axis.size**2, 2, 2))
    theta[:, 0] = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    totals = []
    for batch in (subject.record([1.0], 1.0), subject.record([-0.5], 0.3)):
        logs = objective.log_density(theta, batch)
        totals.append(float(np.exp(logs).sum()))
    assert totals[0] == pytest.approx(totals[1], rel=1e-2)


def test_half_the_gaussian_objective_costs_more():
    """Four times the claimed ε of the same noise: the integral scales as it should."""
    one = exact_gaussian_objective(Subject("logistic-gaussian", "bandit", "general", 1.0)).exact
    two = exact_gaussian_objective(Subject("logistic-gaussian", "bandit", "general", 4.0)).exact
    assert 3.0 < two / one < 5.0


def test_probabilities_of_a_choice_sum_to_one():
    subject = Subject("finite", "bandit", "general", 2.0)
    logs = log_probabilities(subject.calibrated, subject.record([1.0], 1.0))
    assert np.exp(logs).sum() == pytest.approx(1.0)
    assert logs[0] - logs[1] == pytest.approx(-1.0)


@pytest.mark.parametrize("subject", [pytest.param(s, id=s.name) for s in subjects(MECHANISMS, [1])])
def test_costs_agree_with_the_ledger(subject):
    event, delta = subject.calibrated.event, subject.budget.delta
    assert agree(epsilon_of([event_json(event)], delta), epsilon(event, delta))


def test_mixed_events_and_radii_agree_with_the_ledger():
    radii = dc.Logistic().calibrate(dc.Problem(3, 11, radii=True), dc.Budget(1.0, 1e-5))
    mixed = compose(Gaussian(4.0, 1.0, 1e-9), Gaussian(6.0, 2.0), ExponentialMechanism(0.25, 1.0))
    for event in (radii.event, mixed):
        assert agree(epsilon_of([event_json(event)], 1e-5), epsilon(event, 1e-5))


def test_a_wrong_cost_is_noticed():
    event = Gaussian(3.73, 1.0)
    true = epsilon(event, 1e-5)
    assert agree(epsilon_of([event_json(event)], 1e-5), true)
    assert not agree(epsilon_of([event_json(Gaussian(3.73 / 1.01, 1.0))], 1e-5), true)
    assert epsilon_of([event_json(NonPrivate("a seed"))], 1e-5) == math.inf
    assert epsilon_of([event_json(event)], 0.0) == math.inf
    assert epsilon_of([event_json(Gaussian(4.0, 1.0, sampler_distance=4e-6))], 1e-5) == math.inf
    assert not agree(1.0, math.inf)


def test_partitions_take_the_maximum_and_charges_on_one_compose():
    release = Gaussian(5.0, 1.0)
    ledger = dc.Ledger(dc.Budget(9.0, 1e-5))
    for partition in ("batch 1", "batch 2", "batch 2", "batch 3"):
        ledger = ledger.charge(partition, release)
    found = recompute(ledger.to_json())
    assert found.partition == "batch 2"
    assert agree(found.epsilon, ledger.spent().epsilon)
    assert found.epsilon == pytest.approx(gaussian_epsilon(math.sqrt(2) / 5, 1e-5), rel=1e-3)
    assert recompute(dc.Ledger(dc.Budget(1.0)).to_json()).epsilon == 0.0


@pytest.mark.parametrize(
    "broken", [{}, {"budget": {}}, {"budget": {"delta": "x"}, "entries": []}, {"entries": 3}]
)
def test_what_is_no_ledger_is_refused(broken):
    with pytest.raises(CorruptRelease):
        recompute(broken)
