"""Sums of losses and guardrails of policy and control: exact, noisy as declared, and as dear."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import (
    Budget,
    Control,
    FiniteClass,
    Guardrail,
    Logistic,
    Plan,
    Ridge,
    SecureNoise,
    SeededNoise,
    UnitBall,
)
from discreet.audit.second_accountant import agree, epsilon_of, recompute
from discreet.batch import Batch
from discreet.oracles.mechanisms.loss_sums import SENSITIVITY, LossSums, fit_budget
from discreet.privacy.accounting import epsilon, person_event
from discreet.privacy.events import NO_BUDGET, event_json
from discreet.privacy.ledger import Ledger, partitions
from discreet.releases.statistics import COUNT_VARIANCE
from tolerances import EXACT

RAILS = [Guardrail("complaints"), Guardrail("latency", 0, 10), Guardrail("visits", worse="lower")]
SILENT = LossSums(0.0, NO_BUDGET, len(RAILS))
BUDGETS = [Budget(0.5, 1e-5), Budget(1.0, 1e-6), Budget(4.0, 1e-5)]
ORACLES = [None, Ridge(), Logistic(), Logistic(noise="gaussian"), FiniteClass(np.zeros((2, 2, 3)))]
USERS = {"unit": "user", "batches_per_user": 4, "records_per_batch": 1}
EITHER = pytest.mark.parametrize("rails", [None, RAILS], ids=["losses", "guardrails"])


def plan(budget=BUDGETS[1], oracle=None, share=0.1, **rest):
    parts = {} if oracle is None else {"oracle": oracle}
    control = Control(0.25, budget_share=share)
    return Plan(n_actions=2, features=UnitBall(2), budget=budget, control=control, **parts, **rest)


def batch(losses, control, actions=None):
    """Records with these losses, NaN for void slots."""
    losses = np.asarray(losses, dtype=float)
    actions = np.zeros(len(losses), dtype=int) if actions is None else actions
    observed = np.zeros((len(losses), 2), dtype=bool)
    observed[np.arange(len(losses)), actions] = ~np.isnan(losses)
    table = np.full((len(losses), 2), 0.123)
    table[np.arange(len(losses)), actions] = np.nan_to_num(losses)
    return Batch(np.zeros((len(losses), 3)), table, observed, np.asarray(control, dtype=bool))


def guarded(rails, control, losses=None):
    """Records with these guardrails, NaN where one is not observed."""
    losses = np.zeros(len(rails)) if losses is None else losses
    return replace(batch(losses, control), guardrails=np.array(rails, dtype=float))


def loss_sums(rows, noise=None):
    return SILENT.noisy_sums(rows, noise or SecureNoise()).sums


def guardrail_sums(rows, noise=None):
    return SILENT.noisy_guardrails(rows, noise or SecureNoise()).sums


def distance(sums, first, second):
    """Between the sums of two batches, in units of the noise on a sum."""
    moved = sums(first) - sums(second)
    return math.sqrt(float((moved[..., 0] ** 2 + moved[..., 1] ** 2 / COUNT_VARIANCE).sum()))


VALUES = st.one_of(st.floats(0, 1), st.just(math.nan))


@given(st.lists(st.tuples(VALUES, st.booleans(), st.integers(0, 1)), min_size=1, max_size=30))
def test_sums_of_losses_agree_with_a_loop(records):
    losses, control, actions = (np.array(each) for each in zip(*records, strict=True))
    rows = batch(losses, control, actions)
    expected = np.zeros((2, 2))
    for loss, part in zip(losses, control, strict=True):
        if not math.isnan(loss):
            expected[int(part)] += [loss - 0.5, 1.0]
    exact, floating = loss_sums(rows), loss_sums(rows, SeededNoise(0))
    assert np.abs(floating - expected).max() <= EXACT * len(losses)
    assert np.abs(exact - expected).max() <= 2.0**-20 * len(losses)
    assert np.array_equal(exact[:, 1], expected[:, 1])


@given(st.lists(st.tuples(*[VALUES] * 3, st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_sums_of_guardrails_agree_with_a_loop(records):
    expected = np.zeros((3, 2, 2))
    for *rails, part, void in records:
        for number, value in enumerate(rails):
            if not math.isnan(value) and not void:
                expected[number, int(part)] += [value - 0.5, 1.0]
    rows = guarded(
        [record[:3] for record in records],
        [record[3] for record in records],
        [math.nan if record[4] else 0.2 for record in records],
    )
    exact, floating = guardrail_sums(rows), guardrail_sums(rows, SeededNoise(0))
    assert np.array_equal(exact, floating)
    assert np.abs(exact - expected).max() <= 2.0**-20 * len(records)
    assert np.array_equal(exact[..., 1], expected[..., 1])


def test_one_record_moves_the_sums_by_at_most_one_and_this_is_reached():
    reported = [0.0, 0.25, 0.5, 1.0, math.nan]
    found = {
        (one, two, part): distance(loss_sums, batch([one], [part]), batch([two], [part]))
        for one, two, part in itertools.product(reported, reported, (False, True))
    }
    assert max(found.values()) <= SENSITIVITY + EXACT
    assert found[0.0, 1.0, True] == pytest.approx(SENSITIVITY)
    assert found[1.0, math.nan, False] == pytest.approx(SENSITIVITY)  # silence costs no more


@pytest.mark.parametrize("count", [1, 2, 3])
def test_one_record_moves_all_guardrails_by_the_root_of_their_number(count):
    reported = [0.0, 0.25, 1.0, math.nan]
    silence = [math.nan] * (3 - count)
    found = [
        distance(
            guardrail_sums, guarded([[*one, *silence]], [part]), guarded([[*two, *silence]], [part])
        )
        for one, two in itertools.combinations(itertools.product(reported, repeat=count), 2)
        for part in (False, True)
    ]
    event = plan(guardrails=RAILS[:count]).guardrail_sums.event
    assert event.sensitivity == pytest.approx(math.sqrt(count))
    assert max(found) <= event.sensitivity + EXACT
    assert max(found) == pytest.approx(event.sensitivity)
    assert event.coordinates == 2 * count


@given(st.lists(st.floats(), min_size=4, max_size=4), st.booleans(), st.booleans())
@settings(max_examples=50)
def test_hostile_rows_move_no_more(values, part, both):
    silence = guarded([[math.nan] * 3], [part], [math.nan])
    observed = np.array([[True, both]])
    rows = replace(
        guarded([values[:3]], [part]), losses=np.full((1, 2), values[3]), observed=observed
    )
    assert distance(loss_sums, rows, silence) <= SENSITIVITY + EXACT
    assert distance(guardrail_sums, rows, silence) <= math.sqrt(3) + EXACT


def test_a_record_touches_its_own_part_alone():
    before = loss_sums(batch([0.5, math.nan], [False, True]))
    after = loss_sums(batch([0.5, 1.0], [False, True]))
    assert np.array_equal(before[0], after[0])
    assert (after[1] - before[1]).tolist() == [0.5, 1.0]


def test_each_value_is_clamped_before_it_is_added():
    rows = guarded([[50.0, 0.5, 0.5], [-50.0, 0.5, 0.5], [1.0, 0.5, 0.5]], [True] * 3)
    assert guardrail_sums(rows)[0, 1].tolist() == [0.5, 3.0]


def test_guardrails_of_a_void_record_count_nowhere():
    void = guarded([[1.0, 1.0, 1.0]], [False], [math.nan])
    assert not guardrail_sums(void).any()
    assert not guardrail_sums(batch([0.5], [False])).any()  # none was reported


@EITHER
def test_noise_has_the_declared_scale(rails):
    made = plan(guardrails=rails)
    sums = made.guardrail_sums if rails else made.loss_sums
    noisy = sums.noisy_guardrails if rails else sums.noisy_sums
    silent, noise = guarded([[math.nan] * 3], [True], [math.nan]), SecureNoise(fast=True)
    drawn = np.stack([noisy(silent, noise).sums for _ in range(1500)])
    # 1,500 draws estimate a deviation to 1.8 %; a chance of 1e-9 is beyond 6.2 of these.
    declared = sums.event.multiplier * sums.event.sensitivity * np.array([1.0, math.sqrt(4 / 3)])
    assert (np.abs(drawn.std(axis=0) / declared - 1.0) < 0.12).all()
    size = drawn[0].size
    assert np.abs(np.corrcoef(drawn.reshape(1500, size).T) - np.eye(size)).max() < 0.18


def test_shares_of_the_budget_are_as_declared():
    for share in (0.05, 0.1, 0.4):
        made, alone = plan(share=share), plan(share=share)
        alone = replace(alone, control=None)
        fits = alone.event.multiplier**-2
        assert made.mechanism.event.multiplier**-2 == pytest.approx((1 - share) * fits, rel=1e-3)
        assert made.loss_sums.event.multiplier**-2 == pytest.approx(share * fits, rel=1e-2)
    assert fit_budget(Budget.none(), 0.1) == Budget.none()


def test_a_person_pays_one_part_of_each_batch():
    made = plan(**USERS)
    assert epsilon(person_event(made.event, made.participation), 1e-6) <= 1.0
    ledger = Ledger(made.budget, unit="user", participation=made.participation)
    costs = []
    for number in range(1, 8):
        for part in partitions(f"batch {number}", control=True):
            ledger = ledger.charge(part, made.event)
        costs.append(ledger.spent().epsilon)
        assert agree(costs[-1], recompute(ledger.to_json()).epsilon)
    once = epsilon(made.event, 1e-6)
    assert costs[0] == pytest.approx(once)
    assert costs[3] == pytest.approx(1.0, rel=1e-3)
    assert costs[3] == costs[-1]


def test_parts_that_cost_differently_are_both_charged():
    cheap, dear = plan(share=0.05).event, plan(share=0.5).event
    ledger = Ledger(Budget(9.0, 1e-6), unit="user", participation=plan(**USERS).participation)
    ledger = ledger.charge("batch 1, policy", cheap).charge("batch 1, control", dear)
    assert ledger.spent().epsilon > epsilon(dear, 1e-6)
    assert agree(ledger.spent().epsilon, recompute(ledger.to_json()).epsilon)


@EITHER
@pytest.mark.parametrize("oracle", ORACLES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda each: each.text)
def test_fit_losses_and_guardrails_cost_the_budget(budget, oracle, rails):
    made = plan(budget, oracle, guardrails=rails)
    cost = epsilon(made.event, budget.delta)
    assert budget.epsilon * 0.995 <= cost <= budget.epsilon
    assert agree(cost, epsilon_of([event_json(made.event)], budget.delta))


def test_guardrails_have_their_share_of_the_budget():
    whole = replace(plan(), control=None).event.multiplier ** -2
    for share in (0.05, 0.3):
        made = plan(guardrails=RAILS, guardrails_share=share)
        fits, rails, losses = (each.multiplier**-2 / whole for each in made.event.events)
        assert fits == pytest.approx(0.9 - share, rel=1e-3)
        assert rails == pytest.approx(share, rel=1e-2)
        assert losses == pytest.approx(0.1, rel=1e-2)


def test_a_person_pays_for_guardrails_in_each_batch():
    made = plan(guardrails=RAILS, unit="user", batches_per_user=3, records_per_batch=2)
    cost = epsilon(person_event(made.event, made.participation), 1e-6)
    assert 0.995 <= cost <= 1.0
    alone = plan(guardrails=RAILS)
    ratio = made.guardrail_sums.sigma / alone.guardrail_sums.sigma
    assert ratio == pytest.approx(2 * math.sqrt(3), rel=1e-3)
