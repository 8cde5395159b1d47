"""A stack of policies, oracles or plans is one with arrays for parameters."""

from __future__ import annotations

from dataclasses import fields
from itertools import product

import numpy as np
import pytest

import discreet as dc
from catalogue import ACTIONS, ORACLES, WIDTH, every_policy_stack, plan_of
from discreet.arrays.stacking import structure, structures
from discreet.lab.campaign.grid import Grid, plans_of
from discreet.lab.campaign.presets import PAPER_POLICIES
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import NonPrivate


@pytest.mark.parametrize("policies", every_policy_stack)
def test_floats_become_arrays_and_words_stay(policies):
    stacked = dc.stack(policies)
    assert type(stacked) is type(policies[0])
    for each in fields(stacked):
        values = [getattr(policy, each.name) for policy in policies]
        if isinstance(values[0], float):
            np.testing.assert_array_equal(getattr(stacked, each.name), values)
        else:
            assert getattr(stacked, each.name) == values[0]


def test_whole_numbers_are_parameters_where_floats_are_expected():
    stacked = dc.stack([dc.SquareCB(scale=1), dc.SquareCB(scale=4.0), dc.SquareCB(scale=16)])
    np.testing.assert_array_equal(stacked.scale, [1.0, 4.0, 16.0])
    assert structure(dc.SquareCB(scale=1)) == structure(dc.SquareCB(scale=4.0))


def test_the_structures_of_a_grid_are_those_of_its_members():
    """Parts that members share are read once, also where they differ in what is around them."""
    named = {"algorithms": PAPER_POLICIES, "mechanism": "structured"}
    plans = plans_of(Grid.of("paper", epsilons=(1.0,), **named), 2, 3)
    for parts in ([plan.mechanism for plan in plans], [plan.policy for plan in plans]):
        assert len({id(part) for part in parts}) > len(set(structures(parts))) > 1
        assert structures(parts) == [structure(part) for part in parts]


@pytest.mark.parametrize(
    "items",
    [
        [],
        [dc.SquareCB(), dc.FastCB()],
        [dc.VanillaPO(), dc.VanillaPO(rollout="previous")],
        [ORACLES["Ridge-structured-private"].calibrated, dc.Ridge()],
        [dc.FiniteClass(np.zeros((1, 2, 2))), dc.FiniteClass(np.ones((1, 2, 2)))],
    ],
    ids=["nothing", "two classes", "two rollouts", "a mechanism and an oracle", "two arrays"],
)
def test_what_does_not_stack_is_refused(items):
    with pytest.raises(dc.InvalidInput, match="stack"):
        dc.stack(items)


BUDGETS = [dc.Budget(1.0, 1e-5), dc.Budget(8.0, 1e-5), dc.Budget.none()]


@pytest.mark.parametrize("geometry", ["learned", "plain"])
def test_plans_stack_across_budgets_with_zero_noise_at_infinity(geometry):
    pairs = zip((1.0, 2.0, 4.0), BUDGETS, strict=True)
    oracle = dc.PooledRidge(geometry=geometry)
    plans = [plan_of(dc.SquareCB(scale=scale), oracle, budget) for scale, budget in pairs]
    stacked = dc.stack(plans)
    np.testing.assert_array_equal(stacked.policy.scale, [1.0, 2.0, 4.0])
    np.testing.assert_array_equal(stacked.mechanism.gram, [plan.mechanism.gram for plan in plans])
    assert stacked.mechanism.gram[2] == 0.0
    assert stacked.n_actions == ACTIONS
    assert stacked.mechanism.stretched == (geometry == "learned")


def test_a_stack_claims_no_privacy():
    """No one budget covers many runs on the same rows, so a stack's event costs infinity."""
    plans = [plan_of(dc.SquareCB(scale=scale), budget=BUDGETS[0]) for scale in (1.0, 2.0)]
    event = dc.stack([plan.mechanism for plan in plans]).event
    assert isinstance(event, NonPrivate)
    assert epsilon(event, 1e-5) == float("inf")
    assert epsilon(plans[0].mechanism.event, 1e-5) <= 1.0


def test_structure_tells_what_can_be_stacked():
    for items in product([case.calibrated for case in ORACLES.values()], repeat=2):
        if structure(items[0]) == structure(items[1]):
            dc.stack(items)
        else:
            with pytest.raises(dc.InvalidInput):
                dc.stack(items)
    assert hash(structure(dc.FiniteClass(np.zeros((2, ACTIONS, WIDTH)))))
