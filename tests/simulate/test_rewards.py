"""``rewards=``: the runs of the losses that they become, shown in the units of people."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

import discreet as dc
from discreet.errors import InvalidInput
from wording import refused

ROWS, HIGH = 400, 64.0
RNG = np.random.default_rng(3)
CONTEXTS = RNG.uniform(-0.6, 0.6, size=(ROWS, 2))
REWARDS = np.where(RNG.random((ROWS, 3)) < 0.3 + 0.4 * CONTEXTS[:, :1] * [0, 1, -1], 16.0, 0.0)
LOSSES = (HIGH - REWARDS) / HIGH


def plan(outcome=None, **rest):
    outcome = dc.Reward(0, HIGH) if outcome is None else outcome
    basis = {"n_actions": 3, "features": dc.UnitBall(2), "budget": dc.Budget(8.0, 1e-5)}
    return dc.Plan(outcome=outcome, **basis | rest)


def test_rewards_are_the_losses_that_they_become():
    by_reward = dc.evaluate(plan(), CONTEXTS, rewards=REWARDS)
    by_loss = dc.evaluate(plan(), CONTEXTS, losses=LOSSES)
    np.testing.assert_array_equal(by_reward.actions, by_loss.actions)
    np.testing.assert_array_equal(by_reward.losses, by_loss.losses)
    assert by_reward.best_fixed == by_loss.best_fixed == LOSSES.mean(axis=0).min()


def test_values_outside_are_clipped_where_the_plan_says_so():
    far = np.where(REWARDS > 0, 1e4, REWARDS)
    clipped = dc.evaluate(plan(dc.Reward(0, HIGH, clip=True)), CONTEXTS, rewards=far)
    at_end = dc.evaluate(plan(), CONTEXTS, rewards=np.minimum(far, HIGH))
    np.testing.assert_array_equal(clipped.losses, at_end.losses)
    with refused(InvalidInput, "reward must be a number in [0, 64]", "outside"):
        dc.evaluate(plan(), CONTEXTS, rewards=far)


def test_a_frame_has_a_column_for_each_action():
    named = plan(n_actions=None, actions=["none", "mail", "call"])
    frame = pd.DataFrame(REWARDS[:, ::-1], columns=["call", "mail", "none"])
    by_name = dc.evaluate(named, CONTEXTS, rewards=frame)
    np.testing.assert_array_equal(
        by_name.losses, dc.evaluate(plan(), CONTEXTS, rewards=REWARDS).losses
    )


def test_offers_have_a_reward_for_each_offered_action():
    sizes = RNG.integers(1, 4, size=ROWS)
    offers = [list(range(size)) for size in sizes]
    rewards, losses = (
        [each[row, :size].tolist() for row, size in enumerate(sizes)] for each in (REWARDS, LOSSES)
    )
    by_reward = dc.evaluate(plan(), CONTEXTS, rewards=rewards, offers=offers)
    by_loss = dc.evaluate(plan(), CONTEXTS, losses=losses, offers=offers)
    np.testing.assert_array_equal(by_reward.losses, by_loss.losses)
    with refused(InvalidInput, "reward must be a number in [0, 64]", "outside"):
        dc.evaluate(plan(), CONTEXTS, rewards=[[HIGH + 1.0] * s for s in sizes], offers=offers)


def test_a_curve_of_rewards_is_that_of_losses_and_shows_rewards():
    how = {"plan": plan(), "epsilons": [1, math.inf], "seeds": 2, "horizon": 300}
    by_reward = dc.privacy_curve(CONTEXTS, rewards=REWARDS, **how)
    by_loss = dc.privacy_curve(CONTEXTS, losses=LOSSES, **how)
    np.testing.assert_array_equal(by_reward.losses, by_loss.losses)
    best = HIGH * (1 - by_reward.best_fixed)
    assert f"best fixed action {best:.2f}, uniform" in repr(by_reward)
    assert "mean reward" in by_reward._repr_html_()
    assert "mean reward over 300 rounds" in by_reward.plot().get_ylabel()


def test_a_curve_without_a_plan_has_no_range_for_rewards():
    with refused(InvalidInput, "rewards", "Loss(0, 1)", "outcome=Reward(low, high)"):
        dc.privacy_curve(CONTEXTS, rewards=REWARDS)
    with refused(InvalidInput, "got losses and rewards"):
        dc.privacy_curve(CONTEXTS, losses=LOSSES, rewards=REWARDS, plan=plan())
