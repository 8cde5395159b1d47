"""Many releases in one fit are the releases of many fits, draw for draw."""

import numpy as np
import pytest

from discreet.audit.noise_sources import Chosen, Trials
from discreet.audit.subjects import MECHANISMS, joined, subjects
from discreet.privacy.noise import SecureNoise
from tolerances import EXACT, SOLVER

COUNT = 5
EVERY = [
    pytest.param(each, id=each.name)
    for each in subjects(MECHANISMS, [2.0])
    if each.mechanism != "finite"  # which chooses
]


@pytest.mark.parametrize("subject", EVERY)
def test_stacked_releases_are_single_ones(subject):
    first, second = subject.worst_pair()
    batch, silence, rng = joined(first, second, first), Chosen(), np.random.default_rng(0)
    subject.calibrated.fit(batch, silence)
    stacks = {n: rng.normal(size=(COUNT, *shape)) for n, shape in silence.requested.items()}
    together = subject.calibrated.fit(batch, Chosen(stacks))
    assert together.predictor.weights.shape[0] == COUNT
    for number in range(COUNT):
        draws = {name: stack[number] for name, stack in stacks.items()}
        alone = subject.calibrated.fit(batch, Chosen(draws))
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
