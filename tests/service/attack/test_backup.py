"""A backup comes back: it is refused, and after ``discreet restore`` the old batch is burned."""

import json
import shutil
import signal
import sqlite3
from contextlib import closing

import pytest

from discreet.client.chain import Chain
from discreet.client.documents import public_key
from service.attack.harness import context
from waiting import until

STEPS = ("restore:before-commit", "restore:intended", "restore:committed", "restore:anchored")
TABLES = (
    *("experiment", "batches", "leases", "records", "answers", "replies", "names"),
    *("documents", "charges"),
)


def backup(place):
    """What an operator keeps: the files, or the rows of a server."""
    if place.settings.postgres:
        with place.opened() as connection:
            return {
                table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES
            }
    kept = place.folder.parent / "backup"
    kept.mkdir()
    with place.opened() as connection, closing(sqlite3.connect(kept / "discreet.db")) as copy:
        connection.backup(copy)
    return kept


def bring_back(place, kept):
    if place.settings.postgres:
        with place.opened() as connection:
            for table, rows in kept.items():
                connection.execute(f"DELETE FROM {table}")
                for row in rows:
                    marks = ", ".join("?" for _ in row)
                    connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)
        return
    for path in place.folder.glob("discreet.db*"):
        path.unlink()
    for path in kept.iterdir():
        shutil.copy(path, place.folder)


def documents(place):
    with place.opened() as connection:
        rows = connection.execute("SELECT body FROM documents ORDER BY number").fetchall()
    return [bytes(row[0]) for row in rows]


def fill(place):
    """Decide until the batch is full; the ids."""
    ids = []
    while True:
        status, answer = place.post("/v1/decide", {"context": context(len(ids))})
        assert status == 200
        if not answer["stored"]:
            return ids
        ids.append(answer["decision"])


def back_in_time(place, *, with_vault=False):
    """A service that released a batch, and then got back a database from before that."""
    with place.served():
        ids = fill(place)
        kept, keys = backup(place), place.folder.parent / "keys"
        shutil.copytree(place.folder / "vault", keys)
        place.windows_end()
        until(lambda: place.get("/v1/status")[1]["releases"] == 1)
    seen = documents(place)
    bring_back(place, kept)
    if with_vault:
        shutil.copytree(keys, place.folder / "vault", dirs_exist_ok=True)
    assert len(documents(place)) == len(seen) - 1
    return place, ids, seen


def test_it_is_refused_until_restore_burns_what_was_under_way(places, database):
    place, ids, seen = back_in_time(places(database))
    assert place.run("serve") != 0
    assert "run discreet restore" in place.log.read_text()
    assert place.run("restore") == 0
    check_restored(place, ids, seen)


@pytest.mark.parametrize("step", STEPS)
def test_a_restore_that_is_killed_can_be_made_again(place_on_sqlite, step):
    place, ids, seen = back_in_time(place_on_sqlite())
    assert place.run("restore", step) == -signal.SIGKILL
    if step in ("restore:before-commit", "restore:intended"):  # nothing was committed
        assert place.run("serve") != 0
        assert place.run("restore") == 0
    check_restored(place, ids, seen)


def check_restored(place, ids, seen):
    """Burned, said so, never released; whoever saw the lost release can follow the chain."""
    with place.served():
        for id in ids:
            assert place.post("/v1/observe", {"decision": id, "loss": 0.5})[0] == 410
        fill(place)
        place.windows_end()
        until(lambda: place.get("/v1/status")[1]["releases"] == 1)
    kinds = [json.loads(body)["kind"] for body in documents(place)]
    assert kinds[0] == "genesis"
    assert kinds[-1] == "release"
    assert set(kinds[1:-1]) == {"restore"}
    burned = [json.loads(body).get("burned") for body in documents(place)]
    assert [1] in burned
    key = public_key(place.vault.signing)
    follower = Chain(key).extended(seen).extended(documents(place)[1:])
    assert len(follower.released.items) == 1
    newest = json.loads(documents(place)[-1])
    assert newest["number"] > json.loads(seen[-1])["number"]
    assert newest["epoch"] > 1


def test_without_the_anchor_a_backup_is_served(places):
    """Had the anchor and the destroyed key not been, the old batch would be released again."""
    place, _, seen = back_in_time(places("discreet.db"), with_vault=True)
    with place.served(sabotage="no_anchor"):
        place.windows_end()
        until(lambda: place.get("/v1/status")[1]["releases"] == 1)
    again = documents(place)
    assert len(again) == len(seen)
    assert again[-1] != seen[-1]
