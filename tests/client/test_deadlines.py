"""Deadlines, fallbacks and coroutines: nobody waits longer than they said."""

import asyncio
import threading
from inspect import signature

import pytest

import discreet as dc
from discreet.client import AsyncClient, Billboard, Client, Decision, transport
from waiting import PATIENCE
from wording import refused

GOOD = {"decision": "d1", "action": 2, "release": 3, "stored": True}
CONTEXT = [0.5, 0.5]
SOON, LONG = 0.1, PATIENCE
"""The deadline of these tests, and a time after which something hangs."""


def asked_async(url, **options):
    """``decide`` of an AsyncClient, as if it were a function."""

    async def run():
        async with AsyncClient(url, "dk_1_x", **options) as client:
            return await client.decide(CONTEXT)

    return asyncio.run(run())


def asked(url, **options):
    with Client(url, "dk_1_x", **options) as client:
        return client.decide(CONTEXT)


BOTH = pytest.mark.parametrize("ask", [asked, asked_async])


@BOTH
def test_a_call_ends_at_its_deadline(ask, stub):
    held = threading.Event()
    stub.answer = lambda *_: (200, GOOD if held.wait(LONG) else {})
    with refused(dc.ServiceError, "service must answer"):
        ask(stub.url, deadline=SOON)
    held.set()


@BOTH
def test_a_deadline_does_not_depend_on_the_socket(ask, monkeypatch):
    """Looking up a name has no timeout of its own."""
    held = threading.Event()
    found = []
    monkeypatch.setattr(transport.Transport, "_connection", lambda _: found.append(held.wait(LONG)))
    try:
        assert ask("http://example.invalid", deadline=SOON, fallback=1).action == 1
        assert found == []  # it still looks
    finally:
        held.set()


@BOTH
def test_a_fallback_instead_of_an_answer(ask, stub):
    gone = (409, {"error": {"code": "idempotency_key_used", "message": "over"}})
    for failure in ((503, {}), (429, {}), (500, {}), (None, b""), gone):
        stub.answers["POST", "/v1/decide"] = failure
        found = ask(stub.url, retries=0, fallback="none")
        assert found == Decision("", "none", -1, False, fallback=True)
    for status in (401, 403, 404, 422):  # a mistake of the caller
        stub.answers["POST", "/v1/decide"] = (status, {"error": {"code": "x", "message": "y"}})
        with pytest.raises(dc.ServiceError):
            ask(stub.url, fallback=0)


def test_no_attempt_begins_after_the_deadline(stub, waits):
    stub.answers["GET", "/v1/status"] = (503, {}, ("Retry-After", "9"))
    with pytest.raises(dc.ServiceError):
        Client(stub.url, deadline=8.0).status()
    assert len(stub.asked) == 1
    assert waits == []


def test_nothing_is_sent_of_a_fallback(stub):
    decision = Decision("", 1, -1, False, fallback=True)
    with Client(stub.url) as client:
        client.observe(decision, 1.0)
        client.activate(decision)
    assert stub.asked == []


def test_a_billboard_decides_in_place_of_the_service(stub, monkeypatch):
    board = object.__new__(Billboard)
    monkeypatch.setattr(Billboard, "number", 7)
    monkeypatch.setattr(Billboard, "sample", lambda _, context, **_options: sum(context))
    stub.answers["POST", "/v1/decide"] = (503, {})
    found = asked(stub.url, retries=0, fallback=board)
    assert found == Decision("", 1.0, 7, False, fallback=True)


@pytest.mark.parametrize("deadline", [0.0, float("nan")])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_deadline_must_be_positive(kind, deadline):
    with refused(dc.InvalidInput, "deadline"):
        kind("http://127.0.0.1:9", deadline=deadline)


def test_coroutines_overlap(stub):
    async def run():
        async with AsyncClient(stub.url) as client:
            return await asyncio.gather(*(client.decide(CONTEXT) for _ in range(8)))

    together = threading.Barrier(8)
    stub.answer = lambda *_: (200, GOOD) if together.wait(LONG) >= 0 else (500, {})
    assert asyncio.run(run()) == [Decision("d1", 2, 3, True)] * 8


def test_both_clients_have_the_same_methods():
    one, other = (
        {
            name: [(each.name, each.default) for each in signature(method).parameters.values()]
            for name, method in vars(kind).items()
            if name[0] != "_"
        }
        for kind in (Client, AsyncClient)
    )
    assert one == other
