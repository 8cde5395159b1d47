"""Events say what was done, in JSON and in words, and never more than is true."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.errors import CorruptRelease
from discreet.oracles import FiniteClass, Logistic, Problem, Ridge
from discreet.privacy import events
from discreet.privacy.accounting import epsilon
from discreet.privacy.budget import Budget
from discreet.privacy.noise import SecureNoise, SeededNoise

BUDGET = Budget(1.0, 1e-5)


def event_of(oracle, *, budget=BUDGET, radii=False, feedback="bandit"):
    calibrated = oracle.calibrate(Problem(3, 4, feedback, "general", radii), budget)
    return calibrated.event


MADE = {
    "ridge": event_of(Ridge()),
    "ridge paper": event_of(Ridge(mechanism="paper")),
    "logistic gaussian": event_of(Logistic(noise="gaussian")),
    "logistic radii": event_of(Logistic(), radii=True),
    "logistic full": event_of(Logistic(noise="gaussian"), feedback="full"),
    "logistic gamma": event_of(Logistic(noise="gamma"), budget=Budget(1.0)),
    "logistic paper": event_of(Logistic(mechanism="paper")),
    "logistic paper radii": event_of(Logistic(mechanism="paper"), radii=True),
    "finite": event_of(FiniteClass(np.zeros((2, 3, 4))), budget=Budget(1.0)),
    "none": event_of(Ridge(), budget=Budget.none()),
}


@pytest.mark.parametrize("name", MADE)
def test_round_trip_through_json(name):
    event = MADE[name]
    text = json.dumps(events.event_json(event))
    assert events.event_from_json(json.loads(text)) == event
    assert epsilon(events.event_from_json(json.loads(text)), 1e-5) == epsilon(event, 1e-5)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"kind": "Laplace"},
        {"kind": "Gaussian"},
        {"kind": "Gaussian", "multiplier": "many", "sensitivity": "1.0"},
        {"kind": "Gaussian", "multiplier": "1.0", "sensitivity": "1.0", "extra": 1},
        {"kind": "Composed"},
        {"kind": "Composed", "events": [{"kind": "?"}]},
    ],
)
def test_other_documents_are_refused(document):
    with pytest.raises(CorruptRelease):
        events.event_from_json(document)


def test_structured_events_assume_nothing_or_say_what():
    assert events.assumptions(MADE["ridge"]) == ()
    assert events.assumptions(MADE["finite"]) == ()
    for name in ("logistic gaussian", "logistic radii", "logistic gamma"):
        assumed = events.assumptions(MADE[name])
        assert any("continuous draw" in each for each in assumed)
        assert "exact minimiser" not in assumed


@pytest.mark.parametrize("name", MADE)
def test_seeded_noise_claims_nothing(name):
    claimed = SeededNoise(seed=3).claim(MADE[name])
    assert isinstance(claimed, events.NonPrivate)
    assert epsilon(claimed, 1e-5) == math.inf


@pytest.mark.parametrize("name", MADE)
def test_secure_noise_claims_the_event_and_fast_its_distance(name):
    event = MADE[name]
    assert SecureNoise().claim(event) == event
    claimed = SecureNoise(fast=True).claim(event)
    assert events.assumptions(claimed) == events.assumptions(event)
    parts, drawn = (
        each.events if isinstance(each, events.Composed) else (each,) for each in (event, claimed)
    )
    on_the_grid = [part.coordinates for part in parts if getattr(part, "coordinates", 0)]
    # Bandit blocks of p = 4 for two actions: 10 Gram entries each, and 4 responses.
    assert on_the_grid == {"ridge": [28], "logistic radii": [20]}.get(name, [])
    for before, after in zip(parts, drawn, strict=True):
        if not getattr(before, "coordinates", 0):
            assert after == before  # floats, choices: the fast sampler has no part in them
            continue
        added = before.coordinates * 1e-15
        assert after == replace(before, sampler_distance=before.sampler_distance + added)
    assert epsilon(event, 1e-5) <= epsilon(claimed, 1e-5)
    if name != "none":
        assert epsilon(claimed, 1e-5) <= 1.0


@pytest.mark.parametrize("radii", [False, True])
@pytest.mark.parametrize("n_actions", [2, 10])
def test_full_information_is_charged_for_every_block(n_actions, radii):
    """A blocks cost what A mechanisms cost, each on its own noise, and not what one does."""
    calibrated = Logistic(noise="gaussian").calibrate(
        Problem(n_actions, 4, "full", "general", radii), BUDGET
    )
    objective, *rest = calibrated.event.events
    alone = replace(
        objective,
        blocks=1,
        shift=2.0 / calibrated.sigma,
        kappa=math.log1p(0.25 / calibrated.least_ridge),
    )
    separate = events.compose(*[alone] * n_actions, *rest)
    assert epsilon(separate, 1e-5) == pytest.approx(epsilon(calibrated.event, 1e-5), rel=1e-9)
    assert epsilon(separate, 1e-5) <= BUDGET.epsilon
    assert epsilon(events.compose(alone, *rest), 1e-5) < 0.8 * BUDGET.epsilon
