"""A control share: public positions of a batch that do not follow the policy, to compare with.

Which slots, or which people, are in the control is a rule that uses no answer: learner,
simulation and service all call the functions of this file.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.arrays.backend import at_most, namespace
from discreet.design.schedule import Schedule
from discreet.errors import InvalidInput
from discreet.types import Array, NumpyArray
from discreet.validate import nearest, positive

UNIFORM = "uniform"
POLICY_PART, CONTROL_PART = "policy", "control"
PARTS = (POLICY_PART, CONTROL_PART)
"""In the order of everything that is published of both."""
_LABEL = b"control share"
"""Beside the key, so that no other keyed hash of an id tells who is in the control."""
_WORDS = 4
"""Numbers of 64 bits in one SHA-256."""


@dataclass(frozen=True)
class Control:
    """A ``share`` of all slots plays ``action``, or actions at random with "uniform".

    Where the unit is a user the share is one of people: a person is always in the same part.
    ``budget_share`` of the budget pays for the mean losses of both parts, which ``lift`` compares:
    the square of the Gaussian shift is divided, so a tenth makes the noise of fits 5 % larger.
    Records of the control are learned from as well: for a regression it does not matter why an
    action was taken.

    Raises ``InvalidInput`` for shares outside (0, 1); a plan also refuses an unknown action.

    >>> Control(share=0.2, action="none")
    Control(share=0.2, action='none', budget_share=0.1)
    """

    share: float = 0.1
    action: str | int = UNIFORM
    budget_share: float = 0.1

    def __post_init__(self) -> None:
        for name in ("share", "budget_share"):
            step = f"Write Control({name}=0.1), for a tenth."
            share = positive(f"control.{name}", getattr(self, name), step)
            if np.any(np.asarray(share) >= 1.0):
                raise InvalidInput(f"control.{name} must be below 1; got {share!r}. {step}")

    def action_index(self, n_actions: int, names: Sequence[str] | None) -> int | None:
        """The number of the action that is always played; None for actions at random."""
        known = list(names or ())
        if self.action == UNIFORM and UNIFORM in known:
            raise InvalidInput(
                "control.action must say one thing; got 'uniform', which is an action's name too. "
                "Give the number of the action, or rename it to play at random."
            )
        if self.action == UNIFORM:
            return None
        if self.action in known:
            return known.index(str(self.action))
        numbered = isinstance(self.action, (int, np.integer)) and not isinstance(self.action, bool)
        if numbered and 0 <= int(self.action) < n_actions:
            return int(self.action)
        choices = [UNIFORM, *(known or map(str, range(n_actions)))]
        raise InvalidInput(
            f"control.action must be {UNIFORM!r} or an action of the plan; got {self.action!r}. "
            f"{nearest(str(self.action), choices)}"
        )

    def refuse_empty_part(self, length: int) -> None:
        """Refuse a share that may leave a part of the first batch without a slot."""
        if math.floor(self.share * length) >= 1 and math.ceil(self.share * length) < length:
            return
        needed = math.ceil(1.0 / min(self.share, 1.0 - self.share))
        raise InvalidInput(
            f"control.share must leave each part a slot of the first batch, which has {length:,}; "
            f"got {self.share!r}. Write first_batch={needed} or more, or a share nearer to 0.5."
        )


def control_actions(action: int | None, n_actions: int, u: Array) -> Array:
    """Actions (..., n) of the control, from the first uniforms of u (..., n, 2)."""
    xp = namespace(u)
    drawn = at_most(xp.floor(u[..., 0] * n_actions), n_actions - 1)
    return xp.astype(drawn if action is None else xp.full_like(drawn, action), xp.int64)


def control_chances(action: int | None, n_actions: int) -> NumpyArray:
    """Probabilities (A,) of the actions of the control."""
    return np.full(n_actions, 1.0 / n_actions) if action is None else np.eye(n_actions)[action]


@lru_cache(maxsize=16)
def control_slots(share: float, batch: int, length: int) -> NumpyArray:
    """Return a mask (length,) of the slots of a batch that are in the control.

    Block j holds the slots from ⌈j/share⌉ up to ⌈(j+1)/share⌉, and SHA-256 of the batch and of j
    says which one of them is the control's. So every stretch of a batch has its share, no caller
    who comes at regular times meets the control always, and where a batch ends earlier than
    planned the positions before its end are the same.

    >>> np.flatnonzero(control_slots(0.25, 1, 16)).tolist()
    [0, 6, 8, 15]
    """
    blocks = math.ceil(length * share) + 1
    starts = np.ceil(np.arange(blocks + 1) / share).astype(np.int64)
    hashes = (f"discreet control {batch} {j}".encode() for j in range(-(-blocks // _WORDS)))
    words = np.frombuffer(b"".join(hashlib.sha256(each).digest() for each in hashes), dtype=">u8")
    sizes = (starts[1:] - starts[:-1]).astype(np.uint64)
    chosen = starts[:-1] + (words[:blocks] % sizes).astype(np.int64)
    mask = np.zeros(length, dtype=bool)
    mask[chosen[chosen < length]] = True
    mask.setflags(write=False)
    return mask


def slots_in_control(share: float, schedule: Schedule, ids: object) -> NumpyArray:
    """Return a mask of the slots in the control, by their numbers in all batches; −1 is not."""
    ids = np.asarray(ids)
    mask = np.zeros(len(ids), dtype=bool)
    inside = ids >= 0
    while inside.any():
        first = int(ids[inside].min())
        batch = bisect_right(range(1, first + 2), first, key=schedule.start)
        start, end = schedule.start(batch), schedule.start(batch + 1)
        these = inside & (ids < end)
        mask[these] = control_slots(share, batch, end - start)[ids[these] - start]
        inside &= ids >= end
    return mask


def people_in_control(share: float, key: bytes, people: Sequence[str]) -> NumpyArray:
    """Return a mask (n,) of the people in the control, by a keyed hash of their ids.

    Privacy: each person is in one part, in every batch; only the holder of the key can tell who is
    in which part. [docs/privacy/lift.md, "People"]
    """
    below = min(int(share * 2.0**64), 2**64 - 1)
    return np.array([_number(key, person) < below for person in people], dtype=bool)


def _number(key: bytes, person: str) -> int:
    encoded = person.encode("utf-8", "surrogatepass")
    hashed = hashlib.blake2b(encoded, key=key, person=_LABEL, digest_size=8)
    return int.from_bytes(hashed.digest(), "big")
