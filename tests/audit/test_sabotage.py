"""Faults injected into the shipped code, of kinds that tests/sabotage does not show to an audit.

Each meets questions that a quick audit asks of the mechanism it touches, with the error rate of all
such questions. What is caught by computation is caught always. What is caught by sampling has
seeded draws, or, in separate processes, faults that correlate draws fully.
"""

from dataclasses import replace

import numpy as np
import pytest

from discreet import learner as learner_module
from discreet.audit import HOLDS, QUICK, answers, checks, error_rate, proof_facts, suite
from discreet.audit.noise_sources import Chosen
from discreet.oracles.mechanisms.logistic import PaperLogistic, StructuredLogistic
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.privacy.noise import SecureNoise

NO_RUNS = replace(QUICK, runs=())
RUNS_ALONE = {"effort": replace(QUICK, epsilons=()), "only": ""}


def caught(mechanism, part, question, *, effort=NO_RUNS, only="feedback='bandit'", **fewer):
    """Return whether a question fails, by the name of its function, for subjects with ``only``."""
    listed = [each for each in checks(effort, [mechanism], [part]) if only in repr(each.subject)]
    chosen = [check for check in listed if check.name == question]
    assert chosen
    return any(check.finding(error_rate(listed), **fewer).failed for check in chosen)


@pytest.fixture
def instead(monkeypatch):
    """Replace a function by ``change(function, *arguments)``."""

    def put(change, *places):
        for owner, name in places:
            full = getattr(owner, name)
            monkeypatch.setattr(owner, name, lambda *given, full=full: change(full, *given))

    return put


def halved(full, *given):
    return full(*given) / 2


EITHER_RIDGE = pytest.mark.parametrize(
    "mechanism", ["ridge-pooled", pytest.param("ridge-structured", marks=pytest.mark.long)]
)
"""The black box of the second draws 20,000 releases with the exact sampler."""


@EITHER_RIDGE
def test_halved_noise_in_the_sampler(mechanism, instead):
    instead(lambda full, *given: full(*given) // 2, (SecureNoise, "gaussian"))
    assert caught("ridge-structured", "noise", "scale_and_shape")
    assert caught(mechanism, "black box", "black_box")


@pytest.mark.parametrize("mechanism", ["logistic-gamma", "logistic-gaussian", "logistic-paper"])
def test_halved_noise_of_an_objective(mechanism, instead):
    """In the sampler it shows in the noise; in the scale, exactly (or in the integral)."""
    instead(halved, (SecureNoise, "normal"), (SecureNoise, "ball"))
    assert caught(mechanism, "noise", "scale_and_shape")


@pytest.mark.parametrize(
    ("mechanism", "kind", "share", "question"),
    [
        ("logistic-gamma", StructuredLogistic, 2, "exact_pure"),
        ("logistic-paper", PaperLogistic, 4, "exact_pure"),
        ("logistic-gaussian", StructuredLogistic, 3, "exact_gaussian_objective"),
    ],
)
def test_a_smaller_scale_of_an_objective(mechanism, kind, share, question, instead):
    """Half the noise of the structured mechanism; less of those that have slack."""

    def less(full, *given):
        total, scale = full(*given)
        return total, scale / share

    instead(less, (kind, "_ridge_and_scale"))
    assert caught(mechanism, "exact", question)


def test_a_sharper_choice(instead):
    instead(lambda full, *given: full(*given[:-1], given[-1] / 2), (SecureNoise, "choose"))
    assert caught("finite", "noise", "choice")
    # 79 hits are expected in the first world, and a miss needs about 168.
    assert caught("finite", "black box", "black_box", trials=3000)


@pytest.mark.parametrize("seeded", ["at every draw", "at the start"])
def test_noise_from_a_seed(seeded, instead):
    """With an old seed, another process that starts from the same state has the same draws."""
    generator = np.random.default_rng(0)

    def drawn(_, __, ___, shape, scale):
        rng = np.random.default_rng(0) if seeded == "at every draw" else generator
        return np.rint(rng.normal(size=shape) * scale).astype(np.int64)

    instead(drawn, (SecureNoise, "gaussian"))
    assert caught("ridge-structured", "noise", "independence")


@pytest.mark.parametrize("mechanism", ["ridge-structured", "default-plan"])
def test_a_batch_used_twice_by_a_learner(mechanism, instead):
    """The rows of the batch before are fitted once more."""
    kept = []

    def again(once, plan, noise, batch, released, *rest):
        kept.append(batch)
        if len(kept) > 1 and len(released.items) > 0:
            batch = replace(batch, features=batch.features.copy())
            batch.features[0] = kept[-2].features[0]
        return once(plan, noise, batch, released, *rest)

    instead(again, (learner_module, "release_batch"))
    assert caught(mechanism, "transcript", "enters_once", **RUNS_ALONE)


@pytest.fixture
def fit_instead(instead):
    """``change(made, silent, batch)`` of a fit, and of the same fit without noise."""

    def put(change):
        def careless(once, self, batch, noise, earlier=()):
            silent = once(self, batch, Chosen(), earlier)
            return change(once(self, batch, noise, earlier), silent, batch)

        instead(careless, (PooledStatistics, "fit"))

    return put


def without_noise(name):
    """A part of the statistics that was released before its noise."""

    def change(made, silent, _):
        part = getattr(silent.statistics, name) + 0 * getattr(made.statistics, name)
        return replace(made, statistics=replace(made.statistics, **{name: part}))

    return change


@pytest.mark.parametrize(
    ("mechanism", "part"),
    [
        ("ridge-pooled", "gram"),
        pytest.param("default-plan", "gram", marks=pytest.mark.long),
        ("ridge-stretched", "outcome_sums"),
    ],
)
def test_statistics_without_noise(mechanism, part, fit_instead):
    fit_instead(without_noise(part))
    assert caught(mechanism, "exact", "exact_gaussian")
    assert caught(mechanism, "exact", "tells_no_more")
    assert caught(mechanism, "noise", "scale_and_shape")


@pytest.mark.parametrize("part", ["gram", "outcome_sums"])
def test_a_transcript_of_statistics_without_noise(part, fit_instead):
    """One part alone: a single projection of all would drown it in the noise of the others."""
    fit_instead(without_noise(part))
    effort = replace(QUICK, epsilons=(), runs=((8.0, 60),))
    assert caught("default-plan", "transcript", "transcript", effort=effort, only="slot=4")


def test_an_event_that_costs_more_than_it_says(instead):
    instead(lambda *_: 1.9, (proof_facts, "epsilon"))
    assert caught("ridge-structured", "exact", "calibration")


@pytest.mark.long
def test_the_whole_quick_audit_holds(monkeypatch):
    """Draws are seeded in this process; those of processes of their own are judged at 1e-9."""
    monkeypatch.setattr(suite, "FALSE_ALARM", 1e-9)
    findings = answers(checks(QUICK), jobs=1)
    assert [each for each in findings if each.verdict != HOLDS] == []
    for each in findings:
        assert each.measured is None or each.measured <= each.claimed
        # Where noise is far too large, an attack proves next to nothing, or nothing.
        assert each.part != "black box" or each.measured >= 0.7 * each.attainable - 0.05
