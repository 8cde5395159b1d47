"""Several processes want the same batch and the same slots: one winner, no gap, no overlap."""

from collections import Counter
from contextlib import closing

import pytest

from discreet.client.chain import Chain
from discreet.client.documents import public_key
from discreet.service.secrets.vault import Vault
from discreet.service.storage import document_table as documents
from discreet.service.storage.anchor import Anchor
from discreet.service.storage.locations import anchor_of, open_database
from service.attack.harness import without_keys
from service.attack.racer import Racers

EIGHT = {"first_batch": 8, "longest": 8}
"""All batches are as long as those that the test seals."""


def seal_a_batch(settings, number):
    """A batch whose window is over, without any row."""
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    vault.make(1, number)
    with closing(database.connect()) as connection, database.transaction(connection):
        connection.execute(
            f"""INSERT INTO batches
                (epoch, id, size, taken, state, release, opened, sealed, closes, due)
                VALUES (1, ?, 8, 8, 'sealed', 0, {database.now},
                {database.now}, {database.now}, {database.now})""",
            (number,),
        )


def published(settings):
    """Of each batch how many releases there are, in a chain that is whole."""
    vault = Vault(settings.place(settings.vault))
    with closing(open_database(settings).connect()) as connection:
        Chain(public_key(vault.signing)).extended(documents.after(connection, -1))
        rows = connection.execute("SELECT batch FROM documents WHERE kind = 'release'")
        return Counter(row[0] for row in rows.fetchall())


def races(settings, rounds, harm=""):
    """One sealed batch a round, four processes for it: how many of them won, each time."""
    winners = []
    with Racers(settings.folder / "experiment.toml", harm=harm) as racers:
        for number in range(1, rounds + 1):
            seal_a_batch(settings, number)
            winners.append(racers("release").count(True))
            confirm(settings)
    return winners


def confirm(settings):
    """What a worker does before it serves a release, and before the next one can be made."""
    with closing(open_database(settings).connect()) as connection:
        committed = dict(documents.committed(connection))
    anchor_of(settings).confirm(committed.items())


def test_one_winner_a_batch(begun):
    settings = begun(**EIGHT)
    assert races(settings, 25) == [1] * 25
    assert published(settings) == Counter(range(1, 26))


def test_the_key_of_the_table_is_the_guarantee(begun, monkeypatch):
    """Without the check of the state the winner is still one; without the keys it is not."""
    settings = begun(**EIGHT)
    assert max(races(settings, 5, harm="no_state_check")) == 1
    assert set(published(settings).values()) == {1}
    careless = begun("careless", **EIGHT)
    without_keys(careless)
    monkeypatch.setattr(Anchor, "confirm", lambda *_: None)
    assert max(races(careless, 5, harm="no_state_check_nor_anchor")) > 1


@pytest.mark.long
def test_one_winner_a_batch_500_times(begun):
    for number in range(10):  # each release reads all documents before it: begin anew
        settings = begun(f"experiment-{number}", **EIGHT)
        assert races(settings, 50) == [1] * 50
        assert published(settings) == Counter(range(1, 51))


def assert_each_once(settings, size, harm=""):
    # Three of four racers are too few for all slots, so that each of them has to ask in a crowd.
    most = (size - 1) // (3 * settings.lease)
    with Racers(settings.folder / "experiment.toml", harm=harm) as racers:
        shares = racers(most)
    taken = Counter(slot for share in shares for slot in share)
    assert max(taken.values()) == 1, "a slot was handed out twice"
    assert all(shares)
    assert sorted(taken) == [(1, slot) for slot in range(size)]


def test_slots_under_contention(begun):
    assert_each_once(begun(first_batch=2000, lease=4), 2000)


def test_slots_that_are_assigned_twice_are_noticed(begun):
    with pytest.raises(AssertionError, match="twice"):
        assert_each_once(begun(first_batch=512, lease=4), 512, harm="careless_leases")


@pytest.mark.long
def test_200_000_slots_under_contention(begun):
    assert_each_once(begun(first_batch=200_000), 200_000)
