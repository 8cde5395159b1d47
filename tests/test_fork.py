"""A fork copies private rows: one side goes on, the other is refused, and noise never repeats."""

import json
import os
import subprocess
import sys

import pytest

import discreet as dc
from tolerances import HANG

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

SCRIPT = """
import json, os, signal, sys, threading
import numpy as np
import discreet as dc

def complete():
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=dc.Budget(1.0, 1e-5), first_batch=2)
    learner = dc.Learner(plan)
    ids = learner.decide(np.array([[0.5], [-0.5]])).id
    learner.observe(ids, [0.0, 1.0])
    return learner

def in_child(work):
    reading, writing = os.pipe()
    if os.fork() == 0:
        signal.alarm(300)  # a deadlock ends the child, and the parent reads nothing
        os.write(writing, json.dumps(work()).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as answer:
        return json.loads(answer.read() or '"nothing: the child hung"')

def attempts():
    found = {}
    for name, call in {
        "decide": lambda: learner.decide(np.zeros(1)),
        "observe": lambda: learner.observe(0, 0.0),
        "close": learner.close,
        "release": learner.release,
        "save": lambda: learner.save(sys.argv[1]),
    }.items():
        try:
            call()
            found[name] = "went on"
        except dc.StateClaimed as error:
            found[name] = str(error)
    return [found, facts(learner)]

def facts(learner):
    return [len(learner.released.items), learner.ledger.spent().epsilon]

def released(learner):
    learner.release()
    return facts(learner)

def draws():
    exact, fast = dc.SecureNoise(), dc.SecureNoise(fast=True)
    return {
        "exact": exact.gaussian("any", (4,), 2.0**40).tolist(),
        "fast": fast.gaussian("any", (4,), 2.0**40).tolist(),
        "normal": exact.normal("any", (4,)).tolist(),
        "ball": exact.ball("any", (4,)).tolist(),
        # 64 choices of one in two: equal by chance once in 2^64 times
        "choose": [int(exact.choose("any", np.zeros(2, dtype=np.int64), 1.0)) for _ in range(64)],
    }

learner = complete()
refused = {"child": in_child(attempts), "grandchild": in_child(lambda: in_child(attempts))}
held, release = threading.Event(), threading.Event()
def hold():
    with learner._custody:
        held.set()
        release.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
refused["while a thread of the parent works"] = in_child(attempts)
release.set()
thread.join()
saved = complete()
saved.save(sys.argv[2])
draws()  # generators that have a state have one now
print(json.dumps({
    "refused": refused,
    "parent": released(learner),
    "made after": in_child(lambda: released(complete())),
    "loaded after": in_child(lambda: released(dc.Learner.load(sys.argv[2]))),
    "noise": [in_child(draws), in_child(draws), draws()],
}))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fork")
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT]
    command += [str(folder / "refused"), str(folder / "saved")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stderr
    assert not list(folder.iterdir())
    return json.loads(done.stdout)


def test_the_same_rows_are_released_once(answers):
    for side, (found, facts) in answers["refused"].items():
        for name, error in found.items():
            assert "must be used in the process that made it; " in error, (side, name)
        assert facts == [0, 0.0], side  # public, so readable
    assert answers["parent"] == [1, pytest.approx(1.0, abs=1e-4)]


def test_a_learner_made_or_loaded_after_the_fork_works(answers):
    assert answers["made after"] == answers["loaded after"] == answers["parent"]


def test_noise_differs_on_both_sides_of_a_fork(answers):
    sides = answers["noise"]
    for name in sides[0]:
        drawn = [tuple(side[name]) for side in sides]
        assert len(set(drawn)) == 3, name
        if name != "choose":
            assert len({value for side in drawn for value in side}) == 12, name


def test_another_process_is_all_that_it_takes(monkeypatch):
    """The call that worked a moment before is refused."""
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=dc.Budget(1.0, 1e-5))
    learner = dc.Learner(plan)
    learner.decide([0.5])
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(dc.StateClaimed):
        learner.decide([0.5])
