"""Names of requests that took a slot, remembered for a while after their batch is over.

While a batch is under way, its stored replies identify a repeated request [journal.py]. Afterwards
a hash of the request does, under a key of its batch that is destroyed when the time is over.
Without it a repeated request would be a second record of the same person, in another batch.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from itertools import islice

from discreet.errors import ServiceError
from discreet.service.secrets.vault import NAMES, Vault
from discreet.service.storage.batches import UNDER_WAY
from discreet.service.storage.database import Connection, Database, marks, step

Place = tuple[int, int]
LENGTH = 16
"""Bytes of a hash: two requests of an experiment collide with a chance below 2⁻⁶⁰."""
AT_ONCE = 8192
"""Hashes per statement; SQLite allows 32,766."""
SLICE = 5000
"""Names that one transaction deletes: limits how long decisions wait."""


class RequestNames:
    """Requests that took a slot of a batch that is over, for ``seconds`` after its end."""

    def __init__(self, database: Database, vault: Vault, seconds: float) -> None:
        self._database, self._vault = database, vault
        self._since = f"{database.now} - {float(seconds)!r}"
        self._keys: dict[Place, bytes] = {}
        self.incomplete = False
        """Whether a backup was restored so recently that names may be missing."""
        self.expired: list[Place] = []
        """Batches whose names must be forgotten now, the oldest first, as of the last ``look``."""

    def hashed(self, place: Place, request: bytes) -> bytes:
        """Return the hash to store for a request that takes a slot of this batch."""
        key = self._key(place)
        if key is None:
            raise ServiceError(
                f"the vault must hold names-{place[0]}-{place[1]}.key; this file is missing. "
                "Put the vault back, or burn the batch.",
                status=503,
                code="vault_incomplete",
            )
        return _hash(key, request)

    def look(self, connection: Connection) -> None:
        """Read the batches whose names are expired; drop their keys from memory."""
        listed = f"WHERE {UNDER_WAY} OR ended IS NOT NULL ORDER BY epoch, id"
        rows = connection.execute(
            f"SELECT epoch, id, ended <= {self._since} FROM batches {listed}"
        ).fetchall()
        self.expired = [row[:2] for row in rows if row[2]]
        known = {row[:2] for row in rows if not row[2]}
        kept = list(self._keys.items())  # other threads add keys meanwhile
        self._keys = {place: key for place, key in kept if place in known}
        found = connection.execute(f"SELECT 1 FROM experiment WHERE restored > {self._since}")
        self.incomplete = found.fetchone() is not None

    def used(self, connection: Connection, requests: Collection[bytes]) -> set[bytes]:
        """Return the requests that took a slot of a batch that is over in this transaction."""
        places = connection.execute(
            f"SELECT epoch, id FROM batches WHERE ended > {self._since}"
        ).fetchall()
        keys = [(place, key) for place in places if (key := self._key(place)) is not None]
        sought = (
            ((*place, _hash(key, request)), request) for place, key in keys for request in requests
        )
        found: set[bytes] = set()
        while part := dict(islice(sought, AT_ONCE)):
            by_place: dict[Place, list[bytes]] = {}
            for epoch, batch, name in part:
                by_place.setdefault((epoch, batch), []).append(name)
            # Written so that every query planner uses the index for each name.
            selects = " UNION ALL ".join(
                f"""SELECT epoch, batch, name FROM names WHERE epoch = {epoch} AND batch = {batch}
                    AND name IN {marks([names])}"""
                for (epoch, batch), names in by_place.items()
            )
            rows = connection.execute(selects, [n for names in by_place.values() for n in names])
            found |= {part[row] for row in rows.fetchall()}
        return found

    def _key(self, place: Place) -> bytes | None:
        key = self._keys.get(place) or self._vault.key(*place, NAMES)
        if key is not None:
            self._keys[place] = key
        return key

    def forget(self, connection: Connection, place: Place) -> bool:
        """Delete a slice of the names of a batch; True if none is left."""
        these = "names WHERE epoch = ? AND batch = ?"
        beyond = connection.execute(
            f"SELECT name FROM {these} ORDER BY name LIMIT 1 OFFSET ?", (*place, SLICE)
        ).fetchone()
        if beyond is not None:
            connection.execute(f"DELETE FROM {these} AND name < ?", (*place, beyond[0]))
            return False
        connection.execute(f"DELETE FROM {these}", place)
        connection.execute("UPDATE batches SET ended = NULL WHERE epoch = ? AND id = ?", place)
        step("names:before-commit")
        return True


def remember(connection: Connection, place: Place, slots: range = range(2**31)) -> None:
    """Store the names of a batch that is over, in the transaction that deletes its replies: at any
    moment a request is in one of the two tables. Does nothing if their time is over already."""
    connection.execute(
        """INSERT INTO names SELECT replies.epoch, replies.batch, later FROM replies
            JOIN batches ON batches.epoch = replies.epoch AND batches.id = replies.batch
            WHERE replies.epoch = ? AND replies.batch = ? AND slot >= ? AND slot < ?
            AND ended IS NOT NULL ORDER BY later ON CONFLICT DO NOTHING""",
        (*place, slots.start, slots.stop),
    )


def _hash(key: bytes, request: bytes) -> bytes:
    return hmac.digest(key, request, "sha256")[:LENGTH]
