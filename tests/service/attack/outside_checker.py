"""Comparison of replies with the stores, without code of the service.

``accounts`` has a dict for each experiment, with what its clients know:

* ``mark``: what its contexts begin with, which those of no other experiment do;
* ``sent``: a dict for each request to decide: ``number``, ``answer``, ``loss``, ``heard``;
* ``documents``: published bytes by number, as fetched;
* ``changes``: of actions, in order: (added, removed, whether it was acknowledged);
* ``modes``: the modes that it may be in, after all that was asked for;
* ``exact``: whether releases have no noise, so that their sums tell which rows are in them;
* ``control``: whether policy and control pay apart;
* ``count``: how many requests there were;
* ``burned``: whether anybody asked to give up what was stored.
"""

import hashlib
import itertools
import json
import struct
from collections import Counter, defaultdict

from cryptography.exceptions import InvalidSignature

from service.attack.outside_store import (
    LOSS,
    ROW,
    TOKEN,
    UNSTORED,
    WHOLE,
    Store,
    copied,
    read_row,
)
from service.attack.outside_sums import is_sum_of

LIVE = ("open", "sealed")


class Checker:
    """Remembers what it saw, so that nothing can change from one check to the next."""

    def __init__(self, folder, url=None):
        self._folder, self._url = folder, url
        self._bodies = defaultdict(list)
        self._places = defaultdict(dict)
        self._slots = defaultdict(dict)
        self._looked, self._waiting = Counter(), defaultdict(list)
        self._summed, self._keys = defaultdict(set), {}

    def check(self, accounts):
        """Every property of every experiment; numbers of releases and of acknowledged slots."""
        payloads = defaultdict(set)
        for name, account in accounts.items():
            store = Store(self._folder, name, self._url)
            assert store.begun, f"{name}: an experiment that was acknowledged is lost"
            tables = store.tables()
            self._chain(store, tables["documents"])
            self._published(name, account)
            batches = {(row[0], row[1]): row[2:] for row in tables["batches"]}
            releases = _released_once(tables["documents"], batches)
            _paid_once(tables["charges"], releases, account)
            _changed(self._documents(name, "actions"), account)
            assert tables["experiment"] == [(name, tables["experiment"][0][1])], "another name"
            assert tables["experiment"][0][1] in account["modes"], "a change of mode is lost"
            self._acknowledged(store, account)
            self._rows(store, tables, batches, account)
            if account["exact"]:
                self._sums(name, tables["documents"], releases, account)
            for table in ("records", "answers"):
                payloads[name] |= {row[-1] for row in tables[table]}
        for one, other in itertools.combinations(accounts, 2):
            assert not payloads[one] & payloads[other], "rows of one experiment are in another"
            assert self._keys[one] != self._keys[other], "two experiments share a key"
        releases = sum(len(self._documents(name, "release")) for name in accounts)
        return releases, sum(map(len, self._slots.values()))

    def _documents(self, name, kind):
        return [each for each in map(json.loads, self._bodies[name]) if each["kind"] == kind]

    def _chain(self, store, rows):
        """Each document names the one before and is signed; what was seen has the same bytes."""
        seen, key = self._bodies[store.name], store.public_key()
        public = key.public_bytes_raw().hex()
        assert self._keys.setdefault(store.name, public) == public, "the key changed"
        bodies = [row[5] for row in rows]
        assert bodies[: len(seen)] == seen, "a document that was seen changed or is lost"
        before = hashlib.sha256(seen[-1]).hexdigest() if seen else None
        for number in range(len(seen), len(bodies)):
            document = json.loads(bodies[number])
            signature = bytes.fromhex(document.pop("signature"))
            plain = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
            _signed(key, signature, plain)
            place = (document["number"], document["previous"], document["experiment"])
            assert place == (number, before, store.name), "a document does not follow"
            assert document.get("key", public) == public, "document 0 names another key"
            before = hashlib.sha256(bodies[number]).hexdigest()
            kind, epoch, digest = document["kind"], document["epoch"], before
            assert rows[number][:3] == (number, kind, epoch), "a document is not where it says"
            assert rows[number][4] == digest, "the digest of a document is another"
            seen.append(bodies[number])

    def _published(self, name, account):
        """Bytes that clients fetched are those that are stored."""
        for number, body in account["documents"].items():
            stored = self._bodies[name][number : number + 1]
            assert stored == [body], "a published document changed or is lost"

    def _acknowledged(self, store, account):
        """Every id belongs to this experiment, and no two requests have one slot."""
        slots, sent = self._slots[store.name], account["sent"]
        new = self._waiting[store.name] + sent[self._looked[store.name] :]
        self._looked[store.name] = len(sent)
        self._waiting[store.name] = [each for each in new if each["answer"] is None]
        for each in new:
            if each["answer"] is None or not each["answer"]["stored"]:
                continue
            found = store.slot(each["answer"]["decision"])
            assert found is not None, "an id of another experiment was told"
            kind, slot = found
            assert kind != UNSTORED, "a stored decision has no slot"
            assert slot not in slots, "two decisions share a slot"
            slots[slot] = (kind, each)

    def _rows(self, store, tables, batches, account):
        """Rows under way: sent by clients of this experiment, each once, and none is missing."""
        live = {place for place, batch in batches.items() if batch[2] in LIVE}
        names = _names(self._bodies[store.name])
        stored, losses = {}, {}
        for table in ("records", "answers"):
            over = {batches[row[:2]][2] for row in tables[table] if row[:2] not in live}
            assert over <= {"released"}, "rows of a burned batch were kept"
        for *slot, payload in tables["records"]:
            if tuple(slot[:2]) in live:
                stored[tuple(slot)] = read_row(store.opened(ROW, slot, payload))
        for *slot, kind, payload in tables["answers"]:
            if tuple(slot[:2]) in live:
                packed = store.opened(kind, slot, payload)
                if kind == WHOLE:
                    stored[tuple(slot)] = read_row(packed[:-8])
                if kind in (WHOLE, LOSS):
                    losses[tuple(slot)] = packed[-8:]
        for slot, (mark, number, _) in stored.items():
            assert mark == account["mark"], "rows of one experiment are in another"
            assert number < account["count"], "a record that nobody sent"
            place = self._places[store.name].setdefault(number, slot)
            assert place == slot, "a request has two records"
        for slot, (kind, each) in self._slots[store.name].items():
            assert slot[:2] in batches, "the batch of a decision is lost"
            if slot[:2] not in live:
                over = ("released", "burned") if account["burned"] else ("released",)
                assert batches[slot[:2]][2] in over, "what was acknowledged was burned"
                continue
            if kind != TOKEN or each["received"]:
                assert slot in stored, "an acknowledged decision is lost"
                expected = (account["mark"], each["number"], names[each["answer"]["action"]])
                assert stored[slot] == expected, "an acknowledged decision changed"
            if each["received"]:
                assert slot in losses, "an acknowledged loss is lost"
                assert losses[slot] == _double(each["loss"]), "an acknowledged loss changed"

    def _sums(self, name, documents, releases, account):
        """A release without noise is the sum of exactly the rows that were heard in time.

        A loss whose answer was lost may be in it or not.
        """
        names = _names(self._bodies[name])
        received, maybe = defaultdict(list), defaultdict(list)
        for slot, (_, each) in self._slots[name].items():
            if each["loss"] is not None:
                kind = received if each["received"] else maybe
                row = (each["number"], names[each["answer"]["action"]], each["loss"])
                kind[slot[:2]].append(row)
        new = [each for each in releases.items() if each[0] not in self._summed[name]]
        for number, place in new:
            reported = json.loads(documents[number][5])["release"]["statistics"]
            assert is_sum_of(reported, received[place], maybe[place], account["mark"]), (
                "a release is not the sum of what was acknowledged"
            )
            self._summed[name].add(number)


def check_members(folder, members):
    """Members of the server, with roles and sessions, are those that were acknowledged."""
    with copied(folder / "server.db") as connection:
        rows = connection.execute(
            """SELECT name, role, (SELECT count(*) FROM sessions WHERE sessions.member = members.id)
               FROM members JOIN grants ON grants.member = members.id AND experiment = ''"""
        ).fetchall()
    listed = {name: (role, sessions) for name, role, sessions in rows}
    assert listed.keys() <= members.keys(), "a member that nobody invited"
    for name, known in members.items():
        assert listed.get(name) in known, "a change of members is lost"


def left_over(folder, names, url=None):
    """Experiments that still have rows or keys of a batch that is over, while they are served."""
    found = []
    for name in names:
        store = Store(folder, name, url)
        tables = store.tables(("batches", "records", "answers"), served=True)
        over = {row[:2] for row in tables["batches"] if row[4] not in LIVE}
        rows = {row[:2] for table in ("records", "answers") for row in tables[table]}
        found += [name] if (rows | store.key_files()) & over else []
    return found


def _released_once(documents, batches):
    """Number of a document to the batch that it releases; each batch at most once."""
    places = {row[0]: (row[2], row[3]) for row in documents if row[1] == "release"}
    twice = [place for place, count in Counter(places.values()).items() if count > 1]
    assert not twice, f"a batch was released twice: {twice}"
    over = {place for place, batch in batches.items() if batch[2] == "released"}
    assert set(places.values()) == over, "releases and released batches differ"
    for count, (number, place) in enumerate(sorted(places.items()), start=1):
        release = json.loads(documents[number][5])["release"]
        assert (release["number"], release["records"]) == (count, batches[place][1]), (
            "a release is not of its batch"
        )
    return places


def _paid_once(charges, releases, account):
    """Each release is charged to its own batch, or to the two parts of it, and nothing else is."""
    paid = [
        (number, each["partition"])
        for number, entry in charges
        for each in json.loads(entry)["charges"]
    ]
    parts = (", policy", ", control") if account["control"] else ("",)
    due = [
        (number, f"batch {batch} of epoch {epoch}{part}")
        for number, (epoch, batch) in releases.items()
        for part in parts
    ]
    assert sorted(paid) == sorted(due), "a batch did not pay once"


def _changed(documents, account):
    """Changes of actions are published once, in the order of those who asked for them."""
    published = [(each["change"]["added"], each["change"]["removed"]) for each in documents]
    counts = {0}  # how many of them may belong to the changes so far
    for added, removed, acknowledged in account["changes"]:
        is_next = {each + 1 for each in counts if published[each : each + 1] == [(added, removed)]}
        counts = is_next if acknowledged else counts | is_next
        assert counts, "a change of actions is lost"
    assert len(published) in counts, "a change of actions is lost, or nobody asked for it"


def _names(bodies):
    """The place of every action that there ever was, by its name or number."""
    plan = json.loads(bodies[0])["plan"]
    names = list(plan.get("actions") or range(plan["n_actions"]))
    for document in map(json.loads, bodies):
        if document["kind"] == "actions":
            names += [name for name in document["change"]["added"] if name not in names]
    return {name: place for place, name in enumerate(names)}


def _signed(key, signature, content):
    try:
        key.verify(signature, content)
    except InvalidSignature:
        raise AssertionError("a document is not signed") from None


def _double(value):
    return struct.pack("<d", value)
