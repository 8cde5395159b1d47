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
from discreet.audit.noise_sources import Chosen
from discreet.audit.second_accountant import agree, epsilon_of, recompute
from discreet.batch import Batch
from discreet.oracles.mechanisms.loss_sums import SENSITIVITY, LossSums, fit_budget
from discreet.privacy.accounting import epsilon, person_event
from discreet.privacy.events import NO_BUDGET, event_json
from discreet.privacy.ledger import Ledger, partitions
from discreet.releases.statistics import COUNT_VARIANCE
from tolerances import EXACT

NO_NOISE = LossSums(0.0, NO_BUDGET)
BUDGETS = [Budget(0.5, 1e-5), Budget(1.0, 1e-6), Budget(4.0, 1e-5)]
ORACLES = [None, Ridge(), Logistic(), Logistic(noise="gaussian"), FiniteClass(np.zeros((2, 2, 3)))]
USERS = {"unit": "user", "batches_per_user": 4, "records_per_batch": 1}


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


LOSSES = st.lists(
    st.tuples(st.one_of(st.floats(0, 1), st.just(math.nan)), st.booleans(), st.integers(0, 1)),
    min_size=1,
    max_size=30,
)


@given(LOSSES)
def test_exact_and_floating_sums_agree_with_a_loop(records):
    losses, control, actions = (np.array(each) for each in zip(*records, strict=True))
    rows = batch(losses, control, actions)
    expected = np.zeros((2, 2))
    for loss, part in zip(losses, control, strict=True):
        if not math.isnan(loss):
            expected[int(part)] += [loss - 0.5, 1.0]
    exact = NO_NOISE.noisy_sums(rows, SecureNoise()).sums
    floating = NO_NOISE.noisy_sums(rows, SeededNoise(0)).sums
    assert np.abs(floating - expected).max() <= EXACT * len(losses)
    assert np.abs(exact - expected).max() <= 2.0**-20 * len(losses)
    assert np.array_equal(exact[:, 1], expected[:, 1])


def distance(first, second):
    """Between the sums of two batches, in units of the noise on a sum of losses."""
    moved = (
        NO_NOISE.noisy_sums(first, SecureNoise()).sums
        - NO_NOISE.noisy_sums(second, SecureNoise()).sums
    )
    return math.sqrt(float((moved[:, 0] ** 2 + moved[:, 1] ** 2 / COUNT_VARIANCE).sum()))


def test_one_record_moves_the_sums_by_at_most_one_and_this_is_reached():
    told = [0.0, 0.25, 0.5, 1.0, math.nan]
    found = {
        (one, two, part): distance(batch([one], [part]), batch([two], [part]))
        for one, two, part in itertools.product(told, told, (False, True))
    }
    assert max(found.values()) <= SENSITIVITY + EXACT
    assert found[0.0, 1.0, True] == pytest.approx(SENSITIVITY)
    assert found[1.0, math.nan, False] == pytest.approx(SENSITIVITY)  # silence costs no more


@given(st.floats(allow_nan=True, allow_infinity=True), st.booleans(), st.booleans())
@settings(max_examples=50)
def test_hostile_rows_move_no_more(loss, part, both):
    rows = batch([0.5], [part])
    hostile = replace(
        rows, losses=np.full((1, 2), loss), observed=np.array([[True, both]]), control=rows.control
    )
    assert distance(hostile, batch([math.nan], [part])) <= SENSITIVITY + EXACT


def test_a_record_touches_its_own_part_alone():
    before = NO_NOISE.noisy_sums(batch([0.5, math.nan], [False, True]), SecureNoise()).sums
    after = NO_NOISE.noisy_sums(batch([0.5, 1.0], [False, True]), SecureNoise()).sums
    assert np.array_equal(before[0], after[0])
    assert (after[1] - before[1]).tolist() == [0.5, 1.0]


def test_noise_has_the_declared_scale():
    sums, silent = LossSums(7.0, NO_BUDGET), batch([math.nan], [True])
    drawn = np.stack([sums.noisy_sums(silent, SecureNoise(fast=True)).sums for _ in range(1500)])
    scale = drawn.std(axis=0)
    # 1,500 seeded draws estimate a deviation to 1.8 %; six of these are allowed.
    expected = 7.0 * np.array([1.0, math.sqrt(4 / 3)])
    assert (np.abs(scale / expected - 1.0) < 0.11).all()
    correlation = np.corrcoef(drawn.reshape(len(drawn), 4).T) - np.eye(4)
    assert np.abs(correlation).max() < 0.16
    asked = Chosen()
    sums.noisy_sums(silent, asked)
    assert asked.requested == {"part losses": (2, 2)}


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


RAILS = [Guardrail("complaints"), Guardrail("latency", 0, 10), Guardrail("visits", worse="lower")]
SILENT = LossSums(0.0, NO_BUDGET, len(RAILS))
VALUES = st.one_of(st.floats(0, 1), st.just(math.nan))


def guarded(rails, control, losses=None):
    """Records with these guardrails, NaN where one is not observed."""
    losses = np.zeros(len(rails)) if losses is None else losses
    return replace(batch(losses, control), guardrails=np.array(rails, dtype=float))


def guardrail_sums(rows, noise=None):
    return SILENT.noisy_guardrails(rows, noise or SecureNoise()).sums


def guardrail_distance(first, second):
    """Between the guardrails of two batches, in units of the noise on a sum."""
    moved = guardrail_sums(first) - guardrail_sums(second)
    return math.sqrt(float((moved[..., 0] ** 2 + moved[..., 1] ** 2 / COUNT_VARIANCE).sum()))


@given(st.lists(st.tuples(*[VALUES] * 3, st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_sums_of_guardrails_agree_with_a_loop(records):
    expected = np.zeros((3, 2, 2))
    for *rails, part, void in records:
        for place, value in enumerate(rails):
            if not math.isnan(value) and not void:
                expected[place, int(part)] += [value - 0.5, 1.0]
    rows = guarded(
        [record[:3] for record in records],
        [record[3] for record in records],
        [math.nan if record[4] else 0.2 for record in records],
    )
    exact, floating = guardrail_sums(rows), guardrail_sums(rows, SeededNoise(0))
    assert np.array_equal(exact, floating)
    assert np.abs(exact - expected).max() <= 2.0**-20 * len(records)
    assert np.array_equal(exact[..., 1], expected[..., 1])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_one_record_moves_all_guardrails_by_the_root_of_their_number(count):
    reported = [0.0, 0.25, 1.0, math.nan]
    silence = [math.nan] * (3 - count)
    found = {
        (one, two, part): guardrail_distance(
            guarded([[*one, *silence]], [part]), guarded([[*two, *silence]], [part])
        )
        for one, two in itertools.combinations(itertools.product(reported, repeat=count), 2)
        for part in (False, True)
    }
    event = plan(guardrails=RAILS[:count]).guardrail_sums.event
    assert event.sensitivity == pytest.approx(math.sqrt(count))
    assert max(found.values()) <= event.sensitivity + EXACT
    assert max(found.values()) == pytest.approx(event.sensitivity)
    assert event.coordinates == 2 * count


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=3, max_size=3))
@settings(max_examples=50)
def test_hostile_guardrails_move_no_more(values):
    silence = guarded([[math.nan] * 3], [True])
    assert guardrail_distance(guarded([values], [True]), silence) <= math.sqrt(3) + EXACT


def test_each_value_is_clamped_before_it_is_added():
    rows = guarded([[50.0, 0.5, 0.5], [-50.0, 0.5, 0.5], [1.0, 0.5, 0.5]], [True] * 3)
    assert guardrail_sums(rows)[0, 1].tolist() == [0.5, 3.0]


def test_guardrails_of_a_void_record_count_nowhere():
    void = guarded([[1.0, 1.0, 1.0]], [False], [math.nan])
    assert not guardrail_sums(void).any()
    assert not guardrail_sums(batch([0.5], [False])).any()  # nobody reported any


def test_noise_of_guardrails_has_the_declared_scale():
    made = plan(guardrails=RAILS)
    sums, silent = made.guardrail_sums, guarded([[math.nan] * 3], [True])
    noise = SecureNoise(fast=True)
    drawn = np.stack([sums.noisy_guardrails(silent, noise).sums for _ in range(1500)])
    scale = drawn.std(axis=0)
    # 1,500 draws estimate a deviation to 1.8 %; a chance of 1e-9 is beyond 6.2 of these.
    declared = sums.event.multiplier * sums.event.sensitivity * np.array([1.0, math.sqrt(4 / 3)])
    assert (np.abs(scale / declared - 1.0) < 0.12).all()
    assert np.abs(np.corrcoef(drawn.reshape(len(drawn), 12).T) - np.eye(12)).max() < 0.18


@pytest.mark.parametrize("rails", [None, RAILS], ids=["losses", "guardrails"])
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
