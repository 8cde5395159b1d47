"""Many releases in one fit are the releases of many fits, draw for draw."""

import numpy as np
import pytest

from discreet.audit.noise_sources import Chosen, Trials
from discreet.audit.subjects import MECHANISMS, joined, subjects
from discreet.privacy.noise import SecureNoise
from tolerances import EXACT, SOLVER

COUNT = 5
EVERY = [pytest.param(each, id=each.name) for each in subjects(MECHANISMS, [2.0])]


class Replayed(Chosen):
    """One of the draws of a stack, or all of them."""

    def __init__(self, stacks, one=None):
        super().__init__()
        self.stacks, self.one = stacks, one

    def normal(self, name, shape):
        if name not in self.stacks:
            rng = np.random.default_rng(len(name))
            self.stacks[name] = rng.normal(size=(COUNT, *shape))
        drawn = self.stacks[name]
        return drawn if self.one is None else drawn[self.one]

    def choose(self, name, scores, scale):
        super().choose(name, scores, scale)
        picked = np.arange(COUNT) % len(scores)
        return picked if self.one is None else picked[self.one]


@pytest.mark.parametrize("subject", EVERY)
def test_stacked_releases_are_single_ones(subject):
    first, second = subject.worst_pair()
    batch, stacks = joined(first, second, first), {}
    together = subject.calibrated.fit(batch, Replayed(stacks))
    assert together.predictor.weights.shape[0] == COUNT
    for number in range(COUNT):
        alone = subject.calibrated.fit(batch, Replayed(stacks, number))
        near = SOLVER if subject.mechanism.startswith("logistic") else EXACT
        np.testing.assert_allclose(
            together.predictor.weights[number], alone.predictor.weights, rtol=near, atol=near
        )
        if alone.gram is not None:
            np.testing.assert_array_equal(together.gram.values[number], alone.gram.values)


@pytest.mark.parametrize("fast", [False, True])
def test_every_trial_has_draws_of_its_own(fast):
    noise = Trials(SecureNoise(fast=fast), 4)
    for drawn in (
        noise.gaussian("any", (2, 3), 2.0**41),
        noise.normal("any", (2, 3)),
        noise.ball("any", (2, 3)),
    ):
        assert drawn.shape == (4, 2, 3)
        assert np.unique(drawn).size == drawn.size


def test_choices_are_made_one_by_one():
    noise = Trials(SecureNoise(), 50)
    assert noise.choose("any", np.array([0, 2**40]), np.asarray(1.0)).tolist() == [0] * 50
