"""MemoryStore: ids of one call, the memory of rows, and no value in a repr."""

from dataclasses import replace

import numpy as np

from batches.clocked_learners import PLAN, decide, learner
from discreet import InvalidInput
from store_state import state_of
from wording import refused


def test_ids_repeat_in_one_call_only_where_nothing_is_stored():
    one = learner()
    decide(one, 2)
    one.observe([-1, -1, 1], [0.5, 0.75, 1.0])
    assert one._store.batches[0].unobserved == 1
    before = state_of(one._store)
    with refused(InvalidInput, "distinct"):
        one.observe([0, 0], [0.5, 0.5])
    assert state_of(one._store) == before


def test_the_memory_of_released_rows_is_overwritten():
    one = learner(plan=replace(PLAN, first_batch=64))
    one.observe(decide(one, 64), np.full(64, 0.5))
    batch = one._store.batches[0]
    kept = batch.features, batch.losses, batch.actions
    assert all(array.any() for array in kept)
    one.release()
    assert not any(array.any() for array in kept)


def test_a_store_shows_no_values():
    store = learner()._store
    assert repr(store) == str(store) == "MemoryStore(private)"
    assert repr(store.batches) == "[BatchSlots(private)]"
