"""The disk is full: 503, no half release, and everything goes on when there is room again."""

import random
import resource
from contextlib import closing

from service.attack.account import Account, ask, check, remember_documents
from service.attack.harness import context
from service.attack.processes import family
from waiting import until

UNLIMITED = resource.RLIM_INFINITY


def room(place, size):
    """How long files may become that the service writes, as if the disk ended there."""
    for pid in place.tree:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, UNLIMITED))


def fill_some(place, account, count):
    draws = random.Random(1)
    with closing(place.connection()) as connection:
        for _ in range(count):
            ask(place, connection, account.new(), draws)


def test_writes_are_refused_and_nothing_is_half_done(place_on_sqlite):
    place, account = place_on_sqlite(first_batch=16), Account()
    with place.served():
        fill_some(place, account, 8)
        room(place, 0)
        for number in range(100, 110):
            status, answer = place.post("/v1/decide", {"context": context(number)})
            assert (status, answer["error"]["code"]) == (503, "storage_unavailable")
        reported = account.sent[0].answer["decision"]
        assert place.post("/v1/observe", {"decision": reported, "loss": 0.5})[0] in (503, 200, 409)
        assert place.get("/healthz", key=None)[0] == 200
        status, answer = place.get("/readyz", key=None)
        assert (status, "storage (SQLITE_" in answer["error"]["message"]) == (503, True)
        assert place.get("/v1/status")[0] == 200
        room(place, UNLIMITED)
        check(place, account)
        until(lambda: place.get("/readyz", key=None)[0] == 200)  # without any request
        until(lambda: place.post("/v1/decide", {"context": context(200)})[0] == 200)


def test_a_release_waits_for_room(place_on_sqlite):
    place, account = place_on_sqlite(first_batch=16), Account()
    with place.served():
        while place.get("/v1/status")[1]["batches"][:1] == [] or any(
            each["state"] == "open" for each in place.get("/v1/status")[1]["batches"]
        ):
            fill_some(place, account, 1)
        room(place, 0)
        place.windows_end()
        until(lambda: len(family(place.pid)) > 1, "no process was started to fit")
        for _ in range(2):  # each fit is tried, and cannot be written
            place.looks_twice()
        assert place.get("/v1/status")[1]["releases"] == 0
        assert set(check(place, account).values()) == {"sealed"}
        room(place, UNLIMITED)
        until(lambda: place.get("/v1/status")[1]["releases"] == 1, "no release after all")
        remember_documents(place, account)
        until(lambda: not place.vault.batches())
    assert set(check(place, account).values()) == {"released"}
