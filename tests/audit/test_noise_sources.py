"""Noise that an audit shares out: which releases may meet the same draws, and which may not."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from discreet.audit import black_box
from discreet.audit.noise_sources import DrawnAhead, Replayed
from discreet.audit.subjects import subjects
from discreet.privacy.events import Gaussian
from discreet.privacy.noise import SecureNoise

SCALE = 2.0**30
SOURCE = SecureNoise(fast=True)


def asked(source, name="gram", scale=SCALE):
    return source.gaussian(name, (50, 3), scale)


def test_a_second_world_meets_the_draws_of_the_first():
    source = Replayed(SOURCE)
    names = ("gram", "gram", "response")
    first = [asked(source, name) for name in names]
    source.rewind()
    assert all(asked(source, name) is one for name, one in zip(names, first, strict=True))
    assert not (first[0] == first[1]).any()  # within a world every draw is made anew


@pytest.mark.parametrize("other", [{"name": "told"}, {"scale": 2 * SCALE}])
def test_a_world_that_asks_for_something_else_gets_draws_of_its_own(other):
    source = Replayed(SOURCE)
    first = asked(source), asked(source)
    source.rewind()
    second = asked(source, **other), asked(source)
    assert not any((one == two).any() for one, two in zip(first, second, strict=True))


def test_what_a_second_world_will_meet_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        asked(Replayed(SOURCE)).fill(0)


def test_draws_made_ahead_are_handed_out_once():
    source = DrawnAhead(SOURCE, runs=4)
    drawn = np.stack([asked(source) for _ in range(10)]).reshape(10, -1)
    assert len(np.unique(drawn)) == drawn.size
    assert asked(source, scale=8 * SCALE).std() > 4 * asked(source).std()


@pytest.mark.parametrize("source", [Replayed(SOURCE), DrawnAhead(SOURCE, 2)])
def test_all_else_is_that_of_the_source(source):
    event = Gaussian(3.0, 1.0, 1e-9, coordinates=4)
    assert source.exact
    assert source.claim(event) == SOURCE.claim(event) != event
    assert source.for_batch(2) is source
    assert source.normal("any", (2, 3)).shape == source.ball("any", (2, 3)).shape == (2, 3)
    assert source.choose("any", np.array([0, 10**6]), 1.0) == 0


@dataclass(frozen=True)
class Counting(SecureNoise):
    """How many numbers each draw has."""

    drawn: list[int] = field(default_factory=list)

    def gaussian(self, name, shape, scale):
        self.drawn.append(shape[0])
        return super().gaussian(name, shape, scale)


def test_an_attack_gives_both_worlds_the_same_noise_and_every_trial_its_own(monkeypatch):
    monkeypatch.setattr(black_box, "_AT_ONCE", 100)
    (subject,) = subjects(["ridge-joint"], [4.0])
    plan = black_box._gaussian_plan(subject, 250)
    noise = Counting(fast=True)
    first, _, score = plan.batches[0]
    hits = black_box.hits_of(replace(plan, batches=[(first, first, score)]), 250, noise)
    assert 0 < hits.first == hits.second < 250
    assert sum(noise.drawn) == 250 * len(("gram", "response", "told"))
