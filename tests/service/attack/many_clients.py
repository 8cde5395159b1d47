"""Clients of many experiments and an operator, all at once; what each of them was told."""

import json
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException

from service.attack.account import one_joins
from service.attack.harness import call
from service.attack.many_place import CHANGING, EXACT, text_of
from service.attack.outside_store import Store, context
from waiting import until

EXTRA = ("fax", "dove", "visit")
"""Actions that join and leave."""
DOING = ["actions", "pause", "fetch", "cross", "join"]
"""What an operator does with the experiments that stay; ``new`` is about others."""
DEAD = (OSError, HTTPException)


def new_account(mark, kind):
    """What the checker reads of an experiment."""
    return {
        "mark": mark,
        "sent": [],
        "count": 0,
        "documents": {},
        "changes": [],
        "modes": {"online"},
        "exact": kind in EXACT,
        "control": kind == "control",
        "users": kind == "users",
        "burned": False,
    }


class Crowd:
    """Everybody who asks a server: accounts by experiment, and what was done how often."""

    def __init__(self, place, kinds):
        self.place, self.done = place, Counter()
        self.main = {place.prefix + kind: kind for kind in kinds}
        self.accounts = {
            name: new_account(mark, kind) for mark, (name, kind) in enumerate(self.main.items(), 1)
        }
        self.members: dict[str, set] = {}
        self.passing: list[str] = []
        """Experiments that were begun by the operator and are not put away yet."""
        self._unsure: list[str] = []
        self._lock = threading.Lock()

    def post(self, path, body, key=None):
        """Status and answer; another worker learns of a new experiment a second later."""
        posted = lambda: self.place.post(path, body, key=key or self.place.admin)  # noqa: E731
        if not self.place.url:
            return posted()
        reported = []
        with suppress(AssertionError):
            until(lambda: reported.append(posted()) or reported[-1][0] != 404, patience=5.0)
        return reported[-1]

    # Clients

    def sent(self, account):
        with self._lock:
            each = {"number": account["count"], "answer": None, "loss": None, "received": False}
            account["count"] += 1
            account["sent"].append(each)
            return each

    def unsettled(self, name):
        """Requests whose answer was lost."""
        return [
            each
            for each in self.accounts[name]["sent"]
            if each["answer"] is None or (each["loss"] is not None and not _told(each))
        ]

    def ask(self, connection, name, each, draws):
        """Decide, with the key of the first attempt, and mostly tell the loss."""
        account, key = self.accounts[name], self.place.keys[name]
        before = f"/v1/experiments/{name}"
        if each["answer"] is None:
            number = each["number"]
            body = {"context": context(account["mark"], number)}
            if account["users"]:
                body["user"] = f"user {number // 60}-{number % 6}"
            # The same keys in all experiments: none may recognise those of another.
            headers = {"Idempotency-Key": f"request {number}"}
            status, answer = call(connection, "POST", f"{before}/decide", _json(body), headers, key)
            if status == 409:  # its answer was lost, and meanwhile its batch was released
                assert answer["error"]["code"] == "idempotency_key_used", answer
                answer = {"stored": False}
            else:
                assert status == 200, (name, answer)
            each["answer"] = answer
        if not each["answer"]["stored"]:
            time.sleep(0.02)  # nothing is open: give it time
            return
        if each["loss"] is None and draws.random() < 0.8:
            each["loss"] = draws.randrange(65) / 64
        if each["loss"] is not None and not _told(each):
            body = _json({"decision": each["answer"]["decision"], "loss": each["loss"]})
            status, answer = call(connection, "POST", f"{before}/observe", body, {}, key)
            assert status in (200, 410), (name, answer)
            each["received" if status == 200 else "late"] = True

    def keep_asking(self, name, stop, seed, *, first):
        """One client: all lost answers first, then new requests until the server dies."""
        draws, account = random.Random(seed), self.accounts[name]
        try:
            with closing(self.place.connection()) as connection:
                for each in self.unsettled(name) if first else ():
                    self.ask(connection, name, each, draws)
                while not stop.is_set():
                    self.ask(connection, name, self.sent(account), draws)
                    time.sleep(0.08)  # releases keep up, also where others use the machine
        except DEAD:
            return

    # The operator

    def operate(self, stop, seed, doing):
        """Do one thing or another until the server dies."""
        draws = random.Random(seed)
        try:
            for name in self.main:
                if self.accounts[name]["modes"] != {"online"}:
                    self._mode(name, "resume", "online")
            while not stop.is_set():
                what = draws.choice(doing)
                getattr(self, f"_{what}")(draws)
                self.done[what] += 1
                stop.wait(draws.uniform(0.0, 0.1))
        except DEAD:
            return

    def _mode(self, name, word, mode):
        account = self.accounts[name]
        account["modes"] = account["modes"] | {mode}
        status, answer = self.post(f"/v1/admin/experiments/{name}/{word}", {})
        assert status == 200, answer
        account["modes"] = {mode}

    def _pause(self, draws):
        name = draws.choice(list(self.main))
        self._mode(name, "pause", "frozen")
        time.sleep(draws.uniform(0.0, 0.1))
        self._mode(name, "resume", "online")

    def _actions(self, draws):
        changing = [name for name, kind in self.main.items() if kind in CHANGING]
        name, extra = draws.choice(changing), draws.choice(EXTRA)
        before, key = f"/v1/experiments/{name}", self.place.keys[name]
        used = self.place.get(f"{before}/actions", key=key)[1]["actions"]
        change = ([], [extra]) if extra in used else ([extra], [])
        changes = self.accounts[name]["changes"]
        changes.append((*change, False))
        body = {"add": change[0], "remove": change[1]}
        status, answer = self.post(f"{before}/admin/actions", body, key)
        # A document before it is not confirmed yet, or a worker was asked that is behind.
        if status == 503 or (status == 422 and self.place.url):
            self.done["actions refused"] += 1
            return
        assert status == 200, answer
        changes[-1] = (*change, True)

    def _fetch(self, draws):
        self.fetch(draws.choice(list(self.main)), draws)

    def fetch(self, name, draws, most=3):
        """Published bytes, some of them once more."""
        before, key = f"/v1/experiments/{name}", self.place.keys[name]
        known = self.accounts[name]["documents"]
        listed = self.place.get(f"{before}/releases", key=key)[1]["releases"]
        numbers = [each["number"] for each in listed]
        for number in {*numbers[-3:], *draws.sample(numbers, min(most, len(numbers)))}:
            status, body = self.place.get(f"{before}/releases/{number}", key=key, raw=True)
            if status == 404 and self.place.url:  # this worker is behind
                continue
            assert status == 200
            assert known.setdefault(number, body) == body, "a published document changed"

    def _cross(self, draws):
        """A decision of one experiment is unknown to another, and so is a key."""
        one, other = draws.sample(list(self.main), 2)
        reported = [each["answer"] for each in self.accounts[one]["sent"][-20:]]
        reported = [each["decision"] for each in reported if each and each["stored"]]
        if reported:
            body = {"decision": reported[0], "loss": 0.0}
            path, keys = f"/v1/experiments/{other}/observe", self.place.keys
            assert self.place.post(path, body, key=keys[other])[0] == 404
            assert self.place.post(path, body, key=keys[one])[0] == 401

    def _join(self, draws):
        one_joins(self.place, self, draws)

    def _new(self, draws):
        """Begin an experiment, use it, end it and put it away; or go on where a crash stopped."""
        if not self.passing:
            self._begin(draws)
        name = self.passing[0]
        account = self.accounts[name]
        if name in self.place.keys:  # otherwise its key was lost with the answer
            time.sleep(2.0 if self.place.url else 0.0)  # until all workers know it
            with closing(self.place.connection()) as connection:
                for each in self.unsettled(name):
                    self.ask(connection, name, each, draws)
                while account["modes"] == {"online"} and account["count"] < 10:
                    self.ask(connection, name, self.sent(account), draws)
        if account["modes"] != {"ended"}:
            self._mode(name, "end", "ended")
        account["burned"] = True
        status, answer = self.post(f"/v1/admin/experiments/{name}/archive", {"burn": True})
        assert status == 200, answer
        self.passing.remove(name)
        self.done["archived"] += 1

    def _begin(self, draws):
        kind = draws.choice(CHANGING)
        mark = len(self.accounts) + len(self._unsure) + 1
        name = f"{self.place.prefix}new-{self.done['begun']}"
        self.done["begun"] += 1
        self._unsure.append((name, mark, kind))
        status, answer = self.post("/v1/admin/experiments", {"name": name, "toml": text_of(kind)})
        assert status == 200, answer
        self._unsure.pop()
        self.place.keys[name] = answer["admin_key"]
        self.accounts[name] = new_account(mark, kind)
        self.passing.append(name)

    def farewell(self, draws):
        """Fetch everything, and leave rows in batches that are under way."""
        for name in self.main:
            self.fetch(name, draws, most=2**31)
            with closing(self.place.connection()) as connection:
                until(lambda name=name, to=connection: self._leaves(name, to, draws))

    def _leaves(self, name, connection, draws):
        """Ask once more; whether answered slots are in the open batch, which nothing releases."""
        account, store = self.accounts[name], Store(self.place.folder, name, self.place.url)
        self.ask(connection, name, self.sent(account), draws)
        found = store.tables(("batches",), served=True)["batches"]
        opened = {row[:2] for row in found if row[4] == "open"}
        ids = [each["answer"]["decision"] for each in account["sent"][-8:] if each["received"]]
        return sum(store.slot(id)[1][:2] in opened for id in ids) > 1

    def look_after(self):
        """While nothing runs, as an operator: what a crash left half made goes, or is served."""
        for name, mark, kind in self._unsure:
            store = Store(self.place.folder, name, self.place.url)
            if store.begun:
                self.accounts[name] = new_account(mark, kind)
                self.passing.append(name)
                self.done["begun without an answer"] += 1
            elif store.place is not None:
                self.place.remove(store.place)
                self.done["half made"] += 1
        self._unsure.clear()
        for name in [*self.passing]:
            if Store(self.place.folder, name, self.place.url).archived:
                self.passing.remove(name)  # it was put away before the answer was lost
        self.done["marks"] += self.place.unmark()


@contextmanager
def crowded(crowd, draws, doing, clients=2):
    """Clients of all experiments and the operator; what they complain about is raised."""
    stop = threading.Event()
    with ThreadPoolExecutor(len(crowd.main) * clients + 1) as threads:
        asking = [
            threads.submit(crowd.keep_asking, name, stop, draws.random(), first=count == 0)
            for name in crowd.main
            for count in range(clients)
        ]
        asking.append(threads.submit(crowd.operate, stop, draws.random(), doing))
        try:
            yield
        finally:
            stop.set()
        for each in asking:
            each.result()


def _told(each):
    return each["received"] or each.get("late", False)


def _json(body):
    return json.dumps(body)
