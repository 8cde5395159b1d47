"""A fork copies private rows: one side goes on, the other is refused, and noise never repeats."""

import json
import os
import subprocess
import sys

import pytest

import discreet as dc
from tolerances import HANG

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

HEAD = """
import json, multiprocessing, os, signal, sys, threading
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
"""

USE = """
learner = complete()

def attempts(learner):
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
    found["releases"] = len(learner.released.items)
    found["spent"] = learner.ledger.spent().epsilon
    return found
"""

FORK = (
    HEAD
    + USE
    + """
answers = {"child": in_child(lambda: attempts(learner))}
answers["grandchild"] = in_child(lambda: in_child(lambda: attempts(learner)))

held, release = threading.Event(), threading.Event()
def hold():
    with learner._custody:
        held.set()
        release.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
answers["while a thread of the parent works"] = in_child(lambda: attempts(learner))
release.set()
thread.join()

queue = multiprocessing.get_context("fork").SimpleQueue()
worker = multiprocessing.get_context("fork").Process(target=lambda: queue.put(attempts(learner)))
worker.start()
answers["multiprocessing"] = queue.get()
worker.join()

learner.release()
answers["parent"] = [len(learner.released.items), learner.ledger.spent().epsilon]
print(json.dumps(answers))
"""
)

MADE_AFTER = (
    HEAD
    + """
def fresh():
    learner = complete()
    learner.release()
    return len(learner.released.items)

learner = complete()
learner.save(sys.argv[1])
def taken_over():
    learner = dc.Learner.load(sys.argv[1])
    learner.release()
    return len(learner.released.items)

print(json.dumps([in_child(fresh), in_child(taken_over)]))
"""
)

DRAWS = (
    HEAD
    + """
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

draws()  # generators that keep a state have one now
print(json.dumps([in_child(draws), in_child(draws), draws()]))
"""
)


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_same_rows_are_released_once(tmp_path):
    path = tmp_path / "state"
    answers = run(FORK, str(path))
    parent = answers.pop("parent")
    for side, found in answers.items():
        for name in ("decide", "observe", "close", "release", "save"):
            assert "must be used in the process that made it; " in found[name], (side, name)
            assert "load it here." in found[name]
        assert (found["releases"], found["spent"]) == (0, 0.0), side  # public, so readable
    assert not path.exists()
    assert parent == [1, pytest.approx(1.0, abs=1e-4)]


def test_a_learner_made_or_loaded_after_the_fork_works(tmp_path):
    assert run(MADE_AFTER, str(tmp_path / "state")) == [1, 1]


def test_noise_differs_on_both_sides_of_a_fork():
    sides = run(DRAWS)
    for name in ("exact", "fast", "normal", "ball", "choose"):
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
