"""Rivals that act every round: the runner compared with a literal loop, and clocks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import InvalidInput
from discreet.lab import rivals
from discreet.lab.rivals.rival_contract import (
    BatchClock,
    PersonClock,
    RivalPlan,
    RivalProblem,
    TreeClock,
)
from discreet.lab.rivals.runner import run
from discreet.privacy.noise import SeededNoise
from discreet.simulate.engine import Machine
from discreet.simulate.played_batches import shuffle

ROUNDS, ACTIONS, SEED = 48, 3, 5
BUDGET = dc.Budget(8.0, 1e-5)
LAGGED = [
    rivals.PlainLinUCB(lag=0.0),
    rivals.TreeLinUCB(lag=0.0),
    rivals.TreeLinUCB(lag=0.0, constants="published"),
    rivals.LocalLinUCB(lag=0.0),
    rivals.LocalLinUCB(lag=0.0, constants="published"),
    rivals.BatchedLinUCB(first=4),
    rivals.AdaPrivateTS(first=4),
    rivals.AdaPrivateTS(first=4, gram="clear"),
    rivals.AdaPrivateTS(first=4, inflated=False),
]
IN_BATCHES = (rivals.BatchedLinUCB, rivals.AdaPrivateTS)
CODED = [rivals.CodedBandit(codes=codes, batches=4, constants="published") for codes in (2, 4)]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(ROUNDS, 2))
    labels = np.argmax(contexts @ rng.normal(size=(2, ACTIONS)), axis=1)
    return dc.UnitBall(2).map(contexts), labels


@pytest.mark.parametrize("rival", LAGGED, ids=repr)
def test_losses_of_all_actions_are_played_as_labels_are(rival, rows):
    features, labels = rows
    plans = [RivalPlan(rival, ACTIONS, features.shape[1], budget_for(rival))]
    losses = 1.0 * (labels[:, None] != np.arange(ACTIONS))
    np.testing.assert_array_equal(
        run(plans, features, labels, [SEED]), run(plans, features, losses, [SEED])
    )
    halved = run(plans, features, 0.5 * losses, [SEED])
    assert not np.array_equal(halved, run(plans, features, losses, [SEED]))


def budget_for(rival):
    return dc.Budget.none() if isinstance(rival, rivals.PlainLinUCB) else BUDGET


def units_at(rival, people):
    """The numbers of the draws that the first ``people`` carry, with the weight of each."""
    if isinstance(rival, rivals.TreeLinUCB):
        nodes, before = [], 0
        for level in reversed(range(people.bit_length())):  # the largest dyadic intervals first
            if people >> level & 1:
                before += 2**level
                nodes.append((level * 2**23 + before // 2**level, 1.0))
        return nodes
    if isinstance(rival, IN_BATCHES):
        ends = np.cumsum([4, 6, 9, 14, 21])
        return [(int(end), 1.0) for end in ends if end <= people]
    return [(each, 1.0) for each in range(1, people + 1)]


def solved(rival, scales, gram, response, people):
    """θ and the inverse matrix of every action, and the number of units of noise."""
    p, units = gram.shape[-1], units_at(rival, people)
    drawn = np.zeros((ACTIONS, p * (p + 1) // 2 + p))
    if scales.response > 0:
        for number, weight in units:
            drawn += (
                weight * SeededNoise((SEED,)).for_batch(number).normal("rival", drawn.shape)[0, 0]
            )
    ridge = scales.ridge + scales.shift * math.sqrt(len(units))
    thetas, inverses = [], []
    for a in range(ACTIONS):
        noise = np.zeros((p, p))
        noise[np.triu_indices(p)] = drawn[a, : p * (p + 1) // 2]
        upper = np.triu(noise, 1) * scales.gram / math.sqrt(2.0)
        noise = upper + upper.T + np.diag(np.diag(noise)) * scales.diagonal
        matrix, step = gram[a] + noise + ridge * np.eye(p), ridge
        while np.linalg.eigvalsh(matrix).min() <= 0:
            matrix = gram[a] + noise + (ridge + step) * np.eye(p)
            step *= 2
        inverses.append(np.linalg.inv(matrix))
        moved = response[a] + scales.response * drawn[a, p * (p + 1) // 2 :]
        thetas.append(inverses[-1] @ moved)
    return np.array(thetas), np.array(inverses), len(units)


def literal(rival, features, labels, budget):
    """One run, one round at a time, with a solve in each: the losses of all rounds."""
    p, batched = features.shape[1], isinstance(rival, IN_BATCHES)
    scales = rival.scales(RivalProblem(ACTIONS, p, ROUNDS), budget)
    order, u = shuffle(SEED, ROUNDS)
    gram, response, lost = np.zeros((ACTIONS, p, p)), np.zeros((ACTIONS, p)), []
    for t, (row, uniform) in enumerate(zip(order, u[:, 0], strict=True)):
        b, people = features[row], t
        if batched:  # only complete batches are known
            people = int(max([end for end in np.cumsum([4, 6, 9, 14, 21]) if end <= t], default=0))
        if people == t > 0:
            thetas, inverses, units = solved(rival, scales, gram, response, people)
        if people == 0:
            action = int(uniform * ACTIONS)
        elif isinstance(rival, rivals.AdaPrivateTS):
            changes = (*np.cumsum([4, 6, 9, 14]), 16, 40, 48)
            begun, end = max(c for c in changes if c <= t), min(c for c in changes if c > t)
            posterior = SeededNoise((SEED,)).for_batch(int(begun)).normal
            normal = posterior("posterior", (int(end - begun), ACTIONS))[0, 0, t - begun]
            counted = rival.inflated * units * scales.response**2
            spreads = rival.width**2 * inverses + counted * inverses @ inverses
            action = int(np.argmin(thetas @ b + normal * np.sqrt(b @ spreads @ b)))
        else:
            action = int(np.argmin(thetas @ b - rival.width * np.sqrt(b @ inverses @ b)))
        loss = float(action != labels[row])
        lost.append(loss)
        gram[action] += np.outer(b, b)
        response[action] += (loss - scales.centre) * b
    return np.array(lost)


@pytest.mark.parametrize("rival", LAGGED, ids=repr)
def test_a_run_is_the_literal_loop(rival, rows):
    features, labels = rows
    plan = RivalPlan(rival, ACTIONS, features.shape[1], budget_for(rival))
    played = run([plan], features, labels, [SEED])[0, 0]
    ends = np.cumsum([16, 24, 8])
    expected = np.cumsum(literal(rival, features, labels, plan.budget))[ends - 1] / ends
    np.testing.assert_allclose(played, expected, atol=1e-12)


def test_runs_do_not_meet(rows):
    features, labels = rows
    p = features.shape[1]
    plans = [RivalPlan(each, ACTIONS, p, budget_for(each)) for each in (*LAGGED, *CODED)]
    together = run(plans, features, labels, [SEED, 1])
    for plan, found in zip(plans, together, strict=True):
        np.testing.assert_array_equal(run([plan], features, labels, [SEED, 1])[0], found)
    other_seed = run(plans, features, labels, [1])[:, 0]  # no seed changes the codes of P2B
    np.testing.assert_array_equal(together[:, 1], other_seed)
    little = Machine(memory=1)
    np.testing.assert_array_equal(run(plans, features, labels, [SEED, 1], little), together)


@pytest.mark.torch
def test_torch_plays_what_numpy_plays(rows):
    features, labels = rows
    p = features.shape[1]
    plans = [RivalPlan(each, ACTIONS, p, budget_for(each)) for each in LAGGED]
    expected = run(plans, features, labels, [SEED, 1])
    found = run(plans, features, labels, [SEED, 1], Machine("cpu"))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(st.integers(1, 120), st.floats(0.0, 0.3), st.sampled_from(["tree", "person", "batch"]))
def test_noise_has_the_variance_and_the_overlap_of_its_units(rounds, lag, kind):
    """Draws that are unit vectors: their sum tells which units a sum carries."""
    clock = {"tree": TreeClock(lag), "person": PersonClock(lag), "batch": BatchClock(3, 1.5)}[kind]
    seen: dict[int, int] = {}

    def unit(number):
        one = np.zeros(300)
        one[seen.setdefault(number, len(seen))] = 1.0
        return one

    ends = clock.ends(rounds)
    *sums, _ = clock.noise(ends, unit)  # of the last end no policy is made
    for end, total in zip(ends[:-1], sums, strict=True):
        assert np.sum(np.square(total)) == pytest.approx(clock.units(end))


def test_without_noise_nothing_private_is_played(rows):
    features, labels = rows
    plan = RivalPlan(rivals.PlainLinUCB(), ACTIONS, features.shape[1], BUDGET)
    with pytest.raises(InvalidInput, match="must be inf"):
        run([plan], features, labels, [SEED])
    with pytest.raises(InvalidInput, match="users must be None"):
        run([], features, labels, [SEED], users=["a"])
    coded = RivalPlan(CODED[0], ACTIONS, features.shape[1], BUDGET)
    with pytest.raises(InvalidInput, match="labels"):
        run([coded], features, np.zeros((ROUNDS, ACTIONS)), [SEED])
