"""An oracle of one's own: the contract is all that plans, learners, runs and stacks ask of it."""

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

import discreet as dc
from catalogue import ACTIONS, FEATURES, contexts
from discreet.oracles.mechanisms.legal_rows import legal_rows
from discreet.privacy.calibration import gaussian_multiplier, smallest_scale
from discreet.privacy.events import NO_BUDGET, STACKED, Event, Gaussian
from discreet.releases.release import Fit, Predictor
from discreet.simulate.engine import run


@dataclass(frozen=True)
class NoisyMeans:
    """The mean loss of each action, whatever the context."""

    prior: float = 10.0

    bounded = True

    def calibrate(self, problem, budget):
        if not budget.private:
            return Means(self, problem, 0.0, NO_BUDGET)
        event_at = partial(Gaussian, sensitivity=math.sqrt(2.0 * problem.losses_per_record))
        event = event_at(smallest_scale(event_at, budget, gaussian_multiplier(budget)))
        return Means(self, problem, event.multiplier * event.sensitivity, event)


@dataclass(frozen=True)
class Means:
    oracle: NoisyMeans
    problem: dc.Problem
    sigma: float
    event: Event = field(metadata={"stacked": STACKED})

    @property
    def noise_norm(self):
        return float(self.sigma)

    def fit(self, batch, noise, _earlier=None):
        losses = np.where(batch.observed, batch.losses, 0.0).sum(axis=-2)
        if noise.exact:
            legal = legal_rows(batch, self.problem.feedback, self.problem.losses)
            losses = (legal.weights * legal.targets).sum(axis=-2)
        drawn = np.asarray(self.sigma)[..., None] * noise.normal("means", (ACTIONS,))
        prior = np.asarray(self.oracle.prior)[..., None]
        means = (losses + drawn) / (batch.records / ACTIONS + prior)
        weights = np.zeros((*means.shape, batch.features.shape[-1]))
        weights[..., 0] = means * np.sqrt(2.0)
        return Fit(Predictor(weights, "clip"))


@pytest.fixture(autouse=True)
def registered(own_classes):  # noqa: ARG001
    dc.register(NoisyMeans)


def plan_of(prior=10.0, level=8.0):
    return dc.Plan(
        n_actions=ACTIONS,
        features=FEATURES,
        policy=dc.SquareCB(),
        oracle=NoisyMeans(prior),
        budget=dc.Budget(level, 1e-5),
        first_batch=1,
        growth=2.0,
    )


def test_it_meets_the_contract_and_a_string_does_not():
    assert isinstance(NoisyMeans(), dc.Oracle)
    assert not isinstance("NoisyMeans", dc.Oracle)
    assert not isinstance(plan_of().mechanism, dc.Oracle)


def test_runs_stack_like_those_of_any_oracle():
    x, y = contexts(200), np.random.default_rng(0).integers(ACTIONS, size=200)
    made = [plan_of(prior, level) for prior, level in ((1.0, 8.0), (5.0, 1.0), (20.0, np.inf))]
    together = run(made, FEATURES.map(x), y, [0, 1])
    for r, plan in enumerate(made):
        for seed in (0, 1):
            alone = dc.evaluate(plan, x, y, seed=seed)
            assert together[r, seed, -1] == pytest.approx(alone.loss, abs=1e-12)
