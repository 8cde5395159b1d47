"""Requests and replies: features, slots, owners, draws; shared calls."""

from __future__ import annotations

import asyncio
import hmac
import math
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from discreet.batches.users import keyed_hash
from discreet.design.control import people_in_control
from discreet.errors import InvalidInput, NotReady
from discreet.plan.plan import Plan
from discreet.service.secrets.vault import Vault
from discreet.service.settings import STORING
from discreet.service.storage.batches import Lease, SlotRequest
from discreet.service.storage.database import step
from discreet.service.storage.group_commit import running_loop
from discreet.types import NumpyArray

if TYPE_CHECKING:
    from discreet.service.runtime.worker_state import WorkerState

Draw = tuple[float, float]
Item = TypeVar("Item")
Made = TypeVar("Made")
RETRY = 0.25
"""Seconds until a worker that found no open batch queries the database again."""
LASTS, TIMES = 0.25, 16
"""After a block that lasted less than ``LASTS`` seconds the next block is twice as long, at most
``TIMES`` times the ``lease`` of the settings: under load few requests wait for a block. After any
other it has ``lease`` slots, or one where a clock ends batches: unused slots count as taken."""


class InvalidField(InvalidInput):
    """Invalid input, with the field that breaks the rule; errors are logged, so that the message
    states the rule and never a private value."""

    def __init__(self, message: str, field: str | None) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class DecisionReply:
    """Reply to decide: the id to report the loss with, and the document that decided.

    The action is a name where the plan has names, else a number.
    """

    decision: str
    action: int | str
    release: int
    stored: bool


@dataclass(frozen=True)
class RankedReply(DecisionReply):
    """Reply with all offered actions in a sampled order, the chosen one first."""

    ranking: list[int | str]


@dataclass(frozen=True)
class TicketReply:
    """Slot for a device that decides by itself and sends context, action and loss together.

    ``action`` is set if the slot is in the control: the device plays it instead of the policy. If
    the ticket is sticky, the device draws with ``u``.
    """

    ticket: str
    release: int
    stored: bool
    action: int | str | None = None
    u: tuple[float, float] | None = None


class Owner(NamedTuple):
    """Keyed hash of a user's id, and whether they are in the control, which never changes."""

    person: bytes
    control: bool


class LeasedSlots:
    """One leased block at a time. Unused slots go back at a clean stop, and are void after a
    crash."""

    def __init__(self, state: WorkerState) -> None:
        self._state = state
        self._lease: Lease | None = None
        self._spare: list[tuple[Lease, int]] = []
        self._leasing = asyncio.Lock()
        self._idle_until = self._leased_at = -math.inf
        clock = state.settings.plan.close_every
        self._shortest = state.settings.lease if clock is None else 1
        self._length, self._waiting = self._shortest, 0

    async def take(self) -> tuple[Lease, int] | None:
        """Return a slot of the leased block, or of a new one; None while no batch is open."""
        while self._state.mode in STORING:
            if self._spare:
                return self._spare.pop()
            lease = self._lease
            if lease is not None and lease.free:
                if lease.release > self._state.serving.newest:
                    await self._read_release(lease.release)
                    continue
                return lease, lease.free.pop()
            loop = running_loop()
            if loop.time() < self._idle_until:
                return None
            self._waiting += 1
            try:
                async with self._leasing:
                    if self._lease is lease and loop.time() >= self._idle_until:
                        await self._lease_block(loop.time())
                    # Otherwise another request has leased a block meanwhile.
            finally:
                self._waiting -= 1
        return None

    async def _lease_block(self, now: float) -> None:
        state = self._state
        lasted, most = now - self._leased_at, TIMES * state.settings.lease
        self._length = self._shortest if lasted > LASTS else min(2 * self._length, most)
        self._leased_at = now
        wanted = SlotRequest(self._length, self._waiting)
        self._lease = await state.writer.write(state.slots.lease, wanted)
        step("lease:committed")
        if self._lease is None:
            self._idle_until = running_loop().time() + RETRY

    async def _read_release(self, release: int) -> None:
        """Read the database again for the release that decides the batch of the lease."""
        await self._state.refresh()
        if release > self._state.serving.newest:
            raise NotReady(
                f"document {release} must be confirmed before it decides; it is not yet. Try again."
            )

    def put_back(self, lease: Lease, slot: int) -> None:
        """Return a slot to which nothing was written."""
        self._spare.append((lease, slot))

    def drop(self, lease: Lease) -> None:
        """Drop a lease whose batch is over."""
        if self._lease is lease:
            self._lease = None

    async def give_back(self) -> None:
        """Give back unused slots; afterwards this process assigns none."""
        left: dict[bytes, Lease] = {}
        blocks = [] if self._lease is None else [(self._lease, self._lease.free)]
        for lease, slots in [*blocks, *((each, [slot]) for each, slot in self._spare)]:
            left.setdefault(lease.nonce, replace(lease, free=[])).free.extend(slots)
        self._lease, self._spare, self._idle_until = None, [], math.inf
        for lease in left.values():
            if lease.free:
                await self._state.write(partial(self._state.slots.give_back, lease=lease))
                step("return:committed")

    def look(self) -> None:
        """Drop slots of batches that assign none, and query the database at the next decision."""
        if self._idle_until < math.inf:
            self._idle_until = 0.0
        lease, fit = self._lease, self._state.assigns_slots
        if lease is not None and not fit(lease.epoch, lease.batch):
            self._lease = None
        self._spare = [each for each in self._spare if fit(each[0].epoch, each[0].batch)]


class RequestOwners:
    """Owners of requests, by the user ids that requests name and the keys of the vault."""

    def __init__(self, plan: Plan, vault: Vault) -> None:
        self._plan, self._vault = plan, vault
        self._hash = None if plan.participation is None else keyed_hash(vault.people)

    def owner(self, user: str | None) -> Owner | None:
        """Return the owner of a request; None if the unit of privacy is a decision."""
        if (self._hash is None) != (user is None):
            raise InvalidInput(
                "user must be given with the unit of privacy 'user', always the same text for the "
                "same person, and left out with the unit 'decision'; this request differs. Add the "
                "id of the person, or send the request without it."
            )
        if self._hash is None or user is None:
            return None
        control, key = self._plan.control, self._vault.control
        part = control is not None and people_in_control(control.share, key, [user])[0]
        return Owner(self._hash(user), bool(part))


def sticky_draw(key: bytes, sticky: str | None, release: int) -> Draw | None:
    """Return two numbers in [0, 1), the same for the same text and release; None without a text.

    A person gets the same action again while the release stays. Without the key the numbers are
    uniform and independent over people and releases, so probabilities stay those of the policy.
    """
    if sticky is None:
        return None
    # Privacy: releases are private for every fixed draw, also for one that follows from an id.
    # [docs/privacy/transcript.md, "Action draws"]
    text = release.to_bytes(8, "big") + sticky.encode("utf-8", "surrogatepass")
    first, second = struct.unpack_from(">QQ", hmac.digest(key, text, "sha256"))
    return (first >> 11) / 2.0**53, (second >> 11) / 2.0**53  # the 53 bits of a double


def features_of(plan: Plan, context: object) -> NumpyArray:
    """Return the features of one context (p,)."""
    if not plan.features.is_single(context):
        raise InvalidField(
            "context must be one context; this is a list. Send one context.", "context"
        )
    try:
        features: NumpyArray = plan.features.map(context)[0]
    except InvalidInput as error:
        rule, given, _ = str(error).partition("; got ")
        broken = f"{rule}; this context breaks the rule. GET /v1/schema lists the rules."
        names = [each.name for each in getattr(plan.contexts, "fields", ())]
        blamed = [name for name in names if rule.startswith(f"feature {name!r} ")]
        field = ".".join(["context", *blamed])
        raise InvalidField(broken if given else str(error), field) from None
    return features


def features_of_many(plan: Plan, contexts: list[object]) -> list[NumpyArray | Exception]:
    """Return the features of each context, or its error; others are not affected."""
    if len(contexts) > 1:
        with suppress(InvalidInput):
            rows = plan.features.map(contexts)
            if len(rows) == len(contexts):  # otherwise map() read the list as one context
                return list(rows)
    found: list[NumpyArray | Exception] = []
    for context in contexts:
        try:
            found.append(features_of(plan, context))
        except Exception as error:
            found.append(error)
    return found


class SharedCalls(Generic[Item, Made]):
    """Joins work of concurrent requests: ``work`` is called once for many items, and each caller
    gets the result or the exception of its item.

    Items wait for the end of this turn of the event loop, and for the future of ``ahead``:
    while one group is committed, the next one gathers.
    """

    def __init__(
        self,
        work: Callable[[list[Item]], Sequence[Made | Exception]],
        ahead: Callable[[], asyncio.Future[Any] | None] = lambda: None,
    ) -> None:
        self._work, self._ahead = work, ahead
        self._waiting: list[tuple[Item, asyncio.Future[Made]]] = []

    def __call__(self, item: Item) -> asyncio.Future[Made]:
        """Return a future for the result of ``work`` for this item."""
        loop = running_loop()
        if not self._waiting:
            ahead = self._ahead()
            if ahead is None:
                loop.call_soon(self._do)
            else:  # at once if it is done
                ahead.add_done_callback(self._do)
        done: asyncio.Future[Made] = loop.create_future()
        self._waiting.append((item, done))
        return done

    def _do(self, _ahead: object = None) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            made = self._work([item for item, _ in waiting])
        except Exception as error:
            made = [error] * len(waiting)
        for (_, done), one in zip(waiting, made, strict=True):
            if done.done():  # its request was cancelled
                continue
            if isinstance(one, Exception):
                done.set_exception(one)
            else:
                done.set_result(one)
