"""The fast sampler is paid for: as a number in the event, out of δ, within every budget."""

import math

import numpy as np
import pytest

import discreet as dc
from discreet.batch import Batch
from discreet.oracles import Logistic, PooledRidge, Ridge
from discreet.privacy.accounting import epsilon
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import gaussian_multiplier
from discreet.privacy.events import Composed, Gaussian
from discreet.privacy.noise import SecureNoise
from wording import refused

FAST = SecureNoise(fast=True)
ACTIONS, WIDTH = 3, 5


class Spy(SecureNoise):
    """A fast source that remembers the shapes of what it drew on the grid."""

    def __init__(self):
        object.__setattr__(self, "fast", True)
        object.__setattr__(self, "shapes", {})

    def gaussian(self, name, shape, scale):
        self.shapes[name] = shape
        return super().gaussian(name, shape, scale)


def calibrated(oracle, budget, feedback="bandit", radii=False):
    return oracle.calibrate(dc.Problem(ACTIONS, WIDTH, feedback, "general", radii), budget)


def gaussians(event):
    parts = event.events if isinstance(event, Composed) else (event,)
    return [part for part in parts if isinstance(part, Gaussian)]


@pytest.mark.parametrize("feedback", ["bandit", "full"])
@pytest.mark.parametrize(
    ("oracle", "radii"),
    [(Ridge(), False), (Ridge(), True), (PooledRidge(), False), (Logistic(), True)],
    ids=["ridge", "ridge radii", "pooled", "logistic radii"],
)
def test_what_is_charged_is_what_was_drawn(oracle, radii, feedback):
    """All coordinates of the blocks that two neighbours can touch: two of a bandit, else all."""
    made, noise = calibrated(oracle, Budget(1.0, 1e-5), feedback, radii), Spy()
    observed = np.eye(ACTIONS, dtype=bool)[[0, 1]] | (feedback == "full")
    rows = Batch(dc.UnitBall(WIDTH - 1).map(np.eye(2, WIDTH - 1)), np.ones((2, ACTIONS)), observed)
    made.fit(rows, noise)
    sums = noise.shapes.pop("told", ())  # the count, squares, and two numbers of each action
    with_sums = isinstance(oracle, PooledRidge) and feedback == "bandit"
    assert sums == ((2 + 2 * ACTIONS,) if with_sums else ())
    drawn = (2 + 2 * 2 if with_sums else 0) + sum(
        (2 if feedback == "bandit" else blocks) * each for blocks, each in noise.shapes.values()
    )
    event = made.event
    charged = sum(part.coordinates for part in gaussians(event))
    # Full information has one Gram block for all actions; logistic charges for two.
    assert charged == drawn * (
        2 if (feedback, radii, type(made.oracle)) == ("full", True, Logistic) else 1
    )
    before, after = (
        sum(part.sampler_distance for part in gaussians(each))
        for each in (event, noise.claim(event))
    )
    assert after - before == pytest.approx(charged * 1e-15, rel=1e-9)


@pytest.mark.parametrize(("level", "coordinates"), [(0.5, 10), (1.0, 154), (6.0, 500)])
def test_delta_pays_the_derived_amount(level, coordinates):
    """(1 + e^ε)·k·10⁻¹⁵ with the ε of half of δ, and not a bit more or less."""
    delta = 1e-9
    multiplier = gaussian_multiplier(Budget(level, delta))
    event = Gaussian(multiplier, 1.0, coordinates=coordinates)
    bound = epsilon(event, delta / 2)
    taken = (1.0 + math.exp(bound)) * coordinates * 1e-15
    assert 0.0 < taken < delta / 2
    assert epsilon(FAST.claim(event), delta) == epsilon(event, delta - taken)
    assert epsilon(FAST.claim(event), delta) > epsilon(event, delta)


@pytest.mark.parametrize("budget", [Budget(25.0, 1e-5), Budget(1.0, 1e-13)])
def test_no_room_leaves_the_exact_sampler(budget):
    """The plan is made as it always was, and the fast sampler is refused before any data."""
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(10), budget=budget, first_batch=1)
    assert epsilon(plan.mechanism.event, budget.delta) <= budget.epsilon
    learner = dc.Learner(plan)
    learner.observe(learner.decide(np.zeros(10)).id, 1.0)
    learner.release()
    with refused(dc.BudgetExceeded, "without fast"):
        dc.Learner(plan, noise=FAST)
