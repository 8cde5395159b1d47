"""kill -9 of a server of many experiments: nothing acknowledged is lost, nothing is released twice.

Judged by a checker that shares no code with the service (``outside_checker.py``).
"""

import os
import random
import subprocess
import sys
import time

import pytest

from service.attack.account import one_joins
from service.attack.many_clients import DOING, Crowd, crowded
from service.attack.many_place import KINDS, ManyPlace
from service.attack.outside_checker import Checker, check_members, left_over
from service.attack.tampering import BREAKS, Copy
from service.attack.test_crash import ALL_STEPS, AT_START, OFTEN
from waiting import until

ELSEWHERE = ("burn:committed", "import", "names", "restore", "return")
"""Steps that neither clients nor this operator pass."""
STEPS = [step for step in ALL_STEPS if not step.startswith(ELSEWHERE)]
MOSTLY = {
    "actions": ["actions"] * 30,
    "archive": ["new"] * 30,
    "burn": ["new"] * 30,
    "new": ["new"] * 30,
}
"""What the operator does more often, so that a step is passed."""


@pytest.fixture
def many_places(tmp_path, launcher):
    """``many_places(kinds, url, prefix)``: folders of experiments that have begun."""
    made = []

    def new(kinds, url=None, prefix=""):
        made.append(ManyPlace(tmp_path / "server", launcher, kinds, url, prefix))
        return made[-1]

    yield new
    for each in made:
        each.kill()


def crash(place, crowd, step, draws, moment, **options):
    """Traffic until a process dies at a step, or the child that fits, or all at a random moment."""
    named = ""
    if step and step != "child":
        passes = AT_START.get(step) or ((1, 12) if step.startswith(OFTEN) else (1, 1))
        # All experiments pass the steps of a start.
        many = len(crowd.main) + len(crowd.passing) if step in AT_START else 0
        named = f"{step}@{many + draws.randint(*passes)}"
    place.start(step=named, **options)
    kind = step.partition(":")[0]
    # An experiment that is put away may end the child, which must not look like a kill.
    doing = DOING if kind in ("child", "fit") else [*DOING * 3, "new", *MOSTLY.get(kind, ())]
    with crowded(crowd, draws, doing):
        if step == "child":
            place.kill_child()
            before = releases(place, crowd)
            until(lambda: more(before, releases(place, crowd)), "no other child was started")
        elif step:
            died = (lambda: place.child_died) if step == "fit:read" else (lambda: place.wounded)
            until(died, f"step {step} was never hit")
        else:
            time.sleep(draws.uniform(0.0, moment))
        place.kill()
    crowd.look_after()


def attack(place, kinds, steps, draws, moment=6.0):
    """A kill for each step; then every lost answer is had, and every experiment goes on.

    Without a step the kill comes at any moment of the first few seconds.
    """
    crowd, checker, began = Crowd(place, kinds), Checker(place.folder, place.url), time.monotonic()
    for count, step in enumerate(steps):
        # Two workers start slowly: a few times are enough to see them side by side.
        crash(place, crowd, step, draws, moment, workers=2 if place.url and count % 4 == 0 else 1)
        reported = checker.check(crowd.accounts)
        check_members(place.folder, crowd.members)
        print(step or "any moment", f"{time.monotonic() - began:.0f} s", *reported, flush=True)
    place.start(workers=2 if place.url else 1)
    before = releases(place, crowd)
    with crowded(crowd, draws, DOING):
        until(lambda: more(before, releases(place, crowd), every=True), "releases stopped")
    assert not any(map(crowd.unsettled, crowd.main)), "an answer could not be had"
    until(lambda: not left_over(place.folder, crowd.main, place.url), "rows of the past were kept")
    crowd.farewell(draws)
    one_joins(place, crowd, draws)
    place.stop()
    checker.check(crowd.accounts)
    check_members(place.folder, crowd.members)
    made, slots = Checker(place.folder, place.url).check(crowd.accounts)
    received = sum(each["received"] for one in crowd.accounts.values() for each in one["sent"])
    print(
        f"{len(steps)} kills, {steps.count('child')} more of the child alone: "
        f"{len(crowd.accounts)} experiments, {slots} acknowledged decisions, {received} losses, "
        f"{made} releases, {time.monotonic() - began:.0f} s, {dict(crowd.done)}"
    )
    return crowd


def releases(place, crowd):
    """How many releases each experiment has published."""
    answers = {
        name: place.get(f"/v1/experiments/{name}/releases", key=place.keys[name])[1]
        for name in crowd.main
    }
    return {
        name: sum(each["kind"] == "release" for each in answer["releases"])
        for name, answer in answers.items()
    }


def more(before, now, *, every=False):
    """Whether some experiment has made a release since, or every one."""
    return (all if every else any)(now[name] > before[name] for name in now)


def shuffled(kills, draws):
    """Every step as often, some kills of the child alone, and random moments."""
    each = kills // (len(STEPS) + 10)
    steps = [*STEPS * each, *["child"] * (kills // 20)]
    steps += [""] * (kills - len(steps))
    draws.shuffle(steps)
    return steps


def test_many_experiments_lose_nothing_and_the_checker_would_notice(many_places, tmp_path):
    steps = ["decide:committed", "new:begun", "actions:intended", "observe:committed", ""]
    kinds = ("plain", "tokens", "users")
    place = many_places(kinds)
    crowd = attack(place, kinds, steps, random.Random(1), moment=0.5)
    for message, damage in BREAKS.items():
        damaged = Copy(place.folder, tmp_path / "damaged", crowd.accounts)
        damage(damaged)
        with pytest.raises(AssertionError, match=message):
            Checker(damaged.folder).check(damaged.accounts)


def test_the_checker_shares_no_code_with_the_service():
    code = "import sys, service.attack.outside_checker as _; print(*sys.modules)"
    path = os.pathsep.join(filter(None, sys.path))
    reported = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, check=True, capture_output=True
    )
    modules = reported.stdout.decode().split()
    assert "service.attack.outside_sums" in modules
    assert not [each for each in modules if each.split(".")[0] in ("discreet", "numpy")]


@pytest.mark.long
def test_five_experiments_lose_nothing_in_100_kills(many_places):
    draws = random.Random(2)
    attack(many_places(KINDS), tuple(KINDS), shuffled(100, draws), draws)


@pytest.mark.long
def test_five_experiments_lose_nothing_in_100_kills_on_postgresql(many_places, postgres):
    draws = random.Random(3)
    place = many_places(KINDS, postgres, f"k{time.time_ns():x}-")
    attack(place, tuple(KINDS), shuffled(100, draws), draws)
