"""Schedule batches: their lengths, the truncated last one, and how many are fitted."""

import math
from fractions import Fraction

import pytest

from discreet import InvalidInput
from discreet.design.schedule import LONGEST, Schedule
from small_plans import small_plan
from wording import refused

HORIZONS = range(1, 301)
GROWTHS = pytest.mark.parametrize("growth", [2.0, 1.5, 1.1, 3.0, 16.0])


def literal_lengths(first, horizon, growth):
    """One round after another: a batch ends when it is full or the horizon is reached."""
    lengths, current, room = [], 0, first
    for _ in range(horizon):
        current += 1
        if current == room:
            lengths.append(current)
            # The exact product of two floats, rounded as every language rounds it, and then up.
            grown = math.ceil(float(Fraction(growth) * room))
            current, room = 0, max(room + 1, grown)
    return [*lengths, current] if current else lengths


@GROWTHS
@pytest.mark.parametrize("first", [1, 2, 3, 7, 16, 400])
def test_lengths_are_those_of_a_loop_over_rounds_and_all_but_the_last_are_fitted(first, growth):
    for horizon in HORIZONS:
        schedule = Schedule(first, horizon, growth)
        lengths = schedule.lengths()
        assert lengths == literal_lengths(first, horizon, growth)
        assert sum(lengths) == horizon
        numbers = range(len(lengths))
        assert [schedule.start(m + 1) for m in numbers] == [sum(lengths[:m]) for m in numbers]
        assert schedule.length(len(lengths) + 1) == 0
        assert [schedule.fitted(m + 1) for m in numbers] == [*[True] * (len(lengths) - 1), False]


@GROWTHS
@pytest.mark.parametrize("first", [1, 3, 4096, LONGEST])
def test_no_batch_is_longer_than_exact_sums_allow(first, growth):
    schedule = Schedule(first=first, growth=growth)
    lengths = [schedule.length(m) for m in range(1, 181)]
    assert max(lengths) == LONGEST == lengths[-1]
    assert lengths == sorted(lengths)
    growing = [each for each in lengths if each < LONGEST]
    assert growing == sorted(set(growing))  # each is longer than the one before
    assert [schedule.start(m) for m in range(1, 181)] == [sum(lengths[:m]) for m in range(180)]


@GROWTHS
@pytest.mark.parametrize(("first", "longest"), [(1, 1), (1, 5), (3, 20), (16, 40), (7, 7)])
def test_batches_grow_to_the_longest_and_stay_there(first, longest, growth):
    grows, stays = Schedule(first, growth=growth), Schedule(first, growth=growth, longest=longest)
    lengths = [stays.length(m) for m in range(1, 60)]
    assert lengths == [min(grows.length(m), longest) for m in range(1, 60)]
    assert lengths[-1] == longest
    assert [stays.start(m) for m in range(1, 60)] == [sum(lengths[:m]) for m in range(59)]
    for horizon in HORIZONS[::5]:
        cut = Schedule(first, horizon, growth, longest)
        assert sum(cut.lengths()) == horizon
        assert cut.lengths()[:-1] == lengths[: len(cut.lengths()) - 1] or horizon > sum(lengths)
        fitted = [cut.fitted(m + 1) for m in range(len(cut.lengths()))]
        assert fitted == [True] * (len(fitted) - 1) + [False]


def test_a_schedule_is_read_from_a_plan_with_and_without_a_longest_batch():
    for longest in (None, 64):
        plan = small_plan(longest_batch=longest)
        assert ("longest_batch" in plan.to_config()) == (longest is not None)
        assert Schedule.of_plan(plan.to_config()) == plan.schedule


@pytest.mark.parametrize(
    ("name", "numbers"),
    {
        "longest": [0, 2.0, True, "64", 15, LONGEST + 1],
        "growth": [1.0, 1.09, 16.1, 0.0, -2.0, math.nan, math.inf],
        "horizon": [0, -1, 1.0, "10", True],
        "first": [0, -4, 2.0, None],
        "half_life": [0, -1, 1.5, True, "8"],
        "imported": [0, 1.5, 2**40 + 1],
    }.items(),
)
def test_numbers_of_a_schedule_lie_in_their_ranges(name, numbers):
    for number in numbers:
        with refused(InvalidInput, name, repr(number)):
            Schedule(**{"first": 16, name: number})


VECTORS = [
    (1, 2.0, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
    (16, 1.5, [16, 24, 36, 54, 81, 122, 183, 275, 413, 620, 930, 1395, 2093, 3140]),
    (16, 1.1, [16, 18, 20, 22, 25, 28, 31, 35, 39, 43, 48, 53]),
    (1, 1.1, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13]),
    (10, 1.4, [10, 14, 20, 28, 40, 56, 79, 111, 156, 219]),
    (3, 3.0, [3, 9, 27, 81, 243, 729, 2187, 6561, 19683]),
    (7, 16.0, [7, 112, 1792, 28672, 458752, LONGEST]),
    (1000, 1.7, [1000, 1700, 2890, 4913, 8353, 14201, 24142, 41042, 69772, 118613, 201643]),
]
"""First batch, growth, lengths, as a loop in JavaScript counts them."""


@pytest.mark.parametrize(("first", "growth", "lengths"), VECTORS)
def test_javascript_counts_the_same_lengths(first, growth, lengths):
    schedule = Schedule(first, growth=growth)
    assert [schedule.length(m) for m in range(1, len(lengths) + 1)] == lengths
    cut = Schedule(first, sum(lengths) - 1, growth)
    assert cut.lengths() == [each for each in (*lengths[:-1], lengths[-1] - 1) if each]
