"""Decisions, tickets, observations and activations of one worker, without HTTP."""

from __future__ import annotations

import asyncio
import hmac
import json
import struct
from collections import OrderedDict
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

from discreet.batches.batch_slots import batch_over, refuse_other_loss
from discreet.design.action_names import action_index, action_name
from discreet.errors import InvalidInput, ServiceError, StateClaimed
from discreet.service.runtime.policy_versions import Choice, Offer, OfferedActions
from discreet.service.runtime.requests import (
    DecisionReply,
    Draw,
    LeasedSlots,
    Owner,
    RankedReply,
    RequestOwners,
    SharedCalls,
    TicketReply,
    features_of,
    features_of_many,
    sticky_draw,
)
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.secrets import sealing
from discreet.service.secrets.sealing import DecisionId, DecisionRow, Sealer
from discreet.service.storage.batches import Lease, slot_in_control
from discreet.service.storage.database import step
from discreet.service.storage.journal import (
    KEPT,
    OVER,
    USED,
    DecisionItem,
    EarlierItem,
    ObservationItem,
    RequestName,
    WriteResult,
)
from discreet.types import JsonMapping, NumpyArray

REMEMBERED = 10_000
"""How many answers without a slot are kept in case their request is sent again."""
_ACTION = struct.Struct(">i")
"""In a ticket of the control: the action that its device must play."""


class _Request(NamedTuple):
    """PRIVATE: valid request to decide: features to which all actions are offered, or an offer."""

    offered: NumpyArray | Offer
    owner: Owner | None
    deferred: bool
    named: RequestName | None
    sticky: str | None

    def __repr__(self) -> str:
        return "_Request(private)"


class WorkerDecisions:
    """Decisions and observations of one worker process, over the state that all workers share."""

    def __init__(self, state: WorkerState) -> None:
        self.state = state
        self.settings, self.plan = state.settings, state.settings.plan
        self._ids = sealing.DecisionIds(state.vault.mac)
        self._names = [action_name(self.plan, each) for each in range(self.plan.n_actions)]
        self._slots = LeasedSlots(state)
        self.owners = RequestOwners(self.plan, state.vault)
        self._offered = OfferedActions(state.settings, state.serving)
        self._unstored: OrderedDict[RequestName, DecisionReply] = OrderedDict()
        self._sealers: dict[tuple[int, int], Sealer] = {}
        self._committing: asyncio.Future[WriteResult] | None = None
        """First write of the newest group of decisions."""
        self._mapped: SharedCalls[object, NumpyArray] = SharedCalls(
            partial(features_of_many, self.plan), lambda: self._committing
        )
        state.on_change = self._forget

    async def decide(
        self,
        caller: str,
        context: object,
        *,
        user: str | None = None,
        deferred: bool = False,
        idempotency: str | None = None,
        actions: object = None,
        ranking: bool = False,
        sticky: str | None = None,
    ) -> DecisionReply:
        """Choose one of the offered ``actions``. With journal ``decide`` the row is durable when
        this returns; the count of a user's records is durable with both journals."""
        self._refuse_set_back()
        owner = self.owners.owner(user)
        named = None if idempotency is None else self._named(caller, idempotency)
        features = await self._mapped(context)
        offer = None
        if ranking or actions is not None or not self.state.serving.fixed_actions:
            offer = self._offered.read(features, actions, ranking)
        # An invalid context or offer has taken no slot.
        request = _Request(offer or features, owner, deferred, named, sticky)
        reply = await self._decide(request)
        self.state.decided += 1
        return reply

    def _refuse_set_back(self) -> None:
        """Refuse to store in a database that was set back: the rows would be lost."""
        if self.state.set_back is not None:
            raise StateClaimed(str(self.state.set_back))

    async def _decide(self, request: _Request) -> DecisionReply:
        named = request.named
        if named is not None and named in self._unstored:
            return self._unstored[named]
        # After a restore the service cannot know whether a named request was made before.
        slotless = named is not None and self.state.names.incomplete
        while not slotless and (taken := await self._slots.take()) is not None:
            decision = await self._stored(*taken, request)
            if decision is not None:
                step("decide:before-answer")
                return decision
        if named is not None:
            known = await self.state.read(partial(self.state.journal.find, named))
            if known is not None:
                return self._repeated(known)
        # No batch is open: the decision has no slot.
        release, newest = self.state.serving.served(), self.state.serving.newest
        choice = await self._choice(release, newest, request, self._in_control(request.owner))
        decision = _reply(self._ids.unstored(self.state.epoch), choice, release, False)
        if named is not None:
            self._unstored[named] = decision
            if len(self._unstored) > REMEMBERED:
                self._unstored.popitem(last=False)
        return decision

    async def _stored(self, lease: Lease, slot: int, request: _Request) -> DecisionReply | None:
        """Decide with a slot; None if the batch of the lease is over."""
        state, sealer = self.state, self._sealer(lease.epoch, lease.batch)
        if sealer is None:
            raise ServiceError(
                f"the vault must hold the key of batch {lease.batch}; the key is missing. "
                "Rows cannot be stored without it: put the vault back, or burn the batch.",
                status=503,
                code="vault_incomplete",
            )
        release, place = state.serving.served(lease.release), (lease.epoch, lease.batch, slot)
        owner, named = request.owner, request.named
        control = self._in_control(owner, place)
        try:
            choice = await self._choice(release, lease.release, request, control)
        except InvalidInput:  # only the next batch has the offered actions
            self._slots.put_back(lease, slot)
            raise
        row = DecisionRow(choice.row, choice.block, request.deferred)
        sealed = sealer.seal(sealing.ROW, slot, row.pack())
        written = self.settings.journal == "decide"
        kind, token = (sealing.WRITTEN, b"") if written else (sealing.TOKEN, sealed)
        id = DecisionId(kind, *place, lease.nonce, token)
        decision = _reply(self._ids.write(id), choice, release, True)
        if not written and named is None and owner is None:
            return decision
        # Privacy: a slot that counts and one that is void are answered in the same way, after the
        # count is on the disk. [docs/privacy/service.md, "Users"]
        item = _decided(place, sealed if written else None, lease, owner)
        if named is not None:
            reply = sealer.seal(sealing.REPLY, slot, json.dumps(asdict(decision)).encode())
            later = state.names.hashed(place[:2], named.request)
            item = item._replace(named=named, reply=reply, later=later)
        writing = state.writer.write(state.journal.decide, item)
        if self._committing is None or self._committing.done():
            self._committing = writing
        outcome = await writing
        step("decide:committed")
        if outcome is KEPT:
            return decision
        if outcome is USED or isinstance(outcome, EarlierItem):
            self._slots.put_back(lease, slot)  # nothing was written to this slot
            return self._repeated(outcome)
        self._slots.drop(lease)
        return None

    def _in_control(self, owner: Owner | None, place: tuple[int, int, int] | None = None) -> bool:
        """Return whether a decision is in the control: by its owner, or else by its slot.

        It depends neither on the content of a request nor on repetitions.
        """
        control = self.plan.control
        if control is None or owner is not None:
            return owner is not None and owner.control
        return place is not None and slot_in_control(control, *place)

    async def _choice(self, release: int, bound: int, request: _Request, control: bool) -> Choice:
        """Return the action of the policy or of the control; in shadow mode the default action.

        ``bound`` is the document after which the batch opened, which fixes its actions.
        """
        offered, shadow = request.offered, self.state.mode == "shadow"
        u = sticky_draw(self.state.vault.draws, request.sticky, release)
        if isinstance(offered, Offer):
            return self._offered.choose(release, bound, offered, control, shadow, u)
        action = self.settings.default_action
        if not shadow:
            action = await self.state.serving.action(release, offered, control, u)
        return Choice(offered, action, self._names[action])

    async def earlier(self, caller: str, idempotency: str) -> DecisionReply | None:
        """Return the reply to an earlier request of this name, while its batch is under way."""
        named = self._named(caller, idempotency)
        known = await self.state.read(partial(self.state.journal.find, named))
        return self._unstored.get(named) if known is None else self._repeated(known)

    def _repeated(self, known: WriteResult) -> DecisionReply:
        """Return the reply that this request received before, while its batch is under way."""
        # Privacy: a request takes one slot, however often it is sent while it is remembered.
        # [docs/privacy/service.md, "Requests that are sent again"]
        packed = None
        if isinstance(known, EarlierItem) and (sealer := self._sealer(known.epoch, known.batch)):
            packed = sealer.open(sealing.REPLY, known.slot, known.payload)
        if packed is None:  # the reply is deleted, or will be: its key is destroyed
            raise ServiceError(
                "Idempotency-Key must be new, or of a request in a batch under way; that batch "
                "is over. The request counts once: do not send it again.",
                status=409,
                code="idempotency_key_used",
            )
        stored = json.loads(packed)
        return (RankedReply if "ranking" in stored else DecisionReply)(**stored)

    async def ticket(self, user: str | None = None, sticky: str | None = None) -> TicketReply:
        """Reserve a slot; the context comes later, with the loss."""
        self._refuse_set_back()
        owner, state = self.owners.owner(user), self.state
        state.decided += 1
        while (taken := await self._slots.take()) is not None:
            lease, slot = taken
            place = (lease.epoch, lease.batch, slot)
            if owner is not None:
                item = _decided(place, None, lease, owner)
                if await state.writer.write(state.journal.decide, item) is not KEPT:
                    self._slots.drop(lease)  # its batch is over
                    continue
                step("decide:committed")
            release = state.serving.served(lease.release)
            u = sticky_draw(state.vault.draws, sticky, release)
            token, shown = self._control_ticket(self._in_control(owner, place), lease.release, u)
            id = self._ids.write(DecisionId(sealing.TICKET, *place, lease.nonce, token))
            return TicketReply(id, release, True, shown, u)
        release = state.serving.served()
        u = sticky_draw(state.vault.draws, sticky, release)
        _, shown = self._control_ticket(self._in_control(owner), state.serving.newest, u)
        return TicketReply(self._ids.unstored(state.epoch), release, False, shown, u)

    def _control_ticket(
        self, control: bool, bound: int, u: Draw | None
    ) -> tuple[bytes, int | str | None]:
        """Return token and action of a ticket; empty if it is not in the control."""
        if not control:
            return b"", None
        if not self.state.serving.fixed_actions:
            name = self._offered.of_control(bound, u)
            return (name or "").encode(), name
        action = self.state.serving.control_action(u)
        return _ACTION.pack(action), self._names[action]

    async def observe(
        self,
        decision: str,
        value: object,
        *,
        context: object = None,
        action: object = None,
        guardrails: JsonMapping | None = None,
    ) -> bool:
        """Store the loss of a decision and its guardrails, durably; False if it took no slot.

        ``value`` is the loss or the reward that the plan declares; only losses are stored.
        """
        self._refuse_set_back()
        id, losses = self._ids.read(decision), self.plan.reported_losses(value, guardrails)
        if id.kind == sealing.UNSTORED:
            return False
        with_record, word = id.kind == sealing.TICKET, self.plan.outcome.word
        if (context is not None) != with_record or (action is not None) != with_record:
            raise InvalidInput(
                f"context and action must come with the {word} of a ticket, and with no other; "
                "this request differs. Send both for a ticket, and neither for a decision."
            )
        sealer = self._open_sealer(id)
        kind, packed = sealer.outcome(id, losses)
        if with_record:
            kind, packed = sealing.WHOLE, self._record(id, context, action) + packed
        await self._store(id, kind, packed, sealer)
        step("observe:before-answer")
        return True

    def _record(self, id: DecisionId, context: object, action: object) -> bytes:
        features = features_of(self.plan, context)
        if not self.state.serving.fixed_actions:
            choice = self._offered.played(self._opened_after(id), features, action)
            played = str(choice.name).encode()
        else:
            index = action_index(self.plan, action)
            choice, played = Choice(features, index, self._names[index]), _ACTION.pack(index)
        if id.token not in (b"", played):
            raise InvalidInput(
                "action must be the one that the ticket names; got another. The slot is in the "
                "control: play the action of its ticket, and send that one."
            )
        return DecisionRow(choice.row, choice.block).pack()

    def _opened_after(self, id: DecisionId) -> int:
        """Return the document after which the batch of an id opened."""
        for batch in self.state.live:
            if (batch.epoch, batch.id) == (id.epoch, id.batch):
                return batch.release
        return self.state.serving.newest  # it opened after our last look

    async def activate(self, decision: str) -> bool:
        """Record that a deferred decision was shown; False if the decision took no slot."""
        self._refuse_set_back()
        id = self._ids.read(decision)
        if id.kind == sealing.UNSTORED:
            return False
        sealer = self._open_sealer(id)
        if id.kind == sealing.WRITTEN:  # without a written row, a slot without a loss is void
            await self._store(id, sealing.ACTIVATION, b"", sealer)
        return True

    async def _store(self, id: DecisionId, kind: int, packed: bytes, sealer: Sealer) -> None:
        payload = sealer.seal(kind, id.slot, packed)
        item = ObservationItem(id.epoch, id.batch, id.slot, kind, payload, id.lease)
        outcome = await self.state.writer.write(self.state.journal.observe, item)
        step("observe:committed")
        if outcome is OVER:
            raise batch_over()
        if isinstance(outcome, EarlierItem):
            same = sealer.open(kind, id.slot, outcome.payload) == packed
            refuse_other_loss(same, self.plan.outcome.word)

    async def stop(self) -> None:
        """Give back slots that no request received; later requests take none."""
        await self._slots.give_back()

    def _forget(self) -> None:
        """After a change: drop slots and keys of batches that are over from memory."""
        self._slots.look()
        for place in [place for place in self._sealers if self.state.over(*place)]:
            del self._sealers[place]
            self.state.vault.forget(*place)

    def _open_sealer(self, id: DecisionId) -> Sealer:
        sealer = self._sealer(id.epoch, id.batch)
        if sealer is None:
            raise batch_over()
        return sealer

    def _sealer(self, epoch: int, batch: int) -> Sealer | None:
        """Return the cipher of a batch; None if its key was destroyed."""
        sealer = self._sealers.get((epoch, batch))
        if sealer is None and (key := self.state.vault.batch(epoch, batch)) is not None:
            sealer = self._sealers[epoch, batch] = Sealer(key, epoch, batch)
        return sealer

    def _named(self, caller: str, key: str) -> RequestName:
        """Return the name of a request: API key and Idempotency-Key, and their keyed hash."""
        request = f"{caller}\0{key}".encode()
        return RequestName(request, hmac.digest(self.state.vault.mac, request, "sha256"))


def _reply(id: str, choice: Choice, release: int, stored: bool) -> DecisionReply:
    if choice.ranking is None:
        return DecisionReply(id, choice.name, release, stored)
    return RankedReply(id, choice.name, release, stored, choice.ranking)


def _decided(
    place: tuple[int, int, int], row: bytes | None, lease: Lease, owner: Owner | None
) -> DecisionItem:
    item = DecisionItem(*place, row, lease.nonce)
    return item if owner is None else item._replace(person=owner.person, control=owner.control)
