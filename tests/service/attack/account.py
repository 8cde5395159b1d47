"""Replies that clients received, compared with the database."""

import itertools
import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException

import numpy as np

from discreet.client.chain import Chain
from discreet.client.documents import public_key
from discreet.service.secrets.sealing import (
    LOSS,
    ROW,
    TOKEN,
    WHOLE,
    DecisionIds,
    DecisionRow,
    Sealer,
    unpack_losses,
)
from discreet.service.storage import document_table as documents
from service.attack.harness import call, context


@dataclass
class Sent:
    """A request to decide: its number is its context, its key the same at every attempt."""

    number: int
    user: str | None = None
    answer: dict | None = None
    loss: float | None = None
    received: bool = False


@dataclass
class Account:
    """Everything that was sent, and everything that was acknowledged."""

    people: bool = False
    """Whether requests name users: a few at a time, so that all of them come back."""
    sent: list[Sent] = field(default_factory=list)
    documents: dict[int, bytes] = field(default_factory=dict)
    _numbers: itertools.count = field(default_factory=itertools.count)

    def unsettled(self):
        """Requests whose answer was lost."""
        return [each for each in self.sent if each.answer is None or lost_loss(each)]

    def new(self):
        number = next(self._numbers)
        user = f"user {number // 60}-{number % 6}" if self.people else None
        each = Sent(number, user)
        self.sent.append(each)
        return each


def lost_loss(each):
    return each.loss is not None and not each.received


def keep_asking(place, account, stop, seed):
    """One client: decides and observes until it is told to stop or the service dies."""
    draws = random.Random(seed)
    with closing(place.connection()) as connection:
        while not stop.is_set():
            try:
                ask(place, connection, account.new(), draws)
                stop.wait(0.01)  # the service needs the machine more than we do
            except (OSError, HTTPException):
                return  # the service died; what was under way is unsettled


def ask(place, connection, each, draws):
    """Decide, and mostly tell the loss."""
    if each.answer is None:
        names = {"Idempotency-Key": f"request {each.number}"}
        person = {} if each.user is None else {"user": each.user}
        body = json.dumps({"context": context(each.number)} | person)
        status, answer = call(connection, "POST", "/v1/decide", body, names, place.admin)
        if status == 409:  # its answer was lost, and meanwhile its batch was released
            assert answer["error"]["code"] == "idempotency_key_used", answer
            answer = {"stored": False}
        else:
            assert status == 200, answer
        each.answer = answer
    if not each.answer["stored"]:
        time.sleep(0.05)  # nothing is open: give it time
        return
    if each.loss is None and draws.random() < 0.8:
        each.loss = draws.random()
    if lost_loss(each):
        body = json.dumps({"decision": each.answer["decision"], "loss": each.loss})
        status, answer = call(connection, "POST", "/v1/observe", body, {}, place.admin)
        assert status in (200, 410), answer
        each.received = status == 200
        if status == 410:
            each.loss = None


@contextmanager
def traffic(place, account, draws, clients=4):
    """Clients that ask all the time; what they complain about is raised at the end."""
    stop = threading.Event()
    with ThreadPoolExecutor(clients) as threads:
        asking = [
            threads.submit(keep_asking, place, account, stop, draws.random())
            for _ in range(clients)
        ]
        try:
            yield
        finally:
            stop.set()
        for each in asking:
            each.result()


def settle(place, account, draws):
    """Ask everything again whose answer was lost, as a careful client does."""
    with closing(place.connection()) as connection:
        for each in account.unsettled():
            ask(place, connection, each, draws)


def remember_documents(place, account):
    """Fetch what is published; bytes that were seen once must stay."""
    _, listed = place.get("/v1/releases")
    for each in listed["releases"]:
        number = each["number"]
        status, body = place.get(f"/v1/releases/{number}", raw=True)
        assert status == 200
        assert account.documents.setdefault(number, body) == body, "a published document changed"


def check(place, account):
    """Nothing acknowledged is lost, nothing is there twice, no batch was released twice.

    Rows of a released batch are deleted after its commit, so a kill may leave some of them.
    """
    settings, vault = place.settings, place.vault
    features = {
        settings.plan.features.map(context(each.number)).tobytes(): each for each in account.sent
    }
    with place.opened() as connection:
        bodies = documents.after(connection, -1)
        states = {
            (row[0], row[1]): row[2]
            for row in connection.execute("SELECT epoch, id, state FROM batches").fetchall()
        }
        rows = {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
            for table in ("records", "answers")
        }
    chain = Chain(public_key(vault.signing)).extended(bodies)
    published = {link.number: body for link, body in zip(chain.links, bodies, strict=True)}
    for number, body in account.documents.items():
        assert published.get(number) == body, "a published document changed"
    releases = [body for body in bodies if json.loads(body)["kind"] == "release"]
    released = [place_ for place_, state in states.items() if state == "released"]
    assert len(releases) == len(released), "releases and released batches differ in number"

    live = {place_ for place_, state in states.items() if state in ("open", "sealed")}
    sealers = {each: Sealer(vault.batch(*each), *each) for each in live}
    stored, received, found = {}, {}, []
    for table in rows.values():
        over = {tuple(row[:2]) for row in table} - live
        assert {states[each] for each in over} <= {"released"}, "rows of a burned batch were kept"
    rows = {name: [row for row in table if tuple(row[:2]) in live] for name, table in rows.items()}
    for epoch, batch, slot, payload in rows["records"]:
        packed = sealers[epoch, batch].open(ROW, slot, bytes(payload))
        stored[epoch, batch, slot] = DecisionRow.unpack(packed)
    for epoch, batch, slot, kind, payload in rows["answers"]:
        packed = sealers[epoch, batch].open(kind, slot, bytes(payload))
        received[epoch, batch, slot, kind] = packed
        if kind == WHOLE:
            stored[epoch, batch, slot] = DecisionRow.unpack(packed[:-8])
    for row in stored.values():
        each = features.get(np.asarray(row.features).tobytes())
        assert each is not None, "a record that nobody sent"
        found.append(each.number)
    assert len(found) == len(set(found)), "a record is there twice"
    _acknowledged(place, account, live, stored, received)
    return states


def _acknowledged(place, account, live, stored, received):
    ids, taken = DecisionIds(place.vault.mac), set()
    mapped = place.settings.plan.features.map
    for each in account.sent:
        if each.answer is None or not each.answer["stored"]:
            continue
        id = ids.read(each.answer["decision"])
        slot = (id.epoch, id.batch, id.slot)
        assert slot not in taken, "two decisions share a slot"
        taken.add(slot)
        if slot[:2] not in live:
            continue
        row = stored.get(slot)
        if id.kind != TOKEN or each.received:
            assert row is not None, "an acknowledged record is lost"
            assert np.array_equal(row.features, mapped(context(each.number))[0])
            assert row.action == each.answer["action"], "the action of a record changed"
        if each.received:
            packed = received.get((*slot, WHOLE if id.kind == TOKEN else LOSS))
            assert packed is not None, "an acknowledged loss is lost"
            assert unpack_losses(packed, 0)[1] == [each.loss], "a loss changed"
