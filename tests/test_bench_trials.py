"""bench/trials.py: replays of a made-up trial agree with its truth."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.data import RandomisedLog

SCRIPT = Path(__file__).parent.parent / "bench" / "trials.py"
SHARES = np.array([0.5, 0.3, 0.2])
STANDARD_ERRORS = 4.0


@pytest.fixture(scope="module")
def trials():
    found = importlib.util.spec_from_file_location("bench_trials", SCRIPT)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def trial(rows, seed=0):
    """A trial whose best action depends on the context, and the losses of all actions."""
    rng = np.random.default_rng(seed)
    contexts = rng.uniform(-0.7, 0.7, size=(rows, 2))
    chances = 0.5 + np.stack([0.6 * contexts[:, 0], -0.6 * contexts[:, 0], 0 * contexts[:, 1]], 1)
    losses = (rng.random((rows, 3)) < chances + np.array([0.0, -0.05, 0.05])).astype(float)
    actions = rng.choice(3, size=rows, p=SHARES)
    seen = losses[np.arange(rows), actions]
    return RandomisedLog("made-up", contexts, actions, seen, SHARES[actions], tuple("abc")), losses


def test_uniform_actions_have_the_mean_loss_of_all_actions(trials):
    log, _ = trial(6_000)
    means = log.action_losses()
    found = trials.online(log, math.inf, 0, policy=dc.Uniform())
    assert found.best == means.min()
    assert abs(found.excess - (means.mean() - means.min())) < STANDARD_ERRORS * found.error


def test_online_replay_agrees_with_a_run_on_all_losses(trials):
    runs = []
    for seed in range(6):
        log, _ = trial(12_000, seed)
        replayed = trials.online(log, math.inf, seed, rounds=2_000)
        other, losses = trial(2_000, 100 + seed)
        played = trials.all_known(other.contexts, losses, math.inf, seed)
        runs.append((replayed.best + replayed.excess, played.best + played.excess))
    first, second = np.array(runs).T
    error = math.sqrt((first.var(ddof=1) + second.var(ddof=1)) / len(runs))
    assert abs(first.mean() - second.mean()) < STANDARD_ERRORS * error


def test_only_the_rows_within_a_users_limit_are_learned_from(trials, monkeypatch):
    log, _ = trial(6_000)
    everyone = replace(log, users=np.arange(6_000))
    by_user = trials.online(everyone, math.inf, 0, unit="user")
    assert by_user.excess == trials.online(log, math.inf, 0).excess
    release, learned = trials.release_batch, []

    def counted(plan, noise, batch, *rest):
        learned.append(int(batch.observed.sum()))
        return release(plan, noise, batch, *rest)

    monkeypatch.setattr(trials, "release_batch", counted)
    one = replace(log, users=np.zeros(6_000, dtype=int))
    trials.online(one, math.inf, 0, unit="user", batches_per_user=3, records_per_batch=2)
    assert learned[:4] == [2, 2, 2, 0]
    assert sum(learned) == 6


def test_an_imported_log_gives_a_policy_below_the_best_fixed_action(trials):
    log, _ = trial(6_000)
    for greedy in (False, True):
        found = trials.imported(log, math.inf, 0, rows=5_000, greedy=greedy)
        assert found.excess < -0.05


def test_a_missing_rating_of_an_action_leaves_a_person_out(trials, tmp_path):
    ratings = np.random.default_rng(0).uniform(-10, 10, size=(30, 25))
    ratings[:, 20:] = np.nan
    ratings[:25, 20:] = -10.0
    ratings[0, 0] = ratings[1, trials.GAUGE[0] - 1] = np.nan  # an action, a context
    np.savez(tmp_path / "ratings.npz", ratings=ratings)
    contexts, losses, outcome = trials.jester(tmp_path / "ratings.npz")
    assert contexts.shape == (29, 10)
    assert losses.shape == (29, 10)
    assert contexts[0, 0] == 0.0
    assert outcome.value_of(losses).min() >= -10
    assert np.isfinite(losses).all()
