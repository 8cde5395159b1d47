"""The set, the plans and the run that adapters are compared with."""

from dataclasses import replace

import numpy as np

import discreet as dc

ROWS, SEED = 300, 3
rng = np.random.default_rng(0)
CONTEXTS = rng.uniform(-0.7, 0.7, size=(ROWS, 4)).round(6)
LABELS = (CONTEXTS[:, 0] > 0).astype(int) + (CONTEXTS[:, 1] > 0.3)
TABLE = rng.uniform(size=(ROWS, 3)).round(4)
"""Losses in [0, 1], finer than labels; coba writes results with five digits."""
PLAN = dc.Plan(
    n_actions=3, features=dc.UnitBall(4), budget=dc.Budget(4.0, delta=1e-5), horizon=ROWS
)
PLANS = {
    "defaults": PLAN,
    "SquareCB and Ridge": replace(PLAN, policy=dc.SquareCB(scale=16.0), oracle=dc.Ridge()),
    "VanillaPO and Logistic": replace(PLAN, policy=dc.VanillaPO(), oracle=dc.Logistic()),
    "rewards": replace(PLAN, outcome=dc.Reward(-2.0, 3.0)),
}


def rewards_of(plan, losses):
    """What another library reports for losses in [0, 1]."""
    return 3.0 - 5.0 * losses if isinstance(plan.outcome, dc.Reward) else 1.0 - losses


def loss_of(plan, reward):
    """The loss in [0, 1] of a mean reward."""
    return (3.0 - reward) / 5.0 if isinstance(plan.outcome, dc.Reward) else 1.0 - reward
