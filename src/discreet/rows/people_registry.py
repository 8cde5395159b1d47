"""Who was handed how many slots: people under keyed hashes of their ids, never under the ids."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.privacy.participation import Participation
from discreet.rows.people_counts import ENTERED, LAST, RECORDS, PeopleCounts

KEY_BYTES = HASH_BYTES = 32


class PeopleRegistry:
    """The counts of everybody who ever took a slot, by HMAC-SHA256 of their id.

    The key is random and part of the private state: without it nobody can look for an id.
    """

    def __init__(self, participation: Participation) -> None:
        self._key = secrets.token_bytes(KEY_BYTES)
        self._numbers: dict[bytes, int] = {}
        self._counts = PeopleCounts(participation)

    def __repr__(self) -> str:
        return "PeopleRegistry(private)"

    def hand_out(self, users: Sequence[str], batch: int) -> np.ndarray[Any, Any]:
        """Give each of these users the next slot of a batch; which of the slots count."""
        return self._counts.hand_out(self._people(users), batch)

    def use_up(self, user: str) -> None:
        """Let no later slot of this user count; the same for somebody who was never here."""
        self._counts.use_up(int(self._people([user])[0]))

    def _people(self, users: Sequence[str]) -> np.ndarray[Any, Any]:
        """The number of each user; new ones get the next."""
        key, numbers = self._key, self._numbers
        hashes = (
            hmac.digest(key, user.encode("utf-8", "surrogatepass"), "sha256") for user in users
        )
        found = (numbers.setdefault(each, len(numbers)) for each in hashes)
        return np.fromiter(found, dtype=np.int64, count=len(users))

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Everything, for the private file of a learner."""
        hashes = np.frombuffer(b"".join(self._numbers), dtype=np.uint8)
        return {
            "people_key": np.frombuffer(self._key, dtype=np.uint8),
            "people_hashes": hashes.reshape(-1, HASH_BYTES),
            "people_counts": self._counts.table[: len(self._numbers)],
        }

    @classmethod
    def of_arrays(
        cls, participation: Participation, arrays: Mapping[str, Any], newest: int
    ) -> PeopleRegistry:
        """The registry that ``arrays`` told of; ValueError for an impossible one.

        ``newest`` is the number of the newest batch under way.
        """
        key, hashes, table = (arrays[f"people_{name}"] for name in ("key", "hashes", "counts"))
        most = np.array([participation.batches, newest, participation.records])
        made = cls(participation)
        made._key = key.tobytes()
        made._numbers = {each.tobytes(): number for number, each in enumerate(hashes)}
        entered = table[:, ENTERED]
        possible = (
            (key.dtype, key.shape) == (np.uint8, (KEY_BYTES,))
            and (hashes.dtype, hashes.shape) == (np.uint8, (len(table), HASH_BYTES))
            and (table.dtype, table.shape[1]) == (np.int64, 3)
            and len(made._numbers) == len(table)
            and bool(((table >= 0) & (table <= most)).all())
            # A newest batch has a record and is among those entered; erased people have none.
            and bool(((table[:, LAST] > 0) == (table[:, RECORDS] > 0)).all())
            and bool((entered > 0).all())
        )
        if not possible:
            raise ValueError
        made._counts = PeopleCounts(participation, table.copy())
        return made
