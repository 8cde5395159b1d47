"""kill -9 at every named step and at random moments: what was acknowledged is there, once."""

import os
import random
import re
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing, suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path

import pytest

import discreet.service
from discreet.service.storage import journal
from discreet.service.storage.locations import open_database
from service.attack import clock_witness, parts, witness
from service.attack.account import (
    Account,
    check,
    one_joins,
    remember_documents,
    settle,
    traffic,
)
from service.attack.processes import alive
from waiting import PATIENCE, until

SOURCES = Path(discreet.service.__file__).parent
ALL_STEPS = sorted(
    step
    for path in SOURCES.rglob("*.py")
    for step in re.findall(r'\bstep\("([a-z]+:[a-z-]+)"\)', path.read_text())
)
ELSEWHERE = (
    *("actions", "archive", "burn", "clock", "import", "names", "new:", "outcomes", "restore"),
    "return",
)
"""Steps of what traffic does not do; they have tests of their own."""
STEPS = [step for step in ALL_STEPS if not step.startswith(ELSEWHERE)]
CLOCK_STEPS = [step for step in ALL_STEPS if step.startswith("clock")]
IN_QUIET = ("clock:before-commit", "clock:committed")
"""Steps that are passed while nobody asks: otherwise a request for slots seals the batch."""
CLOCK = {"every": "0.4s", "first_batch": 128, "longest": 256}
"""Batches that the clock ends mostly, and their count sometimes."""
SHORT = {"window": 0.3, "settle": 0.1}
"""Windows that end by themselves while clients ask: in time or late, every answer is right."""
OFTEN = ("decide", "observe", "write")
"""Steps that are passed with every transaction: any of the first dozen is the last."""
AT_START = {"release:anchored": (2, 2), "release:served": (2, 2), "release:erased": (1, 2)}
"""Steps that are passed at every start as well, before there is a release."""


def crash(place, account, step, draws, patience=PATIENCE, **options):
    """Traffic until a process dies, at a step or, without one, at a random moment."""
    named = ""
    if step:
        passes = AT_START.get(step) or ((1, 12) if step.startswith(OFTEN) else (1, 1))
        named = f"{step}@{draws.randint(*passes)}"
    place.start(step=named, **options)
    while step in IN_QUIET and not place.wounded:
        with traffic(place, account, draws):
            time.sleep(0.3)
        with suppress(AssertionError):
            until(lambda: place.wounded, patience=1.3)
    with traffic(place, account, draws):
        if step:
            until(lambda: place.wounded, f"step {step} was never hit", patience=patience)
        else:
            time.sleep(draws.uniform(0.0, 0.8))
        place.kill()
    check(place, account)


def recover(place, account, draws, **options):
    """After a restart every lost answer can be had, and every document is what it was."""
    place.start(**options)
    settle(place, account, draws)
    remember_documents(place, account)
    until(lambda: not leftovers(place), "rows of a batch that is over were kept")
    place.kill()
    check(place, account)


def leftovers(place):
    """Rows of batches that are over; unknown while the service moves pages under the copy."""
    try:
        with place.opened() as connection:
            return journal.left_over(connection)
    except sqlite3.DatabaseError:
        return True


def attack(new, steps, draws, *, people=False, control=False, clock=False, **options):
    """Kill at each of the steps, in a few experiments; how often each was hit, and all kills.

    With ``people`` all experiments are of users, otherwise every other two; with ``control`` all
    have a control share, otherwise two of four. With ``clock`` a clock ends their batches.
    """
    hits, again, slots, compared, ends, joined = Counter(), 0, {}, {}, {}, {}
    served, recovers = dict(options), random.Random(len(steps))
    for count, step in enumerate(steps):
        if count % 8 == 0:  # batches grow: begin anew before they are long
            odd = count // 8 % 2
            words = SHORT | {
                "journal": ("decide", "observe")[odd],
                "waiting": ("gap", "pipeline")[odd],
            }
            users = people or count // 8 % 4 in (1, 2)
            words |= {"unit": "user", **witness.OFTEN} if users else {}
            with_control = control or count // 8 % 4 in (2, 3)
            words |= {"control": parts.CONTROL} if with_control else {}
            options = served | (parts.SERVED if with_control else {})
            words |= CLOCK if clock else {}
            place, account = new(f"experiment-{count}", **words), Account(people=users, members={})
            if users:
                witness.install(place)
            if clock:
                clock_witness.install(place)
        crash(place, account, step, draws, **options)
        hits[step] += 1
        if recovers.random() < 0.5:  # clients use up other draws, some more and some fewer
            recover(place, account, draws, **options)
            again += 1
        joined[place] = account.members
        if users:
            slots[place] = witness.check_people(place, account)
        if with_control:
            compared[place] = parts.check_parts(place, account)
        if clock:
            ends[place] = clock_witness.check_batches(place, account)
    if compared:
        played, acknowledged = map(sum, zip(*compared.values(), strict=True))
        assert 0 < played < acknowledged, "the control was never played"
        print(f"{acknowledged} slots where there is a control, {played} of them in it")
    if slots:
        handed, counted = map(sum, zip(*slots.values(), strict=True))
        assert 0 < counted < handed, "the bounds were never met"
        print(f"{handed} slots of users, {counted} of them count")
    if clock:
        by_clock, by_count = map(sum, zip(*ends.values(), strict=True))
        assert by_clock > 0, "the clock never ended a batch"
        print(f"{by_clock} batches ended by the clock, {by_count} by their count")
    changes = [len(known) == 1 for each in joined.values() for known in each.values()]
    assert any(changes), "nobody joined"
    print(f"{len(changes)} people invited, {sum(changes)} with acknowledged roles and sessions")
    print(f"{len(steps) + again} kills")
    return hits, len(steps) + again


def shuffled(kills, draws):
    """Every step, the same number of times; the rest are random moments."""
    each = kills // (len(STEPS) + 4)
    steps = [*STEPS * each, *[""] * (kills - each * len(STEPS))]
    draws.shuffle(steps)
    return steps


def test_nothing_is_lost_or_doubled(place_on_sqlite):
    draws = random.Random(1)
    hits, kills = attack(place_on_sqlite, shuffled(32, draws), draws)
    assert set(STEPS) <= set(hits), "a step was never hit"
    assert kills >= 40


def test_a_clock_loses_and_doubles_nothing(place_on_sqlite):
    draws = random.Random(9)
    hits, _ = attack(place_on_sqlite, CLOCK_STEPS, draws, clock=True)
    assert set(CLOCK_STEPS) <= set(hits)


@pytest.mark.long
def test_a_clock_loses_and_doubles_nothing_in_200_kills(place_on_sqlite):
    draws = random.Random(10)
    steps = [*CLOCK_STEPS * 10, *shuffled(120, draws)]
    draws.shuffle(steps)
    assert attack(place_on_sqlite, steps, draws, clock=True)[1] >= 200


@pytest.mark.long
def test_a_clock_and_two_workers_on_postgresql_in_200_kills(place_on_postgresql):
    draws = random.Random(11)
    steps = [*CLOCK_STEPS * 10, *shuffled(120, draws)]
    draws.shuffle(steps)
    assert attack(place_on_postgresql, steps, draws, clock=True, workers=2)[1] >= 200


def test_the_harness_notices_a_clock_that_counts_rows(place_on_sqlite):
    place, account = place_on_sqlite(journal="observe", **CLOCK), Account()
    clock_witness.install(place)
    place.start(sabotage="clock_counts_rows")
    with traffic(place, account, random.Random(12)):
        until(lambda: clock_witness.gave_back(place), "no slot was given back")
    place.kill()
    with pytest.raises(AssertionError, match="given back"):
        clock_witness.check_batches(place, account)


@pytest.mark.parametrize("step", ["burn:before-commit", "burn:intended", "burn:committed"])
def test_a_burn_happens_or_does_not(place_on_sqlite, step):
    place, account, draws = place_on_sqlite(first_batch=64), Account(), random.Random(6)
    place.start(step=step)
    with traffic(place, account, draws):
        until(lambda: sum(each.received for each in account.sent) > 8)
    with suppress(OSError, HTTPException):
        place.post("/v1/admin/burn", {"batch": 1})
    until(lambda: place.wounded, f"step {step} was never hit")
    place.kill()
    states = check(place, account)
    assert states[1, 1] == ("burned" if step == "burn:committed" else "open")
    with place.served():
        again = place.post("/v1/admin/burn", {"batch": 1})[0]
        assert again == (200 if states[1, 1] == "open" else 422)
        until(lambda: (1, 1) not in place.vault.batches(), "the key of a burned batch was kept")
    assert check(place, account)[1, 1] == "burned"


@pytest.mark.long
def test_nothing_is_lost_or_doubled_in_200_kills(place_on_sqlite):
    draws = random.Random(2)
    hits, kills = attack(place_on_sqlite, shuffled(150, draws), draws)
    assert set(STEPS) <= set(hits), "a step was never hit"
    assert kills >= 200


def test_the_harness_notices_people_who_are_let_in_again(place_on_sqlite):
    users = {"unit": "user", **witness.OFTEN}
    place, account = place_on_sqlite(first_batch=4096, **users), Account(people=True)
    witness.install(place)
    for answers in (25, 50):
        place.start(sabotage="forget_people")
        with traffic(place, account, random.Random(answers)):
            until(partial(lambda most: len(account.sent) > most, answers))
        place.kill()
    with pytest.raises(AssertionError, match="a person "):
        witness.check_people(place, account)


TOGETHER = {"people": True, "control": True, "clock": True}


@pytest.mark.long
def test_people_control_and_clock_together_in_200_kills(place_on_sqlite):
    """Users alone and a control alone are half of the experiments of the plain 200 kills."""
    draws = random.Random(12)
    assert attack(place_on_sqlite, shuffled(150, draws), draws, **TOGETHER)[1] >= 200


@pytest.mark.long
def test_people_control_and_clock_together_in_200_kills_on_postgresql(place_on_postgresql):
    draws = random.Random(13)
    _, kills = attack(place_on_postgresql, shuffled(150, draws), draws, **TOGETHER, workers=2)
    assert kills >= 200


def test_the_harness_notices_positions_that_move(place_on_sqlite):
    place, account = place_on_sqlite(first_batch=64, control=parts.CONTROL), Account()
    place.start(sabotage="control_by_request")
    with traffic(place, account, random.Random(11)):
        until(lambda: sum(each.received for each in account.sent) > 40)
    place.kill()
    with pytest.raises(AssertionError, match="position of the control moved"):
        parts.check_parts(place, account)


@pytest.mark.long
def test_two_workers_on_postgresql_in_60_kills(place_on_postgresql):
    draws = random.Random(3)
    hits, kills = attack(place_on_postgresql, shuffled(48, draws), draws, workers=2)
    assert set(STEPS) <= set(hits), "a step was never hit"
    assert kills >= 60


def test_workers_end_with_their_supervisor(place_on_postgresql):
    """Otherwise they would keep the port, and the service could not be started again."""
    place = place_on_postgresql().start(workers=2)
    os.kill(place.pid, signal.SIGKILL)
    until(lambda: not any(alive(pid) for pid in place.tree), "workers outlived their supervisor")
    with place.served(workers=2):
        assert place.get("/readyz", key=None)[0] == 200


def test_the_harness_notices_what_is_forgotten(place_on_sqlite):
    """Four clients have at most four decisions in a group, so the third is among a dozen."""
    place, account, draws = place_on_sqlite(first_batch=4096), Account(), random.Random(4)
    place.start(sabotage="forget_decisions")
    with traffic(place, account, draws):
        until(lambda: sum(each.answer is not None for each in account.sent) > 12)
    place.kill()
    with pytest.raises(AssertionError, match="is lost"):
        check(place, account)


@pytest.mark.parametrize("lost", ["members", "grants", "sessions"])
def test_the_harness_notices_a_lost_change_of_members(place_on_sqlite, lost):
    place, account = place_on_sqlite(), Account(members={})
    with place.served():
        one_joins(place, account, random.Random(1))
    check(place, account)
    with closing(open_database(place.settings).connect()) as connection:
        connection.execute(f"DELETE FROM {lost}")
    with pytest.raises(AssertionError, match="change of members is lost"):
        check(place, account)


def test_the_harness_notices_what_is_doubled(place_on_sqlite):
    """A service without memory is hurt by an answer that was lost after its commit."""
    place, account, draws = place_on_sqlite(first_batch=4096), Account(), random.Random(4)
    crash(place, account, "decide:committed", draws, sabotage="no_idempotency")
    with pytest.raises(AssertionError, match="twice"):
        recover(place, account, draws, sabotage="no_idempotency")


def test_a_step_that_is_never_passed_is_noticed(place_on_sqlite):
    place, account = place_on_sqlite(**SHORT), Account()
    with pytest.raises(AssertionError, match="never hit"):
        crash(place, account, "release:nowhere", random.Random(5), patience=1.0)
