"""MemoryStore: slots by count, losses once, and one atomic step from rows to a release."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Budget, InvalidInput, Ledger, LossConflict, Release, Released
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


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=8
    )
)
def test_one_by_one_is_in_bulk(reports):
    """observe_one is observe: the same rows, counts and refusals."""
    one, bulk = store(), store()
    take(one, 4)
    take(bulk, 4)
    for slot, loss in reports:
        answers = []
        for call in (
            lambda slot=slot, loss=loss: one.observe_one(slot, loss),
            lambda slot=slot, loss=loss: bulk.observe(np.array([slot]), np.array([loss])),
        ):
            try:
                call()
                answers.append(None)
            except LossConflict as error:
                answers.append(str(error))
        assert answers[0] == answers[1]
        assert state_of(one) == state_of(bulk)


def test_ids_repeat_in_one_call_only_where_nothing_is_stored():
    one = store()
    take(one, 4)
    one.observe(np.array([-1, -1, 2]), np.array([0.5, 0.75, 1.0]))
    assert one.batches[0].unobserved == 3
    before = state_of(one)
    with refused(InvalidInput, "distinct"):
        one.observe(np.array([1, 1]), np.array([0.5, 0.5]))
    assert state_of(one) == before


def seen_by_fit(one):
    """What a fit is given: copies, taken while it runs."""
    seen = {}

    def look(batch, released, ledger):
        seen.update(features=batch.features.copy(), losses=batch.losses.copy())
        seen.update(observed=batch.observed.copy())
        return fit(batch, released, ledger)

    one.release(look)
    return seen


@pytest.mark.parametrize("missing", [None, 1.0])
def test_a_fit_sees_one_loss_a_row_all_losses_or_silence(missing):
    one = store(first=2, missing=missing)
    take(one, 2, action=2)
    one.observe(np.array([1]), np.array([0.25]))
    one.close()
    seen = seen_by_fit(one)
    assert seen["observed"].tolist() == [[False, False, missing is not None], [False, False, True]]
    assert seen["losses"][:, 2].tolist() == [missing or 0.0, 0.25]
    assert seen["features"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    full = store(first=1)
    take(full, 1)
    full.observe(np.array([0]), np.array([[0.0, 0.5, 1.0]]))
    assert seen_by_fit(full)["losses"].tolist() == [[0.0, 0.5, 1.0]]


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
