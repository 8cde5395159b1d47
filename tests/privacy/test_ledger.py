"""Ledger: one partition composes, disjoint partitions take the maximum, the budget holds."""

import json
import math

import pytest

from discreet import Budget, BudgetExceeded, Ledger
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import (
    Composed,
    ExponentialMechanism,
    Gaussian,
    NonPrivate,
    ObjectivePerturbation,
)
from discreet.privacy.ledger import DISJOINT
from tolerances import EXACT
from wording import refused

BUDGET = Budget(1.0, 1e-5)
QUIET = Gaussian(multiplier=5.0, sensitivity=1.0)
PURE = ExponentialMechanism(0.4, 1.0)


@pytest.mark.parametrize("batches", [1, 10])
def test_disjoint_batches_cost_as_much_as_one(batches):
    ledger = Ledger(BUDGET)
    for number in range(batches):
        ledger = ledger.charge(f"batch {number + 1}", QUIET)
    assert len(ledger.entries) == batches
    assert ledger.spent().epsilon == epsilon(QUIET, BUDGET.delta)
    assert ledger.spent().delta == BUDGET.delta
    assert DISJOINT in ledger.spent().assumptions


def test_the_same_partition_composes():
    ledger = Ledger(Budget(5.0, 1e-5)).charge("a", QUIET).charge("a", QUIET)
    together = Gaussian(multiplier=5.0 / math.sqrt(2), sensitivity=1.0)
    assert ledger.spent().epsilon == pytest.approx(epsilon(together, 1e-5), rel=EXACT)


def test_pure_charges_add_up_and_need_no_delta():
    ledger = Ledger(Budget(1.0)).charge("a", PURE).charge("a", PURE)
    assert ledger.spent().epsilon == pytest.approx(0.8, rel=EXACT)
    assert ledger.spent().delta == 0.0
    with refused(BudgetExceeded, "'a'", "within the budget, ε = 1;"):
        ledger.charge("a", PURE)


def test_a_charge_beyond_the_budget_changes_nothing():
    ledger = Ledger(BUDGET).charge("a", QUIET)
    before = ledger.to_json()
    with refused(BudgetExceeded, "'a'", "budget, ε = 1", "Nothing was spent"):
        ledger.charge("a", QUIET)
    assert ledger.to_json() == before
    assert ledger.charge("b", QUIET).spent().epsilon == ledger.spent().epsilon


def test_an_event_without_privacy_fits_only_an_infinite_budget():
    event = NonPrivate("seeded")
    assert Ledger(Budget.none()).charge("a", event).spent().epsilon == math.inf
    with refused(BudgetExceeded, "∞"):
        Ledger(Budget(1e9, 0.5)).charge("a", event)


def test_the_ledger_repeats_units_and_what_its_events_assume():
    assuming = Gaussian(5.0, 1.0, assumes=("real arithmetic",))
    ledger = Ledger(BUDGET, unit="visit").charge("a", assuming)
    ledger = ledger.charge("b", assuming, unit="person")
    assert ledger.spent().assumptions == (DISJOINT, "real arithmetic")
    assert [entry.unit for entry in ledger.entries] == ["visit", "person"]
    assert ledger.spent().unit == "visit"


def test_round_trip_through_json():
    ledger = Ledger(Budget(3.0, 1e-5), unit="visit")
    ledger = ledger.charge("a", Composed((QUIET, PURE)))
    ledger = ledger.charge("b", ObjectivePerturbation("gamma", epsilon=1.0, assumes=("x", "y")))
    ledger = ledger.charge("c", QUIET, unit="person")
    document = json.loads(json.dumps(ledger.to_json(), allow_nan=False))
    assert Ledger.from_json(document) == ledger
    assert Ledger.from_json(document).to_json() == ledger.to_json()
    forever = Ledger(Budget.none()).charge("a", NonPrivate("why"))
    document = json.loads(json.dumps(forever.to_json(), allow_nan=False))
    assert Ledger.from_json(document) == forever
