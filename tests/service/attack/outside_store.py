"""Files and tables of an experiment, read without any code of the service.

Tables by SQL, keys from their files, rows by AES-GCM, ids by their MAC; nothing is imported.
"""

import base64
import hmac
import math
import shutil
import sqlite3
import struct
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

TABLES = {
    "experiment": "name, mode",
    "batches": "epoch, id, size, taken, state",
    "records": "epoch, batch, slot, payload",
    "answers": "epoch, batch, slot, kind, payload",
    "documents": "number, kind, epoch, batch, digest, body",
    "charges": "number, entry",
}
ROW, LOSS, WHOLE = 0, 2, 3
"""Kinds of sealed content: a decision, a loss, both at once."""
UNSTORED, TOKEN = 0, 2
"""Kinds of ids: no slot; a decision that its loss brings along."""
FINE, MARKS = 2**17, 64
"""A context is (mark of its experiment / MARKS, number of its request / FINE)."""


def context(mark, number):
    """What the request with this number sends; no two are the same."""
    return [mark / MARKS, number / FINE]


class Store:
    """One experiment of a folder: where it lies, and what its tables hold now."""

    def __init__(self, folder, name, url=None):
        self.name, self._url = name, url
        places = [folder / kind / name for kind in ("experiments", "archive")]
        self.place = next((each for each in places if each.is_dir()), None)
        self.archived = self.place == places[1]

    @property
    def begun(self):
        """Whether it was made as far as document 0."""
        if self.place is None or not (self.place / "vault" / "signing.key").is_file():
            return False
        try:
            return bool(self.tables(("documents",))["documents"])
        except sqlite3.OperationalError:
            return False  # no tables yet
        except Exception as error:
            if type(error).__name__ == "UndefinedTable":
                return False
            raise

    def tables(self, names=tuple(TABLES), *, served=False):
        """Rows of tables, in order: as a crash left them, or beside a server that runs."""
        if self._url:
            return self._postgresql(names)
        return self._beside(names) if served else self._sqlite(names)

    def _beside(self, names):
        # Files that are copied one after the other while they change do not fit together.
        with closing(sqlite3.connect(self.place / "discreet.db")) as connection:
            connection.execute("BEGIN")
            return {name: connection.execute(_select(name)).fetchall() for name in names}

    def _sqlite(self, names):
        with copied(self.place / "discreet.db") as connection:
            return {name: connection.execute(_select(name)).fetchall() for name in names}

    def _postgresql(self, names):
        import psycopg

        schema = f"experiment_{self.name.replace('-', '_')}"
        with psycopg.connect(self._url) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.execute(f"SET LOCAL search_path TO {schema}")
            rows = {name: connection.execute(_select(name)).fetchall() for name in names}
        return {name: [tuple(map(_plain, row)) for row in each] for name, each in rows.items()}

    def public_key(self):
        return Ed25519PrivateKey.from_private_bytes(self._secret("signing")).public_key()

    def key_files(self):
        """The batches whose rows can still be read."""
        found = [path.stem.split("-")[1:] for path in self.place.glob("vault/batch-*.key")]
        return {(int(epoch), int(batch)) for epoch, batch in found}

    def slot(self, decision):
        """Kind and (epoch, batch, slot) of an id; None if it is not of this experiment."""
        raw = base64.urlsafe_b64decode(decision + "=" * (-len(decision) % 4))
        body, mac = raw[:-16], raw[-16:]
        if not hmac.compare_digest(hmac.digest(self._secret("mac"), body, "sha256")[:16], mac):
            return None
        kind, *slot = struct.unpack_from(">BHII", body)
        return kind, tuple(slot)

    def opened(self, kind, slot, sealed):
        """The content of a sealed row."""
        key = AESGCM(self._secret(f"batch-{slot[0]}-{slot[1]}"))
        return key.decrypt(sealed[:12], sealed[12:], struct.pack(">BHII", kind, *slot))

    def _secret(self, name):
        return (self.place / "vault" / f"{name}.key").read_bytes()


@contextmanager
def copied(path):
    """A database as a crash left it: of a copy, since reading would mend it."""
    with tempfile.TemporaryDirectory() as copy:
        for each in path.parent.glob(f"{path.name}*"):
            shutil.copy(each, copy)
        with closing(sqlite3.connect(Path(copy) / path.name)) as connection:
            yield connection


def read_row(packed):
    """Mark of the experiment, number of the request, and place of the action."""
    features = struct.unpack(f"<{(len(packed) - 5) // 8}d", packed[:-5])
    assert math.isclose(features[0], math.sqrt(0.5)), "a row is not what anybody sent"
    mark, number = (each / features[0] for each in features[1:3])
    return round(mark * MARKS), round(number * FINE), struct.unpack_from("<i", packed[-5:])[0]


def _select(name):
    return f"SELECT {TABLES[name]} FROM {name} ORDER BY 1, 2"


def _plain(value):
    return bytes(value) if isinstance(value, memoryview) else value
