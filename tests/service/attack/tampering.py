"""Ways to break what many experiments hold, each of which the outside checker must notice."""

import copy
import hashlib
import json
import os
import shutil
import sqlite3
import struct
from contextlib import closing

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from service.attack.outside_store import MARKS, ROW, UNSTORED, Store

LIVE = "(epoch, batch) IN (SELECT epoch, id FROM batches WHERE state IN ('open', 'sealed'))"


class Copy:
    """A folder of experiments and the accounts of its clients, to be damaged."""

    def __init__(self, folder, target, accounts):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)
        self.folder, self.accounts = target, copy.deepcopy(accounts)

    def run(self, name, *statements):
        """SQL on the database of an experiment; how many rows the last statement changed."""
        path = self.folder / "experiments" / name / "discreet.db"
        with closing(sqlite3.connect(path)) as connection, connection:
            for each in statements:
                done = connection.execute(*([each] if isinstance(each, str) else each))
            return done.rowcount, done.fetchall()

    def document(self, name, change, *, again=False):
        """The newest release that clients fetched, changed and signed; ``again`` at the end too.

        A change drops what came after it, which no longer follows.
        """
        path = self.folder / "experiments" / name / "vault" / "signing.key"
        key = Ed25519PrivateKey.from_private_bytes(path.read_bytes())
        rows = self.run(name, "SELECT * FROM documents ORDER BY number")[1]
        fetched = self.accounts[name]["documents"]
        row = [each for each in rows if each[1] == "release" and each[0] in fetched][-1]
        number, kind, epoch, batch, _, body = row
        document = json.loads(body)
        del document["signature"]
        if again:
            number = len(rows)
            document |= {"number": number, "previous": rows[-1][4]}
            self.run(
                name,
                "CREATE TABLE plain AS SELECT * FROM documents",
                "DROP TABLE documents",
                "ALTER TABLE plain RENAME TO documents",
            )
        else:
            self.run(name, f"DELETE FROM documents WHERE number >= {number}")
        document |= change
        document["signature"] = key.sign(_canonical(document)).hex()
        body = _canonical(document)
        row = (number, kind, epoch, batch, hashlib.sha256(body).hexdigest(), body)
        self.run(name, ("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", row))

    def another_row(self, name, slot_after, change):
        """A row under way once more, at another slot, with other features or the same."""
        select = f"SELECT epoch, batch, slot, payload FROM records WHERE {LIVE} LIMIT 1"
        *slot, payload = self.run(name, select)[1][0]
        packed = change(Store(self.folder, name).opened(ROW, slot, payload))
        vault = self.folder / "experiments" / name / "vault"
        key = AESGCM((vault / f"batch-{slot[0]}-{slot[1]}.key").read_bytes())
        slot[2] += slot_after
        nonce = os.urandom(12)
        sealed = nonce + key.encrypt(nonce, packed, struct.pack(">BHII", ROW, *slot))
        self.run(name, ("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", (*slot, sealed)))

    def reported(self, name, *, released=False):
        """Requests that took a slot; of a released batch, and heard, if wanted."""
        store = Store(self.folder, name)
        rows = self.run(name, "SELECT epoch, id FROM batches WHERE state = 'released'")[1]
        for each in self.accounts[name]["sent"]:
            if each["answer"]["stored"] and (each["received"] or not released):
                kind, slot = store.slot(each["answer"]["decision"])
                assert kind != UNSTORED
                if not released or slot[:2] in rows:
                    yield each


def _canonical(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _of_another(packed):
    """The same row with the mark of another experiment."""
    half = struct.unpack_from("<d", packed)[0]
    return packed[:8] + struct.pack("<d", half * 60 / MARKS) + packed[16:]


def _lost_decision(it):
    assert it.run("users", f"DELETE FROM records WHERE {LIVE}")[0] > 0


def _lost_loss(it):
    assert it.run("users", f"DELETE FROM answers WHERE {LIVE}")[0] > 0


def _doubled(it):
    it.another_row("users", 1000, bytes)


def _strange(it):
    it.another_row("users", 0, _of_another)


def _shared_slot(it):
    one, other, *_ = it.reported("tokens")
    one["answer"] = other["answer"]


def _foreign_id(it):
    next(it.reported("tokens"))["answer"] = next(it.reported("plain"))["answer"]


def _released_twice(it):
    it.document("plain", {}, again=True)


def _other_bytes(it):
    it.document("plain", {"unit": "another"})


def _no_link(it):
    it.document("plain", {"previous": "0" * 64})


def _bad_signature(it):
    change = "UPDATE documents SET body = replace(body, 'general', 'special') WHERE number = 0"
    assert it.run("plain", change)[0] == 1


def _paid_twice(it):
    it.run("plain", "INSERT INTO charges SELECT max(number) + 100, entry FROM charges")


def _paid_never(it):
    it.run("plain", "DELETE FROM charges WHERE number = (SELECT max(number) FROM charges)")


def _not_in_its_release(it):
    each = next(it.reported("plain", released=True))
    each["loss"] = 0.0 if each["loss"] else 1.0


def _row_of_nobody_released(it):
    each = next(it.reported("tokens", released=True))
    each |= {"loss": None, "received": False}


def _lost_mode(it):
    it.run("tokens", "UPDATE experiment SET mode = 'frozen'")


def _lost_change(it):
    it.accounts["plain"]["changes"].append((["ghost"], [], True))


def _lost_experiment(it):
    shutil.rmtree(it.folder / "experiments" / "plain")


def _mixed_payloads(it):
    row = it.run("users", f"SELECT payload FROM records WHERE {LIVE} LIMIT 1")[1][0]
    over = "SELECT epoch, id, 9999 FROM batches WHERE state = 'released' LIMIT 1"
    place = it.run("plain", over)[1][0]
    it.run("plain", ("INSERT INTO records VALUES (?, ?, ?, ?)", (*place, *row)))


BREAKS = {
    "decision is lost": _lost_decision,
    "loss is lost": _lost_loss,
    "two records": _doubled,
    "rows of one experiment": _strange,
    "are in another": _mixed_payloads,
    "share a slot": _shared_slot,
    "id of another": _foreign_id,
    "released twice": _released_twice,
    "published document changed": _other_bytes,
    "does not follow": _no_link,
    "not signed": _bad_signature,
    "did not pay": _paid_twice,
    "not pay once": _paid_never,
    "not the sum": _not_in_its_release,
    "sum of what was acknowledged": _row_of_nobody_released,
    "mode is lost": _lost_mode,
    "change of actions is lost": _lost_change,
    "experiment that was acknowledged is lost": _lost_experiment,
}
"""What the checker says, by what was broken."""
