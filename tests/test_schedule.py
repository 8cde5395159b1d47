"""Schedule batches: their lengths, the truncated last one, and how many are fitted."""

import pytest

from discreet import InvalidInput
from discreet.schedule import LONGEST, Schedule
from wording import refused

HORIZONS = range(1, 301)


def literal_lengths(first, horizon):
    """One round after another: a batch ends when it is full or the horizon is reached."""
    lengths, current, room = [], 0, first
    for _ in range(horizon):
        current += 1
        if current == room:
            lengths.append(current)
            current, room = 0, 2 * room
    return [*lengths, current] if current else lengths


@pytest.mark.parametrize("first", [1, 2, 3, 7, 400])
def test_lengths_are_those_of_a_loop_over_rounds(first):
    for horizon in HORIZONS:
        schedule = Schedule(first, horizon)
        lengths = schedule.lengths()
        assert lengths == literal_lengths(first, horizon)
        assert sum(lengths) == horizon
        assert [schedule.start(m + 1) for m in range(len(lengths))] == [
            sum(lengths[:m]) for m in range(len(lengths))
        ]
        assert schedule.length(len(lengths) + 1) == 0


@pytest.mark.parametrize("first", [1, 2, 3, 7, 400])
def test_all_batches_but_the_last_are_fitted(first):
    for horizon in HORIZONS:
        schedule = Schedule(first, horizon)
        fitted = [schedule.fitted(m + 1) for m in range(len(schedule.lengths()))]
        assert fitted == [True] * (len(fitted) - 1) + [False]


def test_a_fitted_batch_is_never_truncated():
    for horizon in HORIZONS:
        schedule = Schedule(1, horizon)
        for number, length in enumerate(schedule.lengths(), start=1):
            assert length == schedule.nominal(number) or not schedule.fitted(number)


def test_an_open_end_doubles_for_ever_and_fits_every_batch():
    schedule = Schedule(first=3)
    assert [schedule.length(m) for m in range(1, 8)] == [3, 6, 12, 24, 48, 96, 192]
    assert [schedule.start(m) for m in range(1, 5)] == [0, 3, 9, 21]
    assert all(schedule.fitted(m) for m in range(1, 60))
    assert schedule.lengths() == []


@pytest.mark.parametrize("first", [1, 3, 4096, LONGEST])
def test_no_batch_is_longer_than_exact_sums_allow(first):
    schedule = Schedule(first=first)
    lengths = [schedule.length(m) for m in range(1, 40)]
    assert max(lengths) == LONGEST == lengths[-1]
    assert lengths == sorted(lengths)
    assert [schedule.start(m) for m in range(1, 40)] == [sum(lengths[:m]) for m in range(39)]


def test_nominal_length_ignores_the_horizon():
    assert Schedule(horizon=10).nominal(4) == 8
    assert Schedule(horizon=10).length(4) == 3


@pytest.mark.parametrize("horizon", [0, -1, 1.0, "10", True])
def test_a_horizon_is_a_positive_whole_number(horizon):
    with refused(InvalidInput, "horizon", repr(horizon), "None if it is open"):
        Schedule(horizon=horizon)


@pytest.mark.parametrize("first", [0, -4, 2.0, None])
def test_a_first_batch_is_a_positive_whole_number(first):
    with refused(InvalidInput, "first_batch", repr(first)):
        Schedule(first=first)
