"""Learned geometry as an auditor sees it: public matrix and bounds, short rows, one set of axes."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.audit import HOLDS
from discreet.audit.noise_sources import Shared
from discreet.audit.proof_facts import row_bounds, rows_as_published
from discreet.audit.published_documents import WORLDS
from discreet.audit.subjects import Subject, subjects
from discreet.oracles.mechanisms.geometry import pooled, publishable
from discreet.releases.statistics import Statistics

BANDIT = Subject("ridge-stretched", "bandit", "general", 2.0)
STRETCHED = [pytest.param(each, id=each.name) for each in subjects(["ridge-stretched"], [2.0])]
SHRINKING = np.diag([2.0**-6, 1.0, 1.0])


@pytest.mark.parametrize("subject", STRETCHED)
def test_rows_are_stretched_by_the_published_matrix(subject):
    assert rows_as_published(subject).verdict == HOLDS


@pytest.mark.parametrize("subject", STRETCHED)
def test_no_batch_moves_the_matrix_it_meets(subject):
    """The next matrix follows from noisy statistics alone: as they stand in a document."""
    earlier = subject.past(SHRINKING)
    for world in WORLDS:
        batch = subject.crowd(world.answered(40), world.seed)
        made = subject.calibrated.fit(batch, Shared(), earlier)
        assert made.statistics.matrix.tobytes() == SHRINKING.tobytes()
        read = Statistics.from_json(made.statistics.to_json())
        weights, following, signal = subject.calibrated.conclusion(
            (*earlier, replace(read, following=None, signal=None))
        )
        np.testing.assert_array_equal(made.predictor.weights, weights)
        np.testing.assert_array_equal(made.statistics.signal, signal)
        np.testing.assert_array_equal(made.statistics.following, publishable(following))
        assert not np.array_equal(made.statistics.following, SHRINKING)


def test_statistics_are_pooled_in_the_newest_coordinates():
    """The same sums, released in two sets of coordinates, add up as if in one."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 3, 3))
    x = rng.normal(size=(2, 20, 3))
    plain, response = x.mT @ x, x.sum(axis=-2)
    released = [
        Statistics(each @ plain @ each.T, response @ each.T, 20, 0.0, each)
        for each in (first, second)
    ]
    pool = pooled(released, 10.0)
    np.testing.assert_allclose(pool.gram, 2 * second @ plain @ second.T)
    np.testing.assert_allclose(pool.response, 2 * response @ second.T)
    assert pool.records == 40


@pytest.mark.parametrize("subject", STRETCHED)
@pytest.mark.parametrize("records", [1, 600, 10**6])
def test_bounds_follow_from_the_release_before_and_the_size_of_the_batch(subject, records):
    """w = n/(n + k·p·σ²) and 1/w, k = 3·(1000/3)^λ: the audit has the formula a second time."""
    pasts = [(), *(subject.past(SHRINKING, clear) for clear in subject.signals)]
    for earlier in pasts:
        low, high = map(float, subject.calibrated.row_bounds(records, earlier))
        assert (low, high) == pytest.approx(row_bounds(subject, records, earlier), rel=1e-12)
        assert 0.0 < low < 1.0 < high
    first, *later = (float(subject.calibrated.row_bounds(records, each)[0]) for each in pasts)
    assert first == pytest.approx(later[-1])  # before a signal contexts count as clear
    assert later == sorted(later, reverse=True)
    assert len(set(later)) == len(subject.signals)


def test_joint_rows_and_losses_are_divided_alike():
    joint = Subject("ridge-joint", "bandit", "general", 2.0)
    assert joint.signals == (None,)
    assert joint.calibrated.row_bounds(50, joint.earlier) == (1.0, 1.0)
    assert rows_as_published(joint).verdict == HOLDS
