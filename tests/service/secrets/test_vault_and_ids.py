"""Decision ids, sealed rows, the vault and the clock."""

import os
import time
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from discreet.errors import InvalidInput, UnknownDecision
from discreet.service.secrets.sealing import (
    BARE_LENGTH,
    LOSS,
    ROW,
    TOKEN,
    DecisionId,
    DecisionIds,
    DecisionRow,
    Sealer,
    pack_losses,
    unpack_losses,
)
from discreet.service.secrets.vault import NAMES, Vault
from discreet.service.storage import sqlite
from discreet.service.storage.sqlite import Clock, Sqlite

IDS = DecisionIds(b"k" * 32)
ANY = some.builds(
    DecisionId,
    some.integers(0, 3),
    some.integers(0, 2**16 - 1),
    some.integers(0, 2**32 - 1),
    some.integers(0, 2**32 - 1),
    some.binary(min_size=8, max_size=8),
    some.binary(max_size=60),
)


@given(ANY)
def test_an_id_is_read_as_it_was_written(id):
    assert IDS.read(IDS.write(id)) == id


@given(ANY, some.data())
def test_an_altered_id_is_unknown(id, data):
    text = IDS.write(id)
    place = data.draw(some.integers(0, len(text) - 1))
    other = data.draw(some.characters(codec="utf-8").filter(lambda each: each != text[place]))
    with pytest.raises(UnknownDecision):
        IDS.read(text[:place] + other + text[place + 1 :])
    with pytest.raises(UnknownDecision):
        DecisionIds(b"l" * 32).read(text)


def test_an_id_has_one_spelling():
    text = IDS.write(DecisionId(TOKEN, 1, 2, 3, token=b"x"))
    for other in (text + "=", text + "\n", " " + text, text.replace("A", "A ", 1), "", "é", "a"):
        with pytest.raises(UnknownDecision):
            IDS.read(other)


BARE = ANY.map(lambda id: id._replace(token=b""))


@given(some.lists(BARE, max_size=4))
def test_ids_without_a_row_are_read_at_once(ids):
    texts = [IDS.write(id) for id in ids]
    assert {len(text) for text in texts} <= {BARE_LENGTH}
    assert IDS.read_bare(texts) == ids
    assert DecisionIds(b"l" * 32).read_bare(texts) == [None] * len(ids)


@given(BARE, BARE, some.data())
def test_what_read_refuses_is_not_read_at_once(id, other, data):
    text = IDS.write(id)
    place = data.draw(some.integers(0, len(text) - 1))
    letters = some.sampled_from("ABCDabcd0123-_+/=! \n") | some.characters(codec="utf-8")
    letter = data.draw(letters.filter(lambda each: each != text[place]))
    altered, good = text[:place] + letter + text[place + 1 :], IDS.write(other)
    found = IDS.read_bare([good, altered, good])
    assert found in ([other, None, other], [None] * 3)


def test_losses_are_sealed_together_as_alone():
    sealer = Sealer(b"k" * 32, 3, 4)
    losses = [(7, 0.25), (8, 1.0), (2**32 - 1, 0.1)]
    sealed = sealer.seal_losses(losses)
    opened = [sealer.open(LOSS, *each) for each in zip((7, 8, 2**32 - 1), sealed, strict=True)]
    assert opened == [pack_losses([loss]) for _, loss in losses]
    assert len({each[:12] for each in (*sealed, *sealer.seal_losses(losses))}) == 6  # new nonces
    assert sealer.open(LOSS, 8, sealed[0]) is None


def test_a_row_opens_in_its_own_place_only():
    sealer = Sealer(b"k" * 32, 1, 2)
    row = DecisionRow(np.array([0.5, -0.25]), 2, True)
    sealed = sealer.seal(ROW, 7, row.pack())
    opened = DecisionRow.unpack(sealer.open(ROW, 7, sealed))
    assert (opened.features.tolist(), opened.action, opened.deferred) == ([0.5, -0.25], 2, True)
    assert sealer.open(ROW, 8, sealed) is None
    assert sealer.open(LOSS, 7, sealed) is None
    assert Sealer(b"k" * 32, 1, 3).open(ROW, 7, sealed) is None
    assert Sealer(b"l" * 32, 1, 2).open(ROW, 7, sealed) is None
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 1
        assert sealer.open(ROW, 7, bytes(altered)) is None
    assert sealed != sealer.seal(ROW, 7, row.pack())  # a fresh nonce each time
    assert "0.5" not in repr(row)


def test_people_are_hashed_under_a_key_that_stays_with_the_experiment(tmp_path):
    one, other = Vault(tmp_path / "one"), Vault(tmp_path / "other")
    for each in (one, other):
        each.create()
    assert one.people == Vault(tmp_path / "one").people != other.people
    assert one.people not in (one.signing, one.mac)
    assert not any(one.people in path.read_bytes() for path in one.folder.iterdir())


@given(some.binary(), some.lists(some.floats(0, 1), min_size=1, max_size=4))
def test_losses_and_guardrails_keep_every_bit(row, losses):
    assert unpack_losses(row + pack_losses(losses), len(losses) - 1) == (row, losses)


def test_the_vault_makes_keys_once_and_destroys_them(tmp_path):
    with pytest.raises(InvalidInput, match=r"vault must hold signing\.key"):
        _ = Vault(tmp_path / "none").signing
    vault = Vault(tmp_path / "vault")
    vault.create()
    signing = vault.signing
    vault.create()
    assert Vault(vault.folder).signing == signing
    vault.make(1, 5)
    key = vault.batch(1, 5)
    vault.make(1, 5)
    assert Vault(vault.folder).batch(1, 5) == key
    assert vault.batches() == [(1, 5)]
    path = vault.folder / "batch-1-5.key"
    kept = path.with_name("kept")
    os.link(path, kept)  # the same bytes on the disk, under another name
    assert {path.stat().st_mode & 0o777, vault.folder.stat().st_mode & 0o777} == {0o600, 0o700}
    vault.destroy(1, 5)
    vault.destroy(1, 5)
    assert kept.read_bytes() == bytes(32)  # overwritten, not only unlinked
    assert vault.batch(1, 5) is None
    assert vault.batches(NAMES) == [(1, 5)]  # the names of its requests are remembered longer
    names = vault.folder / "names-1-5.key"
    os.link(names, kept.with_name("names"))
    vault.destroy(1, 5, NAMES)
    assert kept.with_name("names").read_bytes() == bytes(32)
    assert (vault.batches(NAMES), vault.key(1, 5, NAMES)) == ([], None)
    assert [each.name for each in vault.folder.glob(".*")] == []
    assert "secret" in repr(vault)


@pytest.mark.parametrize("jump", [-365 * 86_400, -3600, -1, 1, 3600, 365 * 86_400])
def test_no_jump_of_the_system_clock_moves_ours(monkeypatch, jump):
    ours = Clock()
    before, real = ours.now(), time.time
    monkeypatch.setattr(sqlite.time, "time", lambda: real() + jump)
    assert 0 <= ours.now() - before < 0.5
    later = Clock(seen=before)
    assert later.now() >= before


def test_no_file_of_a_served_experiment_is_open_to_others(tmp_path):
    """Whoever may open the lock file could hold it, and keep the service from starting."""
    before = os.umask(0)
    try:
        for found in (None, 0o666):
            database = Sqlite(tmp_path / f"{found}.db")
            lock = tmp_path / f"{found}.db.lock"
            if found is not None:  # of an earlier version
                lock.touch(found)
            with database.guard(), closing(database.connect()):
                modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
            assert lock.name in modes
            assert set(modes.values()) == {0o600}
    finally:
        os.umask(before)


def test_keys_are_on_the_disk_before_they_are_used(tmp_path, monkeypatch):
    """Their content, and then their names."""
    vault = Vault(tmp_path / "vault")
    vault.create()
    synced, honest = [], os.fsync

    def sync(file):
        honest(file)
        found = os.fstat(file)
        synced.append((found.st_ino, found.st_size, {*os.listdir(vault.folder)}))

    monkeypatch.setattr(os, "fsync", sync)
    vault.make(1, 2)
    for kind in ("batch", NAMES):
        path = vault.folder / f"{kind}-1-2.key"
        content = [each for each in synced if each[0] == path.stat().st_ino]
        assert [(size, path.name in names) for _, size, names in content] == [(32, False)]
        folder = [each for each in synced if each[0] == vault.folder.stat().st_ino]
        assert any(path.name in names for _, _, names in folder)
