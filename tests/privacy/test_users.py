"""A person as the unit: neighbours, calibration, the ledger's rule, and a second opinion on it."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import (
    Budget,
    BudgetExceeded,
    FiniteClass,
    InvalidInput,
    Ledger,
    Logistic,
    PooledRidge,
    ReplayBonusPO,
    Ridge,
    UnitBall,
)
from discreet.audit.second_accountant import agree, recompute
from discreet.errors import CorruptRelease
from discreet.oracles import Problem
from discreet.plan.plan import Plan
from discreet.privacy.accounting import costliest, epsilon, person_event, scaled_event
from discreet.privacy.budget import Participation
from discreet.privacy.calibration import pure_share
from discreet.privacy.events import (
    Composed,
    ExponentialMechanism,
    Gaussian,
    NonPrivate,
    ObjectivePerturbation,
    compose,
)
from tolerances import EXACT
from wording import refused

DELTA = 1e-5
BUDGET = Budget(1.0, DELTA)
SIZES = [(1, 1), (5, 1), (10, 1), (20, 1), (1, 4), (4, 3), (16, 16)]
FINITE = FiniteClass(np.zeros((2, 3, 11)))


def calibrated(oracle, batches, records, budget=BUDGET, **options):
    participation = Participation(batches, records)
    problem = Problem(3, 11, participation=participation, **options)
    return oracle.calibrate(problem, budget)


def copies(event, batches, records):
    """The event of one record, as often as a person has records: no closed form."""
    return compose(*[scaled_event(event, records)] * batches)


# k records in each of M batches.


@pytest.mark.parametrize(("batches", "records"), SIZES)
def test_gaussians_of_a_person_are_one_with_k_root_m_times_the_shift(batches, records):
    one = Gaussian(7.0, 1.5, 1e-12, coordinates=10)
    person = person_event(one, Participation(batches, records))
    assert 1 / person.multiplier == pytest.approx(records * math.sqrt(batches) / 7.0, rel=EXACT)
    assert person.multiplier * person.sensitivity == pytest.approx(7.0 * 1.5, rel=EXACT)  # σ stays
    assert person.sampler_distance == pytest.approx(batches * records * 1e-12, rel=EXACT)
    together = epsilon(copies(one, batches, records), DELTA)
    assert epsilon(person, DELTA) == pytest.approx(together, rel=1e-9)


def test_a_person_costs_what_copies_cost_for_every_kind():
    objective = ObjectivePerturbation("gaussian", kappa=0.01, shift=0.1, blocks=2)
    mixed = compose(objective, Gaussian(30.0, 1.0), ExponentialMechanism(0.02, 1.0))
    for batches in (1, 3, 8):
        found = epsilon(person_event(mixed, Participation(batches, 1)), DELTA)
        assert found == pytest.approx(epsilon(copies(mixed, batches, 1), DELTA), rel=1e-9)
    gamma = ObjectivePerturbation("gamma", epsilon=0.03)
    assert epsilon(person_event(gamma, Participation(4, 3)), 0.0) == pytest.approx(0.36)
    nothing = NonPrivate("seeded")
    assert person_event(nothing, Participation(4, 3)) == nothing


def test_several_records_under_a_gaussian_objective_have_no_bound():
    event = ObjectivePerturbation("gaussian", kappa=0.01, shift=0.1)
    person_event(event, Participation(5, 1))
    with refused(InvalidInput, "records_per_batch must be 1", "got 2", "Ridge", "gamma"):
        person_event(event, Participation(5, 2))


# Calibration.

EVERY = [
    (Ridge(), {}),
    (Ridge(), {"feedback": "full", "losses": "one_label"}),
    (PooledRidge(), {}),
    (Ridge(mechanism="paper"), {}),
    (Logistic(noise="gamma"), {}),
    (Logistic(mechanism="paper"), {}),
    (Logistic(mechanism="paper"), {"radii": True}),
    (FINITE, {}),
]


@pytest.mark.parametrize(("batches", "records"), SIZES)
@pytest.mark.parametrize(("oracle", "options"), EVERY)
def test_all_of_a_person_costs_at_most_the_budget(oracle, options, batches, records):
    event = calibrated(oracle, batches, records, **options).event
    spent = epsilon(copies(event, batches, records), DELTA)
    assert spent <= 1.0
    if "paper" not in str(oracle):  # the paper's conversions are not tight
        assert spent >= 0.999


@pytest.mark.parametrize("options", [{}, {"radii": True}, {"feedback": "full"}])
def test_a_gaussian_objective_composes_by_its_curve(options):
    for batches in (1, 4, 20):
        event = calibrated(Logistic(noise="gaussian"), batches, 1, **options).event
        spent = epsilon(copies(event, batches, 1), DELTA)
        assert 0.999 <= spent <= 1.0
    with refused(InvalidInput, "records_per_batch must be 1"):
        calibrated(Logistic(noise="gaussian"), 4, 2, **options)


@given(st.floats(1e-3, 50), st.integers(1, 400), st.integers(1, 40))
def test_pure_shares_never_exceed_the_budget(level, batches, records):
    share = pure_share(Budget(level), Participation(batches, records))
    total = 0.0
    for _ in range(batches):
        total += share * records
    assert total <= level
    assert total == pytest.approx(level, rel=2e-6)


# Plans.


def planned(**changes):
    base = {"n_actions": 3, "features": UnitBall(10), "budget": BUDGET, "policy": ReplayBonusPO()}
    return Plan(**base | {"unit": "user"} | changes)


def test_an_oracle_that_forgets_the_users_is_refused(monkeypatch):
    def once(self, problem, budget):
        return original(self, Problem(problem.n_actions, problem.p), budget)

    original = Ridge.calibrate
    monkeypatch.setattr(Ridge, "calibrate", once)
    with refused(InvalidInput, "oracle must keep a user within", "Ridge costs ε = 3.6"):
        planned(oracle=Ridge(), batches_per_user=10, records_per_batch=1)


# The ledger.


UNLIMITED = Budget(math.inf, DELTA)


def charged(listed, often, budget=UNLIMITED):
    ledger = Ledger(budget, unit="user", participation=often)
    for number, event in enumerate(listed):
        ledger = ledger.charge(f"batch {number}", event)
    return ledger


def test_a_ledger_of_users_never_ends():
    event = calibrated(PooledRidge(), 5, 2).event
    ledger = charged([event] * 40, Participation(5, 2), BUDGET)
    assert 0.999 <= ledger.spent().epsilon <= 1.0
    assert ledger.spent().relation == Participation(5, 2).relation
    assert Participation(5, 2).assumption in ledger.spent().assumptions
    assert charged([event] * 4, Participation(5, 2), BUDGET).spent().epsilon < 0.95


def test_the_dearest_partitions_count_and_not_the_newest_or_cheapest():
    loud, quiet = Gaussian(8.0, 1.0), Gaussian(40.0, 1.0)
    two = Participation(2, 1)
    expected = epsilon(compose(loud, loud), DELTA)
    for listed in itertools.permutations([loud, quiet, loud, quiet]):
        assert charged(listed, two).spent().epsilon == pytest.approx(expected, rel=EXACT)
    one_loud = charged([quiet, loud, quiet], two).spent().epsilon
    assert one_loud == pytest.approx(epsilon(compose(loud, quiet), DELTA), rel=EXACT)


def test_a_charge_beyond_a_users_budget_is_refused():
    event = calibrated(Ridge(), 5, 1).event
    dear = Gaussian(event.multiplier / 2, 1.0)
    ledger = charged([event] * 9, Participation(5, 1), BUDGET)
    with refused(BudgetExceeded, "'batch 9'", "Nothing was spent"):
        ledger.charge("batch 9", dear)
    with refused(BudgetExceeded, "'batch 3'"):  # fitted again: its own charges compose
        ledger.charge("batch 3", event)
    with refused(BudgetExceeded, "∞"):
        ledger.charge("batch 9", NonPrivate("seeded"))


def test_several_records_without_a_bound_cost_infinity():
    event = ObjectivePerturbation("gaussian", kappa=0.001, shift=0.01)
    assert charged([event], Participation(2, 1)).spent().epsilon < 1.0
    assert charged([event], Participation(2, 2)).spent().epsilon == math.inf
    with refused(BudgetExceeded, "∞"):
        charged([event], Participation(2, 2), BUDGET)


def test_a_ledger_of_users_goes_through_json():
    ledger = charged([Gaussian(9.0, 1.0)] * 3, Participation(2, 4))
    document = json.loads(json.dumps(ledger.to_json()))
    assert document["participation"] == {"batches": 2, "records": 4}
    assert document["relation"] == Participation(2, 4).relation
    assert Ledger.from_json(document) == ledger
    old = Ledger(BUDGET).charge("batch 1", Gaussian(9.0, 1.0)).to_json()
    assert "participation" not in old
    assert Ledger.from_json(old).participation is None
    none, true = {"batches": 0, "records": 1}, {"batches": True, "records": 1}
    for wrong in ({}, {"batches": 2}, none, true):
        with refused(CorruptRelease, "participation must be"):
            Ledger.from_json(document | {"participation": wrong})


MULTIPLIERS = (3.0, 5.0, 11.0)
PARTS = st.one_of(
    st.builds(
        Gaussian, st.sampled_from(MULTIPLIERS), st.just(1.0), st.sampled_from([0.0, 1e-11, 1e-10])
    ),
    st.builds(ExponentialMechanism, st.sampled_from([0.05, 0.2]), st.just(1.0)),
    st.builds(ObjectivePerturbation, st.just("gamma"), st.sampled_from([0.1, 0.3])),
)
CURVES = st.builds(
    lambda kappa, shift, blocks: ObjectivePerturbation(
        "gaussian", kappa=kappa, shift=shift, blocks=blocks
    ),
    st.sampled_from([0.01, 0.05]),
    st.sampled_from([0.05, 0.2]),
    st.sampled_from([1, 2]),
)
EVENTS = st.one_of(PARTS, st.lists(PARTS, min_size=1, max_size=2).map(lambda p: Composed(tuple(p))))
OFTEN = st.builds(Participation, st.integers(1, 4), st.integers(1, 3))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(EVENTS, CURVES), min_size=1, max_size=5), st.integers(1, 4))
def test_no_choice_of_batches_costs_more_than_the_dearest(listed, most):
    """Over all choices that a person could make; equal where all events are of one kind."""
    bound = epsilon(costliest(listed, most), DELTA)
    choices = itertools.combinations(listed, min(most, len(listed)))
    worst = max(epsilon(compose(*choice), DELTA) for choice in choices)
    assert worst <= bound * (1 + 1e-9)
    if all(isinstance(each, Gaussian) and not each.sampler_distance for each in listed):
        assert worst == pytest.approx(bound, rel=1e-9)
    if all(isinstance(each, ExponentialMechanism) for each in listed):
        assert worst == pytest.approx(bound, rel=1e-9)


@settings(max_examples=12, deadline=None)
@given(st.lists(EVENTS, min_size=1, max_size=6), OFTEN)
def test_the_second_accountant_agrees_on_random_ledgers(listed, often):
    ledger = charged(listed, often)
    found = recompute(ledger.to_json())
    assert agree(ledger.spent().epsilon, found.epsilon), (ledger.spent(), found)
    assert found.delta == ledger.spent().delta


@settings(max_examples=8, deadline=None)
@given(st.lists(st.one_of(CURVES, EVENTS), min_size=1, max_size=4), st.integers(1, 3))
def test_the_second_accountant_agrees_on_objectives(listed, batches):
    ledger = charged(listed, Participation(batches, 1))
    assert agree(ledger.spent().epsilon, recompute(ledger.to_json()).epsilon)


def test_the_second_accountant_knows_what_has_no_bound():
    event = ObjectivePerturbation("gaussian", kappa=0.001, shift=0.01)
    for listed in ([event], [Gaussian(9.0, 1.0), NonPrivate("seeded")]):
        ledger = charged(listed, Participation(1, 2))
        assert recompute(ledger.to_json()).epsilon == ledger.spent().epsilon == math.inf
    assert recompute(charged([], Participation(1, 2)).to_json()).epsilon == 0.0
    shown = recompute(charged([Gaussian(9.0, 1.0)] * 5, Participation(2, 1)).to_json())
    assert shown.partition == "the 2 dearest of 5 batches"
    document = charged([Gaussian(9.0, 1.0)], Participation(1, 2)).to_json()
    with refused(CorruptRelease, "ledger must be"):
        recompute(document | {"participation": {"batches": 0, "records": 1}})
