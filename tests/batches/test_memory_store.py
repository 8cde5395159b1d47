"""MemoryStore: slots by count, losses once, and one atomic step from rows to a release."""

import numpy as np

from discreet import Budget, InvalidInput, Ledger, Release, Released
from discreet.batches.memory_store import MemoryStore
from discreet.design.schedule import Schedule
from discreet.privacy.events import NonPrivate
from discreet.releases.release import Predictor
from store_state import state_of
from wording import refused

ACTIONS, P = 3, 2


def store(first=4, horizon=None, missing=None, **words):
    released = Released(ACTIONS, Schedule(first, horizon))
    words = {"on_last_answer": True} | words
    return MemoryStore(released, Ledger(Budget.none()), P, missing, **words)


def take(store, count, action=1):
    rows = np.arange(count * P, dtype=float).reshape(count, P) + 1.0
    return store.take(rows, np.full(count, action, dtype=np.int64))


def fit(batch, released, ledger):
    """A stand-in for the learner's fit: public numbers only."""
    number = len(released.items) + 1
    release = Release(number, batch.records, Predictor(np.zeros((ACTIONS, P)), "identity"))
    return release, ledger.charge(f"batch {number}", NonPrivate("a test"))


def test_ids_repeat_in_one_call_only_where_nothing_is_stored():
    one = store()
    take(one, 4)
    one.observe(np.array([-1, -1, 2]), np.array([0.5, 0.75, 1.0]))
    assert one.batches[0].unobserved == 3
    before = state_of(one)
    with refused(InvalidInput, "distinct"):
        one.observe(np.array([1, 1]), np.array([0.5, 0.5]))
    assert state_of(one) == before


def test_the_memory_of_released_rows_is_overwritten():
    one = store(first=2)
    take(one, 2)
    one.observe(np.array([0, 1]), np.array([0.5, 0.5]))
    kept = (one.batches[0].features, one.batches[0].losses, one.batches[0].actions)
    assert all(array.any() for array in kept)
    one.release(fit)
    assert not any(array.any() for array in kept)


def test_a_store_shows_no_values():
    one = store()
    take(one, 4)
    assert repr(one) == str(one) == "MemoryStore(private)"
    assert repr(one.batches) == "[BatchSlots(private), BatchSlots(private)]"
