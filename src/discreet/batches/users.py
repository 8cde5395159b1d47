"""People: ids of users, the slots of each that count, and a registry under keyed hashes.

At most k slots count in each of at most M batches; the others are void. Counts know people by
keys alone, so that learner, simulation and service share the rule.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from discreet.design.control import people_in_control
from discreet.errors import InvalidInput
from discreet.privacy.budget import Participation
from discreet.types import NumpyArray, Values


class Count(NamedTuple):
    """Batches that count, the newest of them, and slots that count there."""

    entered: int = 0
    last: int = 0
    records: int = 0


NEVER = Count()
Person = TypeVar("Person", bound=Hashable)


class PeopleCounts(Generic[Person]):
    """Slots that people have used. Batches come in the order of their numbers, from 1.

    Only the newest batch of a person is known, so a slot of an earlier batch, which several
    processes may still give out, is void.

    Privacy: a batch counts when a slot of it is given out, with or without an answer, so
    silence is not free. [docs/privacy/users.md, "Counts must not be forgotten"]

    >>> counts = PeopleCounts(Participation(batches=2, records=1))
    >>> counts.hand_out(["anna", "bob", "anna"], batch=1).tolist()
    [True, True, False]
    >>> [counts.hand_out(["anna"], batch).item() for batch in (2, 3)]
    [True, False]
    """

    def __init__(
        self, participation: Participation, held: Iterable[tuple[Person, Count]] = ()
    ) -> None:
        self.participation = participation
        self.held = dict(held)

    def __repr__(self) -> str:
        return "PeopleCounts(private)"

    def hand_out(self, people: Iterable[Person], batch: int) -> NumpyArray:
        """Give each of these people the next slot of a batch; return a mask of those that count."""
        held, most, slots = self.held, self.participation, []
        for person in people:
            entered, last, records = held.get(person, NEVER)
            if last != batch:  # their first slot of this batch
                entered, records = entered + 1, 0
            counts = last <= batch and entered <= most.batches and records < most.records
            if counts:
                held[person] = Count(entered, batch, records + 1)
            slots.append(counts)
        return np.array(slots, dtype=bool)

    def use_up(self, person: Person) -> None:
        """Let no later slot of this person count, also if none was before.

        Privacy: a person who was forgotten instead could enter M batches more.
        [docs/privacy/users.md, "Counts must not be forgotten"]
        """
        self.held[person] = Count(entered=self.participation.batches)


def numbered(people: Iterable[Hashable]) -> NumpyArray:
    """Number people from 0; the same person has the same number everywhere.

    >>> numbered(["bob", "anna", "bob"])
    array([0, 1, 0])
    """
    known: dict[Hashable, int] = {}
    return np.asarray([known.setdefault(each, len(known)) for each in people], dtype=np.int64)


def slots_that_count(
    people: NumpyArray, lengths: Sequence[int], participation: Participation
) -> NumpyArray:
    """Mask (T,) of the slots of a run that count, given their ``numbered`` owners (T,).

    >>> slots_that_count(np.array([7, 7, 7, 7]), [1, 2, 1], Participation(2, 1)).tolist()
    [True, True, False, False]
    """
    counts, parts = PeopleCounts[int](participation), np.split(people, np.cumsum(lengths)[:-1])
    numbered_parts = enumerate(parts, start=1)
    return np.concatenate([counts.hand_out(part.tolist(), batch) for batch, part in numbered_parts])


KEY_BYTES = HASH_BYTES = 32


class PeopleRegistry:
    """Counts of all people who ever took a slot, by HMAC-SHA256 of their id.

    The key is random and part of the private state: without it an id cannot be looked up.
    """

    def __init__(self, participation: Participation, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(KEY_BYTES)
        self._hash = keyed_hash(self._key)
        self._counts = PeopleCounts[bytes](participation)

    def __repr__(self) -> str:
        return "PeopleRegistry(private)"

    def hand_out(self, users: Sequence[str | None], batch: int) -> NumpyArray:
        """Give each of these users the next slot of a batch; return a mask of those that count.

        A slot without a user is void: a log may have more rows of a person than count.
        """
        owned = [user for user in users if user is not None]
        counts = self._counts.hand_out(map(self._hash, owned), batch)
        if len(owned) == len(users):
            return counts
        slots = np.zeros(len(users), dtype=bool)
        slots[[user is not None for user in users]] = counts
        return slots

    def in_control(self, users: Sequence[str], share: float) -> NumpyArray:
        """Mask of the users who are in the control, in this batch and in every other."""
        return people_in_control(share, self._key, users)

    def use_up(self, user: str) -> None:
        """Let no later slot of this user count, known or not."""
        self._counts.use_up(self._hash(user))

    def arrays(self) -> dict[str, NumpyArray]:
        """Return everything, for the private file of a learner."""
        held = self._counts.held
        hashes = np.frombuffer(b"".join(held), dtype=np.uint8)
        return {
            "people_key": np.frombuffer(self._key, dtype=np.uint8),
            "people_hashes": hashes.reshape(-1, HASH_BYTES),
            "people_counts": np.array(list(held.values()), dtype=np.int64).reshape(-1, 3),
        }

    @classmethod
    def of_arrays(
        cls, participation: Participation, arrays: Mapping[str, NumpyArray], newest: int
    ) -> PeopleRegistry:
        """Restore what ``arrays`` returned; ValueError for an impossible state.

        ``newest`` is the number of the newest batch under way.
        """
        key, hashes, table = (arrays[f"people_{name}"] for name in ("key", "hashes", "counts"))
        most = Count(participation.batches, newest, participation.records)
        people = [each.tobytes() for each in hashes]
        entered, last, records = table.T
        possible = (
            (key.dtype, key.shape) == (np.uint8, (KEY_BYTES,))
            and (hashes.dtype, hashes.shape) == (np.uint8, (len(table), HASH_BYTES))
            and table.dtype == np.int64
            and len(set(people)) == len(table)
            and bool(((table >= 0) & (table <= most)).all() and (entered > 0).all())
            # A person with a newest batch has a slot in it; erased people have neither.
            and bool(((last > 0) == (records > 0)).all())
        )
        if not possible:
            raise ValueError
        made = cls(participation, key.tobytes())
        held = zip(people, (Count(*each) for each in table.tolist()), strict=True)
        made._counts = PeopleCounts(participation, held)
        return made


def keyed_hash(key: bytes) -> Callable[[str], bytes]:
    """Return HMAC-SHA256 of ids under a key that is hashed once [RFC 2104]."""
    begun = hmac.new(key, digestmod="sha256")

    def hashed(user: str) -> bytes:
        one = begun.copy()
        one.update(user.encode("utf-8", "surrogatepass"))
        return one.digest()

    return hashed


def user_ids(
    name: str, given: Values, rows: int, *, needed: bool, single: bool
) -> list[str] | None:
    """Return one id per row as text, so that 7 and "7" are one person; None if none is needed."""
    if needed != (given is not None):
        rule = "given with the unit 'user'; got none"
        if not needed:
            rule = "left out with the unit 'decision'; got one"
        raise InvalidInput(
            f"{name} must be {rule}. The id of the person behind each context belongs to plans "
            "with the unit 'user'."
        )
    if given is None:
        return None
    if single:
        return [user_id(name, given)]
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(listed, (list, tuple)) or len(listed) != rows:
        got = f"{len(listed):,}" if isinstance(listed, (list, tuple)) else "no list"
        raise InvalidInput(
            f"{name} must be a list or array with one id for each of {rows:,} contexts; got {got}. "
            "Give as many ids as there are contexts, also where one person has several."
        )
    if all(type(each) is str and each for each in listed):  # the usual call, fast
        return list(listed)
    return [user_id(name, each, f"row {row}: ") for row, each in enumerate(listed)]


def user_id(name: str, given: object, where: str = "") -> str:
    """Return an id as text; the error names its kind alone, since logs keep errors."""
    if isinstance(given, str) and given:
        return str(given)
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return str(int(given))
    got = "empty text" if isinstance(given, str) else f"a {type(given).__name__}"
    raise InvalidInput(
        f"{where}{name} must be the id of one person, text or a whole number; got {got}. "
        "Write the id as text, always in the same way: two ids are two people."
    )
