"""``discreet release verify`` recomputes what releases conclude, where every digest holds."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import discreet as dc
from discreet.client.recomputation import _differing, recompute
from discreet.oracles.mechanisms.geometry import publishable
from discreet.releases.release import Predictor
from discreet.releases.released import Released

PRIVATE = dc.Budget(8.0, 1e-5)
SCALES = np.logspace(-4, 4, 6) / 1e4
"""Columns of very different size: their statistics are stretched by four orders of magnitude."""
PARTS = ["predictor", "matrix", "following", "signal"]


def played(rounds=1200, noise=None, **words):
    """The releases of a learner on columns of very different scales."""
    given = {"n_actions": 3, "features": dc.UnitBall(6), "budget": PRIVATE, **words}
    learner = dc.Learner(dc.Plan(**given), noise=noise, waiting="gap")
    contexts = np.random.default_rng(0).uniform(-0.4, 0.4, size=(rounds, 6)) * SCALES
    while len(contexts):
        made = learner.decide(contexts)
        stored = int(np.sum(made.stored))
        losses = (made.action[:stored] != (contexts[:stored, 5] > 0)).astype(float)
        if words.get("feedback") == "full":
            losses = 1.0 - np.eye(3)[made.action[:stored]]
        learner.observe(made.id[:stored], losses)
        contexts = contexts[stored:]
    return learner.released


HISTORY = played(growth=1.25, rounds=2000)


@pytest.fixture
def verify(call, tmp_path):
    """Exit code and document of the command on releases."""

    def answer(released):
        released.save(tmp_path / "released.json")
        code, out, _ = call("release", "verify", tmp_path / "released.json", "--json")
        return code, json.loads(out)

    return answer


def forged(number, predictor=None, **statistics):
    """The history with a predictor or statistics changed in one release, and digests re-made."""
    made = replace(HISTORY, items=())
    for item in HISTORY.items:
        if item.number == number:
            changed = replace(item.statistics, **statistics)
            item = replace(item, predictor=predictor or item.predictor, statistics=changed)
        previous = made.latest.digest if made.latest else item.previous
        made = made.add(replace(item, previous=previous))
    return made


def nudged(array, by):
    """The array with its largest number changed by a share of it."""
    changed = np.array(array)
    changed.flat[np.abs(changed).argmax()] *= 1.0 + by
    return changed


def predictor(number, by):
    known = HISTORY.items[number - 1].predictor
    return replace(known, weights=nudged(known.weights, by))


def sums(number):
    return HISTORY.items[number - 1].statistics


def outcome_sums(number, index, factor):
    """Released sums of outcomes, with one of them changed."""
    changed = np.array(sums(number).outcome_sums)
    changed[index] *= factor
    return changed


def test_an_honest_file_is_valid_and_lists_what_was_recomputed(verify):
    assert len(HISTORY.items) >= 12
    assert np.linalg.cond(HISTORY.latest.statistics.following) > 1e3
    code, answer = verify(HISTORY)
    assert (code, answer["valid"], answer["head"]) == (0, True, HISTORY.latest.digest)
    numbers = range(1, len(HISTORY.items) + 1)
    assert answer["recomputed"] == [{"number": number, "parts": PARTS} for number in numbers]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ({"feedback": "full"}, PARTS[:3]),
        ({"feedback": "full", "losses": "one_label"}, PARTS[:3]),
        ({"oracle": dc.PooledRidge(geometry="plain")}, PARTS[:1]),
        ({"policy": dc.LinUCB()}, PARTS[:1]),
        ({"budget": dc.Budget.none()}, PARTS),
        ({"noise": dc.SeededNoise(3)}, PARTS),
        ({"oracle": dc.Ridge()}, None),
    ],
    ids=str,
)
def test_honest_files_of_other_plans_are_valid(words, parts):
    made = played(rounds=300, **words)
    found = recompute(made)
    assert found == ({item.number: parts for item in made.items} if parts else {})
    assert made.items


@pytest.mark.parametrize("largest", [0.5, 0.51, 0.75, 0.999])
@pytest.mark.parametrize("p", [2, 11, 64])
def test_what_publishing_cuts_off_is_no_forgery(p, largest):
    """A matrix whose largest entry is just above a power of two loses a whole bit of the others."""
    rng = np.random.default_rng(p)
    for _ in range(20):
        exact = rng.uniform(-largest, largest, size=(p, p))
        exact.flat[0] = largest
        exact *= 2.0 ** rng.integers(1, 9)
        known = SimpleNamespace(following=publishable(exact))
        mechanism = SimpleNamespace(
            gram=1.0, conclusion=lambda _, now=exact: (np.zeros(1), now, None)
        )
        release = SimpleNamespace(predictor=Predictor(np.zeros(1), "clip"))
        assert _differing(mechanism, [known], release) is None
        known.following = known.following + 4.0 * np.spacing(np.float32(np.abs(exact).max()))
        assert _differing(mechanism, [known], release) == "statistics.following"


def test_a_plan_with_users_is_recomputed_too():
    plan = {**HISTORY.plan, "unit": "user"}
    assert recompute(replace(HISTORY, plan=plan)).keys() == {item.number for item in HISTORY.items}


LAST = len(HISTORY.items)
"""Where all sums count: few records have bounds that hide a change."""
FORGERIES = {
    "a weight": (5, {"predictor": predictor(5, 1e-6)}, "predictor"),
    "a weight of the first": (1, {"predictor": predictor(1, 1e-6)}, "predictor"),
    "a link": (5, {"predictor": replace(predictor(5, 0.0), link="identity")}, "predictor"),
    "a Gram": (7, {"gram": nudged(sums(7).gram, 1e-4)}, "predictor"),
    "a response": (7, {"response": nudged(sums(7).response, 1e-4)}, "predictor"),
    "a count of outcomes": (7, {"outcome_sums": outcome_sums(7, 0, 0.9)}, "predictor"),
    "squares of outcomes": (
        LAST,
        {"outcome_sums": outcome_sums(LAST, 1, 0.5)},
        "statistics.signal",
    ),
    "losses of an action": (
        LAST,
        {"outcome_sums": outcome_sums(LAST, 4, 0.5)},
        "statistics.signal",
    ),
    "a count of an action": (
        LAST,
        {"outcome_sums": outcome_sums(LAST, 5, 1.1)},
        "statistics.signal",
    ),
    "a signal": (5, {"signal": np.abs(sums(5).signal - [1e-6, 0, 0, 0])}, "statistics.signal"),
    "an error": (5, {"signal": sums(5).signal * [1, 1, 1 - 1e-6, 1]}, "statistics.signal"),
    "a signal beyond one": (5, {"signal": np.array([1.5, 0.2, 0.2, 0.2])}, "statistics.signal"),
    "an error of nothing": (5, {"signal": np.array([0.5, 0.2, 0.0, 0.2])}, "statistics.signal"),
    "an error too few": (
        5,
        {"signal": sums(5).signal[:3]},
        "statistics.signal",
    ),
    "no signal": (4, {"signal": None}, "statistics.signal"),
    "a matrix": (6, {"matrix": publishable(nudged(sums(6).matrix, 1e-8))}, "statistics.matrix"),
    "the first matrix": (1, {"matrix": 2.0 * np.eye(7)}, "statistics.matrix"),
    "a next matrix": (
        len(HISTORY.items),
        {"following": publishable(nudged(HISTORY.latest.statistics.following, 1e-7))},
        "statistics.following",
    ),
    "a next matrix of 53 bits": (
        len(HISTORY.items),
        {"following": HISTORY.latest.statistics.following / 3.0},
        "statistics.following",
    ),
    "a next matrix of nothing": (12, {"following": np.zeros((7, 7))}, "statistics.following"),
    "a variance": (4, {"variance": sums(4).variance * 1.001}, "statistics.variance"),
    "records": (4, {"records": sums(4).records + 1}, "statistics.records"),
    "no matrix": (4, {"matrix": None}, "statistics.matrix"),
    "no sums of outcomes": (4, {"outcome_sums": None}, "statistics.told"),
    "too few actions": (4, {"gram": sums(4).gram[:1]}, "statistics.gram"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_only_recomputation_sees_a_forgery_whose_digests_hold(name, verify, tmp_path):
    number, changes, part = FORGERIES[name]
    made = forged(number, **changes)
    made.save(tmp_path / "forged.json")
    Released.load(tmp_path / "forged.json")  # digests and links hold
    code, answer = verify(made)
    assert (code, answer["valid"]) == (1, False)
    assert answer["error"].startswith(f"{part} of release {number} must follow from")


def test_statistics_that_are_missing_are_noticed(verify):
    items = tuple(replace(item, statistics=None) for item in HISTORY.items[:1])
    code, answer = verify(replace(HISTORY, items=items))
    assert code == 1
    assert answer["error"].startswith("statistics of release 1 must")
