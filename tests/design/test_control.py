"""Which slots and which people are the control's: public rules that look at no answer."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet import Budget, Control, Learner, SeededNoise
from discreet.design.control import (
    control_actions,
    control_slots,
    people_in_control,
    slots_in_control,
)
from discreet.design.schedule import Schedule
from small_plans import small_plan

SHARES = st.floats(0.02, 0.98)
PEOPLE = {"unit": "user", "batches_per_user": 3, "records_per_batch": 2}


def plan(**changes):
    parts = {"n_actions": 3, "budget": Budget(2.0, 1e-5), "control": Control(0.25)}
    return small_plan(**parts | changes)


@given(SHARES, st.integers(1, 10**6), st.integers(1, 3000))
def test_every_stretch_has_its_share(share, batch, length):
    taken = np.cumsum(control_slots(share, batch, length))
    slots = np.arange(1, length + 1)
    assert (np.abs(taken - share * slots) <= 1.0 + 1e-9).all()


def test_positions_are_not_at_regular_places():
    places = np.flatnonzero(control_slots(0.1, 7, 10_000)) % 10
    assert (np.bincount(places, minlength=10) > 50).all()
    assert not np.array_equal(control_slots(0.1, 7, 100), control_slots(0.1, 8, 100))


def test_positions_never_change():
    """Published: a reader of a batch's records may check them."""
    assert np.flatnonzero(control_slots(0.25, 1, 24)).tolist() == [0, 6, 8, 15, 18, 23]
    assert np.flatnonzero(control_slots(0.1, 3, 60)).tolist() == [3, 11, 29, 37, 44, 50]


def test_slots_are_those_of_their_batches():
    schedule = Schedule(16, None, 1.5)
    ids = np.arange(200)
    whole = [control_slots(0.3, b, schedule.length(b)) for b in range(1, 9)]
    expected = np.concatenate(whole)[:200]
    assert np.array_equal(slots_in_control(0.3, schedule, ids), expected)
    some = np.array([150, -1, 3, 40])
    found = slots_in_control(0.3, schedule, some)
    assert np.array_equal(found, expected[some] & (some >= 0))


def test_people_stay_in_their_part_and_the_key_decides():
    people = [f"person {i}" for i in range(4000)]
    found = people_in_control(0.1, b"k" * 32, people)
    assert np.array_equal(found[::-1], people_in_control(0.1, b"k" * 32, people[::-1]))
    assert abs(found.mean() - 0.1) < 0.02
    other = people_in_control(0.1, b"l" * 32, people)
    assert abs((found & other).mean() - 0.01) < 0.01
    assert (people_in_control(0.5, b"k" * 32, people) >= found).all()  # a larger share adds people


def test_control_actions_are_the_declared_one_or_uniform():
    u = np.random.default_rng(0).random((9000, 2))
    assert (control_actions(2, 3, u) == 2).all()
    counts = np.bincount(control_actions(None, 3, u))
    assert (np.abs(counts - 3000) < 200).all()


def observe_zeros(learner, decisions):
    learner.observe(decisions.id, np.zeros(len(decisions.id)))


def test_a_learner_plays_the_control_in_its_slots_whatever_the_calls():
    sizes, chosen = np.random.default_rng(1), []
    learner = Learner(plan(control=Control(0.25, 2)), noise=SeededNoise(1))
    while len(chosen) < 200:
        made = learner.decide(np.zeros((int(sizes.integers(1, 40)), 2)))
        observe_zeros(learner, made)
        chosen += list(zip(made.id.tolist(), made.action.tolist(), made.propensity, strict=True))
    ids = np.array([each[0] for each in chosen])
    inside = slots_in_control(0.25, learner.plan.schedule, ids)
    assert ids.tolist() == list(range(len(ids)))
    controlled = [each for each, c in zip(chosen, inside, strict=True) if c]
    assert {(action, chance) for _, action, chance in controlled} == {(2, 1.0)}
    free = np.array([action for (_, action, _), c in zip(chosen, inside, strict=True) if not c])
    assert (free != 2).sum() > 20


def test_a_person_is_always_in_the_same_part():
    learner = Learner(plan(budget=Budget.none(), control=Control(0.5, 2), **PEOPLE))
    people = [f"p{i}" for i in range(30)]
    certain = {person: [] for person in people}
    for _ in range(5):
        made = learner.decide(np.zeros((30, 2)), user=people)
        observe_zeros(learner, made)
        batch = learner._store.batches[-1]
        assert batch.control is not None
        for person, chance in zip(people, made.propensity, strict=True):
            certain[person].append(chance)
    # The policy is uniform over equals at first: a control person's chance is 1 from the start.
    first = {person for person in people if certain[person][0] == 1.0}
    assert 0 < len(first) < 30  # of a key at random, 2^-29 have all people in one part
    assert first == {person for person in people if all(each == 1.0 for each in certain[person])}
    assert first == {p for p in people if learner._store.people.in_control([p], 0.5)[0]}


def test_a_saved_learner_goes_on_with_its_parts(tmp_path):
    learner = Learner(plan(control=Control(0.25, 2)), noise=SeededNoise(1))
    made = learner.decide(np.zeros((21, 2)))
    observe_zeros(learner, made)
    learner.save(tmp_path / "state")
    loaded = Learner.load(tmp_path / "state", noise=SeededNoise(1))
    more = loaded.decide(np.zeros((60, 2)))
    loaded.observe(more.id, np.ones(60))
    loaded.decide(np.zeros((1, 2)))
    charged = [f"batch {number}, {part}" for number in (1, 2) for part in ("policy", "control")]
    assert [each.partition for each in loaded.ledger.entries[:4]] == charged
    assert all("keyed hash" in each.assumption for each in loaded.ledger.entries)
    parts = np.concatenate([b.control[: b.taken] for b in loaded._store.batches])
    start = loaded._store.batches[0].start
    ids = np.arange(start, start + len(parts))
    assert np.array_equal(parts, slots_in_control(0.25, loaded.plan.schedule, ids))
