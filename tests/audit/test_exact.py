"""Computed answers: distances, densities, choices and costs, and faults in them."""

import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.audit import gaussian
from discreet.audit.finding import FAILS, HOLDS, gaussian_epsilon
from discreet.audit.gaussian import (
    exact_gram,
    largest_distance,
    releases_of,
    shift_of,
)
from discreet.audit.noise_sources import Chosen
from discreet.audit.objective import Objective
from discreet.audit.second_accountant import agree, epsilon_of, recompute
from discreet.audit.subjects import MECHANISMS, Subject, subjects
from discreet.errors import CorruptRelease
from discreet.oracles.mechanisms.newton import TOLERANCE
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import Gaussian, NonPrivate, event_json
from discreet.privacy.sensitivities import ridge_sensitivity

RIDGE = Subject("ridge-structured", "bandit", "general", 2.0)


@pytest.mark.parametrize(
    "subject", [pytest.param(s, id=s.name) for s in subjects(MECHANISMS, [2.0]) if s.ridge]
)
def test_worst_pairs_attain_the_declared_distance(subject):
    distance = releases_of(subject).distance(*subject.worst_pair())
    near = 1e-5 if subject.earlier else 1e-6  # stretched rows are cut off at 20 bits twice
    assert distance == pytest.approx(shift_of(subject.calibrated.event), rel=near)


@pytest.mark.parametrize("mechanism", ["ridge-structured", "ridge-pooled", "default-plan"])
def test_the_reader_gets_back_what_was_summed(mechanism):
    """Statistics read from a release without noise are those of its records, and outcome sums."""
    subject = replace(RIDGE, mechanism=mechanism)
    seen = releases_of(subject, records=3)
    context, loss = np.array([0.6, 0.8]), 1.0
    read = seen.mean(subject.record(context, loss, 1))
    b = np.array([1.0, 0.6, 0.8]) / math.sqrt(2)
    rows, columns = np.triu_indices(3)
    svec = np.outer(b, b)[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))
    outcomes = [1.0, 0.5, 0.0, 0.0, 0.25, 0.5] if subject.stretched else []
    expected = np.concatenate([np.zeros(6), svec, np.zeros(3), 0.5 * b, outcomes])
    np.testing.assert_allclose(read, expected, atol=2e-6)


@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_the_reader_gets_back_the_noise_of_a_thousand_repaired_releases(feedback):
    """With three times the noise many matrices are indefinite: the fit repairs them."""
    subject = replace(RIDGE, feedback=feedback)
    seen, silence, rng = releases_of(subject), Chosen(), np.random.default_rng(0)
    empty, fit = seen.batch(), subject.calibrated.fit
    fit(empty, silence)
    draws = {n: 3.0 * rng.normal(size=(1000, *shape)) for n, shape in silence.requested.items()}
    release = fit(empty, Chosen(draws))
    shifted = release.gram.values + seen._offset_and_ridge[1] * np.eye(3)
    assert 0.1 < (np.linalg.eigvalsh(shifted)[..., 0] < 0).mean() < 0.5
    expected = np.concatenate([draws[n].reshape(1000, -1) for n in ("gram", "response")], axis=1)
    np.testing.assert_allclose(seen.read(release) / seen.sigma, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("mechanism", "weight"),
    [("ridge-structured", 1.0), ("ridge-pooled", 2.0), ("ridge-stretched", 2.0)],
)
def test_the_search_finds_the_constant_of_the_proof(mechanism, weight):
    subject = replace(RIDGE, mechanism=mechanism)
    release = releases_of(subject)
    found = largest_distance(subject, release) * subject.calibrated.gram
    proven = ridge_sensitivity("bandit", 2, weight=weight, normalised=subject.stretched)
    assert found == pytest.approx(proven, rel=1e-4)


@pytest.mark.parametrize(
    ("clear", "records"),
    # Bounds are nearly zero and infinite with one record, and close to one with two thousand.
    [(1.0, 1), (0.5, 600), (0.0, 2_000)],
)
def test_no_bounds_of_rows_move_the_constant(clear, records, monkeypatch):
    """Shortened rows and losses are legal ones: unit rows attain the constant, none exceeds it."""
    subject = Subject("ridge-stretched", "bandit", "general", 2.0)
    subject.__dict__["earlier"] = subject.past(subject.earlier[-1].following, clear)
    release = releases_of(subject, records)
    monkeypatch.setattr(gaussian, "ANGLES", 8)
    found = largest_distance(subject, release) * subject.calibrated.gram
    proven = ridge_sensitivity("bandit", 2, weight=2.0, normalised=True)
    assert found == pytest.approx(proven, rel=1e-4)
    assert found <= (1.0 + 1e-9) * proven


def test_movement_without_noise_is_an_infinite_distance(monkeypatch):
    release = releases_of(RIDGE)
    covariance = release.covariance.copy()
    covariance[1] = covariance[:, 1] = 0.0
    monkeypatch.setitem(release.__dict__, "covariance", covariance)
    assert release.distance(*RIDGE.worst_pair()) == math.inf


@pytest.mark.parametrize("mechanism", ["logistic-gaussian", "logistic-paper"])
@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_the_gram_for_radii_is_tight(mechanism, feedback, monkeypatch):
    """√2 for blocks, √(2A) for A equal blocks of a dense matrix; half its noise is noticed."""
    subject = Subject(mechanism, feedback, "general", 2.0)
    finding = exact_gram(subject)
    assert finding.verdict == HOLDS
    assert "share of 1.00000" in finding.said
    halved = replace(subject.calibrated_with_gram, gram=subject.calibrated_with_gram.gram / 2)
    monkeypatch.setitem(subject.__dict__, "calibrated_with_gram", halved)
    assert exact_gram(subject).verdict == FAILS


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
