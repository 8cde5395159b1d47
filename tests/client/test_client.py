"""Clients: requests, retries, errors, deadlines, fallbacks and coroutines."""

import asyncio
import json
import threading
from dataclasses import replace
from inspect import signature

import numpy as np
import pytest

import discreet as dc
from discreet.client import AsyncClient, Billboard, Client, Decision, Ticket, transport
from waiting import PATIENCE
from wording import refused

GOOD = {"decision": "d1", "action": 2, "release": 3, "stored": True}
MADE = Decision("d1", 2, 3, True)
CONTEXT = {"age": 41, "device": "phone"}


@pytest.fixture
def client(stub, waits):  # noqa: ARG001
    with Client(stub.url, "dk_7_secret") as made:
        yield made


FOUND, ITEM, RAILS = {"found": 1}, {"id": "x", "year": 1999}, {"complaints": 1, "latency": None}
TICKET = {"ticket": "t1", "release": 4, "stored": True}


def request(path, body, answer, result, name, *given, **named):
    """Path and body of a request, the answer and the result of a method with its arguments."""
    return path, body, answer, result, name, given, named


OFFERED = {"context": {"age": 4.0, "visits": 3}, "actions": ["a", ITEM], "ranking": True}
PERSON = {"user": "u1", "deferred": True, "sticky": "ann"}
FIRST, SECOND = {"decision": "d1", "loss": 0.0}, {"decision": "d2", "loss": 1.0}
REQUESTS = [
    request("/v1/decide", {"context": CONTEXT}, GOOD, MADE, "decide", CONTEXT),
    request(
        *("/v1/decide", {"context": [0.5, 1.0], **PERSON}, {**GOOD, "action": "b"}),
        *(replace(MADE, action="b"), "decide", np.array([0.5, 1.0])),
        **PERSON,
    ),
    request(
        *("/v1/decide", OFFERED, {**GOOD, "ranking": [2, 0]}, replace(MADE, ranking=[2, 0])),
        *("decide", {"age": np.float64(4.0), "visits": np.int64(3)}),
        actions=("a", ITEM),
        ranking=True,
    ),
    request("/v1/observe", FIRST, {}, None, "observe", MADE, np.float64(0.0)),
    request(
        *("/v1/observe", {**SECOND, "guardrails": RAILS}, {}, None, "observe", "d2", 1.0),
        guardrails=RAILS,
    ),
    request(
        *("/v1/observe", {**FIRST, "context": CONTEXT, "action": 0}, {}, None),
        *("observe", Ticket("d1", 4, True), 0.0),
        context=CONTEXT,
        action=0,
    ),
    request(
        *("/v1/observe:batch", {"observations": [FIRST, {**SECOND, "guardrails": RAILS}]}),
        *({"results": [{"status": 409}]}, [{"status": 409}]),
        *("observe_many", [("d1", 0.0), (replace(MADE, id="d2"), 1.0, RAILS)]),
    ),
    request("/v1/activate", {"decision": "d3"}, {}, None, "activate", "d3"),
    request("/v1/tickets", {"user": "u"}, TICKET, Ticket("t1", 4, True), "ticket", user="u"),
    request(
        *("/v1/tickets", {"sticky": "ann"}, {**TICKET, "u": [0.25, 0.5]}),
        *(Ticket("t1", 4, True, u=(0.25, 0.5)), "ticket"),
        sticky="ann",
    ),
    request(
        *("/v1/admin/actions", {"add": [ITEM], "remove": ["a"]}, FOUND, FOUND, "change_actions"),
        add=[ITEM],
        remove=("a",),
    ),
    request("/v1/actions?q=a+%26&limit=5", None, FOUND, FOUND, "actions", "a &", limit=5),
    *(
        request(f"/v1/{name}", None, FOUND, FOUND, name)
        for name in ("status", "lift", "releases", "schema", "ledger")
    ),
]


async def asynchronous(url, name, given, named):
    async with AsyncClient(url, "dk_7_secret") as client:
        return await getattr(client, name)(*given, **named)


@pytest.mark.parametrize(("path", "body", "answer", "result", "name", "given", "named"), REQUESTS)
def test_requests(stub, client, path, body, answer, result, name, given, named):
    stub.answers["GET" if body is None else "POST", path] = (200, answer)
    assert getattr(client, name)(*given, **named) == result
    assert asyncio.run(asynchronous(stub.url, name, given, named)) == result
    for _, _, headers, content in stub.asked:
        assert json.loads(content or b"null") == body
        assert headers["Authorization"] == "Bearer dk_7_secret"
        assert ("Idempotency-Key" in headers) == (name == "decide")


def test_every_request_has_the_deadline(monkeypatch):
    def expired(deadline, _):
        raise deadline._late()

    monkeypatch.setattr(transport.Deadline, "wait", expired)
    methods = {name for name in vars(Client) if name[0] != "_"} - {"close"}
    client = Client("http://127.0.0.1:9", deadline=0.1)
    for *_, name, given, named in REQUESTS:
        with refused(dc.ServiceError, "deadline of 0.1 seconds"):
            getattr(client, name)(*given, **named)
        methods.discard(name)
    assert methods == set(), "methods without a request above"


def test_a_decision_has_a_name_of_its_own_or_a_given_one(stub, client):
    stub.answers["POST", "/v1/decide"] = (200, GOOD)
    for options in ({}, {}, {"idempotency_key": "name"}):
        client.decide(CONTEXT, **options)
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in stub.asked]
    assert len(set(keys)) == 3
    assert keys[2] == "name"


@pytest.mark.parametrize("status", [401, 422, 500])
def test_a_refusal_is_final_and_carries_the_words_of_the_service(stub, client, waits, status):
    error = {"code": "invalid_context", "message": "age must be in [0, 100].", "field": "age"}
    stub.answers["POST", "/v1/decide"] = (status, {"error": error})
    with pytest.raises(dc.ServiceError, match=r"age must be in \[0, 100\].") as caught:
        client.decide(CONTEXT)
    refusal = caught.value
    assert (refusal.status, refusal.code, refusal.field) == (status, "invalid_context", "age")
    assert len(stub.asked) == 1
    assert waits == []


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"error": "text"}', b"\xff"])
def test_a_refusal_without_words_says_its_status(stub, client, body):
    stub.answers["GET", "/v1/status"] = (502, body)
    with refused(dc.ServiceError, "502") as caught:
        client.status()
    assert (caught.value.status, caught.value.code) == (502, None)
    stub.answers["GET", "/v1/status"] = (200, b"<html>hello</html>")
    with refused(dc.ServiceError, "JSON"):
        client.status()


@pytest.mark.parametrize("failure", [(429, {}), (503, {}), (None, b"")], ids=str)
def test_what_may_pass_is_sent_again_with_the_same_key(stub, client, waits, failure):
    stub.answers["POST", "/v1/decide"] = [failure, failure, (200, GOOD)]
    assert client.decide(CONTEXT).id == "d1"
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in stub.asked}) == 1
    assert len({body for _, _, _, body in stub.asked}) == 1
    assert len(stub.asked) == 3
    assert 0.05 <= waits[0] <= 0.1
    assert 0.1 <= waits[1] <= 0.2


def test_the_service_may_ask_for_a_longer_wait(stub, client, waits):
    later, far = ("Retry-After", "4"), ("Retry-After", "86400")
    stub.answers["GET", "/v1/status"] = [(429, {}, later), (503, {}, far), (200, {})]
    client.status()
    assert waits == [4.0, transport.LONGEST_WAIT]


def test_retries_end(stub, waits):
    with refused(dc.ServiceError, "failed 4 times", "ConnectionRefusedError") as caught:
        Client("http://127.0.0.1:9").status()
    assert caught.value.status is None
    assert len(waits) == 3
    stub.answers["GET", "/v1/status"] = (503, {"error": {"code": "storage", "message": "full"}})
    with pytest.raises(dc.ServiceError, match="full"):
        Client(stub.url, retries=2).status()
    assert len(stub.asked) == 3


def test_an_answer_that_never_comes_ends_in_time(stub, waits):
    held = threading.Event()
    stub.answer = lambda *_: (200, {"held": held.wait(10)})
    with refused(dc.ServiceError, "TimeoutError"):
        Client(stub.url, timeout=0.05, retries=1).status()
    held.set()
    assert len(waits) == 1


@pytest.mark.parametrize("deadline", [None, 60.0])
def test_connections_are_kept_until_the_client_is_closed(stub, deadline):
    stub.answers["POST", "/v1/decide"] = (200, GOOD)
    with Client(stub.url, deadline=deadline) as client:
        for _ in range(5):
            client.decide(CONTEXT)
        assert len(stub.connections) == 1
        client.close()
        client.decide(CONTEXT)
        assert len(stub.connections) == 2


def test_a_kept_connection_that_ends_when_it_is_used_again_costs_no_attempt(stub, waits):
    stub.answers["POST", "/v1/decide"] = [(200, GOOD), (None, b""), (200, GOOD)]
    with Client(stub.url, "dk_7_secret", retries=0) as client:
        assert [client.decide(CONTEXT).id for _ in range(2)] == ["d1", "d1"]
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in stub.asked[1:]}) == 1
    assert waits == []


def test_a_base_path_is_kept(stub):
    stub.answers["GET", "/shop/v1/status"] = (200, {})
    assert Client(f"{stub.url}/shop/").status() == {}
    assert "Authorization" not in stub.asked[0][2]


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://host", "http://", "http://h:x", "http://h:99999", "http://[::"],
)
def test_an_address_must_be_one(url):
    with refused(dc.InvalidInput, "http://"):
        Client(url)


@pytest.mark.parametrize("key", ["dk_1_secret\n", " dk_1_secret", "dk_1_secreté", ""])
def test_a_key_that_no_header_takes_is_refused_without_showing_it(key):
    with refused(dc.InvalidInput, "API key") as caught:
        Client("http://127.0.0.1:9", key)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("context", [{"age": float("nan")}, {"age": object()}, [float("inf")]])
def test_what_json_cannot_say_is_refused_here_without_showing_it(stub, client, context):
    with refused(dc.InvalidInput) as caught:
        client.decide(context)
    assert "nan" not in str(caught.value)
    assert stub.asked == []


HERE = [0.5, 0.5]
SOON, LONG = 0.1, PATIENCE
"""The deadline of these tests, and a time after which something hangs."""


def asked_async(url, **options):
    """``decide`` of an AsyncClient, as if it were a function."""

    async def run():
        async with AsyncClient(url, "dk_1_x", **options) as client:
            return await client.decide(HERE)

    return asyncio.run(run())


def asked(url, **options):
    with Client(url, "dk_1_x", **options) as client:
        return client.decide(HERE)


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
            return await asyncio.gather(*(client.decide(HERE) for _ in range(8)))

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
