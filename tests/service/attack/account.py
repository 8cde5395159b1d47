"""Replies that clients received, compared with the database."""

import itertools
import json
import math
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from urllib.parse import urlencode

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
from discreet.service.storage.locations import open_database
from discreet.service.storage.member_tables import MemberTables
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
    members: dict[str, set] | None = None
    """By name, (role, number of sessions) that may be stored; None for nobody. Without a dict
    nobody joins."""
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
        rails = {"guardrails": {"complaints": complaint(each)}} if _rails(place) else {}
        body = json.dumps({"decision": each.answer["decision"], "loss": each.loss} | rails)
        status, answer = call(connection, "POST", "/v1/observe", body, {}, place.admin)
        assert status in (200, 410), answer
        each.received = status == 200
        if status == 410:
            each.loss = None


def complaint(each):
    """The guardrail that comes with the loss; a third of the reports have none."""
    return None if each.number % 3 == 0 else 1 - each.loss


def _rails(place):
    return len(place.settings.plan.guardrails or ())


class Browser:
    """Pages of the service, with cookies and the token of their forms."""

    def __init__(self, place):
        self._place, self._cookies, self._token = place, {}, ""

    def open(self, path, **form):
        headers = {"Cookie": "; ".join(map("=".join, self._cookies.items()))}
        headers |= {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
        body = urlencode({"token": self._token, **form}) if form else None
        with closing(self._place.connection()) as connection:
            connection.request("POST" if form else "GET", path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        assert answer.status in (200, 303), text
        for each in answer.headers.get_all("Set-Cookie", ()):
            self._cookies.update([each.split(";")[0].split("=", 1)])
        if found := re.search('name="token" value="([^"]+)"', text):
            self._token = found[1]
        return text


def keep_joining(place, account, stop, seed):
    """Invite people until the service dies."""
    draws = random.Random(seed)
    while not stop.is_set():
        try:
            one_joins(place, account, draws)
            stop.wait(0.3)  # hashes of passphrases are slow by design
        except (OSError, HTTPException):
            return


def one_joins(place, account, draws):
    """Somebody is invited and joins; then the role may change, the session end, the member go."""
    owner, guest, name = Browser(place), Browser(place), f"member {len(account.members)}"
    passphrase = {"passphrase": "four plain words here", "again": "four plain words here"}
    owner.open("/ui/login")
    owner.open("/ui/login", key=place.admin)
    owner.open("/ui/members")
    page = owner.open("/ui/members", what="invite", role="viewer")
    code = re.search(r"/ui/join\?code=([\w-]+)", page)[1]
    guest.open(f"/ui/join?code={code}")
    known = account.members[name] = {None, ("viewer", 0), ("viewer", 1)}
    guest.open("/ui/join", code=code, name=name, **passphrase)
    changes = [("role", ("editor", 1)), ("end", ("editor", 0)), ("remove", None)]
    for what, after in [("", ("viewer", 1)), *changes[: draws.randint(0, 3)]]:
        known.add(after)
        if what:
            owner.open("/ui/members", what=what, id=name, role="editor")
        known.intersection_update({after})


@contextmanager
def traffic(place, account, draws, clients=4):
    """Clients that ask all the time; what they complain about is raised at the end."""
    stop = threading.Event()
    asks = [keep_asking] * clients + [keep_joining] * (account.members is not None)
    with ThreadPoolExecutor(len(asks)) as threads:
        asking = [threads.submit(each, place, account, stop, draws.random()) for each in asks]
        try:
            yield
        finally:
            stop.set()
        for each in asking:
            each.result()


def settle(place, account, draws):
    """Ask everything again whose answer was lost, as a careful client does; one more joins."""
    if account.members is not None:
        one_joins(place, account, draws)
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
        _members(place, account, connection)
        hours = connection.execute("SELECT hour, latest FROM traffic").fetchall()
        assert all(hour <= latest < hour + documents.HOUR for hour, latest in hours)
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
            row = unpack_losses(packed, _rails(place))[0]
            stored[epoch, batch, slot] = DecisionRow.unpack(row)
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
            sent = [each.loss, complaint(each)][: 1 + _rails(place)]
            losses = unpack_losses(packed, _rails(place))[1]
            assert [None if math.isnan(it) else it for it in losses] == sent, "a loss changed"


def _members(place, account, connection):
    """Members, roles and sessions are those that were acknowledged, and valid by the vault."""
    tables = MemberTables(open_database(place.settings), place.vault)
    listed = {each.name: each for each in tables.listed(connection)}
    for name, known in (account.members or {}).items():
        one = listed.pop(name, None)
        assert (one and (one.role, one.sessions)) in known, "a change of members is lost"
        assert one is None or not one.outdated, "a member came back as from a backup"
    assert not listed, "a member that nobody invited"
