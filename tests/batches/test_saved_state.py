"""A saved learner is a private file that goes on exactly once."""

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import discreet as dc
from batches.clocked_learners import altered
from small_plans import small_plan
from store_state import state_of
from wording import refused


def plan(**changes):
    whole = dc.SquareCB(scale=16)  # a whole number: the digest must survive the file
    return small_plan(**{"policy": whole, "first_batch": 1, "growth": 2.0} | changes)


def halfway(**changes):
    """Two releases made, batch 3 with three of four slots taken and one loss observed."""
    learner = dc.Learner(plan(**changes), noise=dc.SecureNoise(fast=True))
    rng = np.random.default_rng(0)
    for _ in range(3):
        decision = learner.decide(rng.normal(size=2))
        learner.observe(decision.id, 0.5)
    learner.decide(rng.normal(size=(3, 2)))
    learner.observe(4, 0.25)
    return learner


def state(learner):
    return state_of(learner._store)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "learner.state"


@pytest.mark.parametrize(
    "changes",
    [
        {"oracle": dc.Logistic(ridge=1)},
        {"policy": dc.LinUCB(width=1)},
        {"oracle": dc.FiniteClass(np.random.default_rng(0).normal(size=(3, 2, 3)))},
        {"horizon": 100, "missing_loss": 1},
        {"budget": dc.Budget.none()},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_every_kind_of_plan_goes_on_and_its_chain_verifies(changes, path, tmp_path):
    learner = halfway(**changes)
    before = state(learner)
    learner.save(path)
    loaded = dc.Learner.load(path, noise=dc.SecureNoise(fast=True))
    assert (loaded.plan.digest, state(loaded)) == (learner.plan.digest, before)
    with refused(dc.LossConflict):
        loaded.observe(4, 0.75)
    with refused(dc.DecisionClosed):
        loaded.observe(2, 0.5)
    loaded.observe([3, 5], [0.0, 1.0])
    loaded.observe(loaded.decide(np.zeros(2)).id, 0.5)
    loaded.release()
    if loaded.ledger.budget.epsilon < np.inf:
        assert loaded.ledger.spent().epsilon <= 1.0
    loaded.released.save(tmp_path / "released.json")
    assert len(dc.Released.load(tmp_path / "released.json").items) == 3


def test_a_saved_learner_stops(path):
    learner = halfway()
    learner.save(path)
    for call in (
        lambda: learner.decide(np.zeros(2)),
        lambda: learner.observe(3, 0.5),
        lambda: learner.observe([3], [0.5]),
        learner.close,
        learner.release,
        lambda: learner.save(path),
    ):
        with refused(dc.StateClaimed, "after save()", "Learner.load"):
            call()
    assert len(learner.released.items) == 2  # what is public stays readable
    assert learner.ledger.spent().epsilon <= 1.0


def test_a_state_is_loaded_once(path):
    halfway().save(path)
    assert path.stat().st_mode & 0o777 == 0o600  # for its owner alone
    dc.Learner.load(path)
    with refused(dc.StateClaimed, str(path), "loaded before"):
        dc.Learner.load(path)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("links", [True, False])
def test_a_save_replaces_no_other_file(path, monkeypatch, links):
    """The file may be the only copy of another learner."""
    first, second = halfway(), halfway()
    first.save(path)
    held = path.read_bytes()
    with refused(dc.InvalidInput, "path must be a new file", "stays usable"):
        second.save(path)
    if not links:  # a file system without links

        def no_links(*_):
            raise PermissionError("no links here")

        monkeypatch.setattr(os, "link", no_links)
    # Somebody who writes the file between the look and the name.
    with monkeypatch.context() as patched:
        looks = iter([False, True])
        patched.setattr(os.path, "lexists", lambda _: next(looks))
        with refused(dc.InvalidInput, "path must be a new file"):
            second.save(path)
    assert path.read_bytes() == held
    assert list(path.parent.iterdir()) == [path]  # and nothing else is left
    second.observe(3, 0.5)  # goes on where it is
    second.save(path.with_name("other.state"))
    assert len(dc.Learner.load(path).released.items) == 2


def test_a_claimed_state_is_not_replaced_by_another(path):
    """A process that ended while it loaded leaves the only copy under another name."""
    halfway().save(path)
    claimed = path.with_name(f"{path.name}.claimed")
    path.rename(claimed)
    content = claimed.read_bytes()
    halfway().save(path)
    with refused(dc.StateClaimed, "only one of its name", claimed.name):
        dc.Learner.load(path)
    assert claimed.read_bytes() == content
    assert path.is_file()


def test_a_save_that_fails_leaves_the_learner_usable(path, monkeypatch):
    learner = halfway()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        learner.save(path)
    assert not list(path.parent.iterdir())
    learner.observe(3, 0.5)  # goes on where it is


def test_seeded_noise_cannot_continue_a_private_ledger(path):
    halfway().save(path)
    loaded = dc.Learner.load(path, noise=dc.SeededNoise(0))
    loaded.observe([3, 5], [0.0, 1.0])
    loaded.observe(loaded.decide(np.zeros(2)).id, 0.5)
    with refused(dc.BudgetExceeded):
        loaded.release()


class Picky(dc.SecureNoise):
    """Noise of a caller, with a mistake of the caller."""

    def claim(self, event):  # noqa: ARG002
        raise self.mistake


@pytest.mark.parametrize("kind", [ValueError, OSError, dc.BudgetExceeded])
def test_an_error_of_the_caller_is_told_as_it_is_and_the_file_put_back(path, kind, monkeypatch):
    halfway().save(path)
    before = path.read_bytes()
    mistake = kind("a mistake of the caller")
    monkeypatch.setattr(Picky, "mistake", mistake, raising=False)
    with pytest.raises(kind) as caught:
        dc.Learner.load(path, noise=Picky())
    assert caught.value is mistake
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert len(dc.Learner.load(path).released.items) == 2


def test_an_altered_file_is_refused_and_put_back(path):
    """200 positions, one seeded byte each: refused and untouched, or the very same state.

    Bytes without meaning exist: dates and attributes in the archive's directory.
    """
    halfway().save(path)
    original = path.read_bytes()
    good = state(dc.Learner.load(path))
    choose, caught = random.Random(0), 0
    for position in choose.sample(range(len(original)), 200):
        altered = bytearray(original)
        altered[position] ^= choose.randrange(1, 256)
        path.write_bytes(altered)
        try:
            loaded = dc.Learner.load(path)
        except dc.CorruptRelease:
            caught += 1
            assert path.read_bytes() == altered
            path.unlink()
        else:
            assert state(loaded) == good
        assert not list(path.parent.iterdir())
    assert caught > 150


def pickled(path):
    with open(path, "wb") as file:  # reading it would run code
        np.savez(file, header=np.array([{"a": 1}], dtype=object))


PARTS = ["plan", "ledger", "releases", "batches", "format"]
WRONG = {
    **{f"without {part}": lambda path, part=part: altered(path, lambda header, _: header.pop(part))
       for part in PARTS},
    "another format": lambda path: altered(path, lambda header, _: header.update(format="other/4")),
    "nothing": lambda path: path.write_bytes(b""),
    "a part": lambda path: path.write_bytes(path.read_bytes()[:-10]),
    "a pickle": pickled,
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_file_is_refused_and_put_back(wrong, path):
    halfway().save(path)
    whole = path.read_bytes()
    WRONG[wrong](path)
    held = path.read_bytes()
    with refused(dc.CorruptRelease, "Learner.save", "not claimed"):
        dc.Learner.load(path)
    assert path.read_bytes() == held
    path.write_bytes(whole)
    assert len(dc.Learner.load(path).released.items) == 2
    with refused(dc.StateClaimed, "the path is wrong"):
        dc.Learner.load(path)
    path.mkdir()
    with refused(dc.CorruptRelease):
        dc.Learner.load(path)


def test_of_two_that_load_exactly_one_goes_on(path):
    """The claim is one call of the system, for threads as for processes."""
    start = threading.Barrier(2)

    def load(_):
        start.wait()
        try:
            return dc.Learner.load(path)
        except dc.StateClaimed:
            return None

    with ThreadPoolExecutor(2) as pool:
        for _ in range(8):
            dc.Learner(plan()).save(path)
            assert sum(each is not None for each in pool.map(load, range(2))) == 1
