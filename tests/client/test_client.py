"""Client: what it sends, what it sends again, and the errors that it passes on."""

import json
import threading

import numpy as np
import pytest

import discreet as dc
from client.stub_service import serving
from discreet.client import Client, Decision, Ticket, transport
from wording import refused

GOOD = {"decision": "d1", "action": 2, "release": 3, "stored": True}
CONTEXT = {"age": 41, "device": "phone"}


@pytest.fixture
def waits(monkeypatch):
    """Seconds that the client would have slept."""
    slept = []
    monkeypatch.setattr(transport.time, "sleep", slept.append)
    return slept


@pytest.fixture
def service(waits):  # noqa: ARG001
    with serving() as (stub, url):
        yield stub, url


@pytest.fixture
def client(service):
    with Client(service[1], "dk_7_secret") as made:
        yield made


def sent(stub):
    return [(method, path, json.loads(body or b"null")) for method, path, _, body in stub.asked]


def test_decide(service, client):
    stub, _ = service
    stub.answers["POST", "/v1/decide"] = (200, GOOD)
    assert client.decide(CONTEXT) == Decision("d1", 2, 3, True)
    client.decide(np.array([0.5, 1.0]), user="u1", deferred=True)
    client.decide({"age": np.float64(4.0), "visits": np.int64(3)})
    assert [body for _, _, body in sent(stub)] == [
        {"context": CONTEXT},
        {"context": [0.5, 1.0], "user": "u1", "deferred": True},
        {"context": {"age": 4.0, "visits": 3}},
    ]
    _, _, headers, _ = stub.asked[0]
    assert headers["Authorization"] == "Bearer dk_7_secret"
    assert headers["Content-Type"] == "application/json"
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in stub.asked]
    assert len(set(keys)) == 3


def test_offers_and_changes(service, client):
    stub, _ = service
    stub.answers["POST", "/v1/decide"] = (200, {**GOOD, "ranking": [2, 0]})
    stub.answers["POST", "/v1/admin/actions"] = (200, {"count": 3})
    stub.answers["GET", "/v1/actions?q=a+%26&limit=5"] = (200, {"found": 0})
    item = {"id": "x", "year": 1999}
    assert client.decide(CONTEXT, actions=("a", item), ranking=True).ranking == [2, 0]
    assert client.change_actions(add=[item], remove=("a",)) == {"count": 3}
    assert client.actions("a &", limit=5) == {"found": 0}
    assert [body for _, _, body in sent(stub)] == [
        {"context": CONTEXT, "actions": ["a", item], "ranking": True},
        {"add": [item], "remove": ["a"]},
        None,
    ]


def test_observe_and_activate(service, client):
    stub, _ = service
    stub.answers["POST", "/v1/observe"] = (200, {"stored": True})
    stub.answers["POST", "/v1/activate"] = (200, {"activated": True})
    client.observe(Decision("d1", 2, 3, True), 0.25)
    client.observe("d2", np.float64(1.0), guardrails={"complaints": 1, "latency": None})
    client.activate("d3")
    assert sent(stub) == [
        ("POST", "/v1/observe", {"decision": "d1", "loss": 0.25}),
        (
            "POST",
            "/v1/observe",
            {"decision": "d2", "loss": 1.0, "guardrails": {"complaints": 1, "latency": None}},
        ),
        ("POST", "/v1/activate", {"decision": "d3"}),
    ]


def test_a_ticket_is_answered_with_the_whole_record(service, client):
    stub, _ = service
    stub.answers["POST", "/v1/tickets"] = (200, {"ticket": "t1", "release": 4, "stored": True})
    stub.answers["POST", "/v1/observe"] = (200, {"stored": True})
    ticket = client.ticket(user="u")
    assert ticket == Ticket("t1", 4, True)
    client.observe(ticket, 0.0, context=CONTEXT, action=0)
    record = {"decision": "t1", "loss": 0.0, "context": CONTEXT, "action": 0}
    assert sent(stub) == [("POST", "/v1/tickets", {"user": "u"}), ("POST", "/v1/observe", record)]


def test_observe_many(service, client):
    stub, _ = service
    results = [{"status": 200, "stored": True}, {"status": 409, "error": {"code": "conflict"}}]
    stub.answers["POST", "/v1/observe:batch"] = (200, {"results": results})
    rails = {"complaints": 1}
    assert client.observe_many([("d1", 0.0), (Decision("d2", 0, 0, True), 1.0, rails)]) == results
    listed = [{"decision": "d1", "loss": 0.0}]
    listed.append({"decision": "d2", "loss": 1.0, "guardrails": rails})
    assert sent(stub) == [("POST", "/v1/observe:batch", {"observations": listed})]


@pytest.mark.parametrize("name", ["status", "releases", "schema", "ledger"])
def test_questions(service, client, name):
    stub, _ = service
    stub.answers["GET", f"/v1/{name}"] = (200, {"told": name})
    assert getattr(client, name)() == {"told": name}


def test_a_refusal_carries_the_words_of_the_service(service, client, waits):
    stub, _ = service
    error = {"code": "invalid_context", "message": "age must be in [0, 100].", "field": "age"}
    stub.answers["POST", "/v1/decide"] = (422, {"error": error})
    with pytest.raises(dc.ServiceError, match=r"age must be in \[0, 100\].") as caught:
        client.decide(CONTEXT)
    assert (caught.value.status, caught.value.code) == (422, "invalid_context")
    assert caught.value.field == "age"
    assert len(stub.asked) == 1
    assert waits == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": "text"}', b"\xff"])
def test_a_refusal_without_words_says_its_status(service, client, body):
    stub, _ = service
    stub.answers["GET", "/v1/status"] = (502, body)
    with refused(dc.ServiceError, "502") as caught:
        client.status()
    assert (caught.value.status, caught.value.code) == (502, None)


def test_a_good_answer_must_be_json(service, client):
    stub, _ = service
    stub.answers["GET", "/v1/status"] = (200, b"<html>hello</html>")
    with refused(dc.ServiceError, "JSON"):
        client.status()


@pytest.mark.parametrize("failure", [(429, {}), (503, {}), (None, b"")], ids=str)
def test_what_may_pass_is_sent_again_with_the_same_key(service, client, waits, failure):
    stub, _ = service
    stub.answers["POST", "/v1/decide"] = [failure, failure, (200, GOOD)]
    assert client.decide(CONTEXT).id == "d1"
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in stub.asked}) == 1
    assert len({body for _, _, _, body in stub.asked}) == 1
    assert len(stub.asked) == 3
    assert 0.05 <= waits[0] <= 0.1
    assert 0.1 <= waits[1] <= 0.2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 422, 500, 502])
def test_other_refusals_are_final(service, client, status):
    stub, _ = service
    stub.answers["POST", "/v1/observe"] = (status, {"error": {"code": "x", "message": "y"}})
    with pytest.raises(dc.ServiceError):
        client.observe("d1", 0.0)
    assert len(stub.asked) == 1


def test_retries_end(service, waits):
    stub, url = service
    stub.answers["GET", "/v1/status"] = (503, {"error": {"code": "storage", "message": "full"}})
    with pytest.raises(dc.ServiceError, match="full") as caught:
        Client(url, retries=2).status()
    assert caught.value.status == 503
    assert len(stub.asked) == 3
    assert len(waits) == 2


def test_the_service_may_ask_for_a_longer_wait(service, client, waits):
    stub, _ = service
    later, far = ("Retry-After", "4"), ("Retry-After", "86400")
    stub.answers["GET", "/v1/status"] = [(429, {}, later), (503, {}, far), (200, {})]
    client.status()
    assert waits == [4.0, transport.LONGEST_WAIT]


def test_nobody_there(waits):
    with refused(dc.ServiceError, "failed 4 times", "ConnectionRefusedError") as caught:
        Client("http://127.0.0.1:9").status()
    assert caught.value.status is None
    assert len(waits) == 3


def test_an_answer_that_never_comes_ends_in_time(waits):
    with serving() as (stub, url):
        held = threading.Event()
        stub.answer = lambda *_: (200, {"held": held.wait(10)})
        with refused(dc.ServiceError, "TimeoutError"):
            Client(url, timeout=0.05, retries=1).status()
        held.set()
    assert len(waits) == 1


def test_connections_are_kept(service, client):
    stub, _ = service
    stub.answers["POST", "/v1/decide"] = (200, GOOD)
    for _ in range(5):
        client.decide(CONTEXT)
    assert len(stub.connections) == 1
    client.close()
    client.decide(CONTEXT)
    assert len(stub.connections) == 2


def test_a_kept_connection_that_ends_when_it_is_used_again_costs_no_attempt(service, waits):
    stub, url = service
    stub.answers["POST", "/v1/decide"] = [(200, GOOD), (None, b""), (200, GOOD)]
    with Client(url, "dk_7_secret", retries=0) as client:
        assert [client.decide(CONTEXT).id for _ in range(2)] == ["d1", "d1"]
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in stub.asked[1:]}) == 1
    assert waits == []


def test_many_threads_share_a_client(service, client):
    stub, _ = service
    stub.answers["POST", "/v1/decide"] = (200, GOOD)
    found = []
    work = [threading.Thread(target=lambda: found.append(client.decide(CONTEXT))) for _ in range(8)]
    for each in work:
        each.start()
    for each in work:
        each.join()
    assert found == [Decision("d1", 2, 3, True)] * 8
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in stub.asked}) == 8


def test_a_base_path_is_kept(service):
    stub, url = service
    stub.answers["GET", "/shop/v1/status"] = (200, {})
    assert Client(f"{url}/shop/").status() == {}
    assert "Authorization" not in stub.asked[0][2]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://host",
        "http://",
        "/v1",
        "http://h:x",
        "http://h:99999",
        "http://[::",
    ],
)
def test_an_address_must_be_one(url):
    with refused(dc.InvalidInput, "http://"):
        Client(url)


@pytest.mark.parametrize("key", ["dk_1_secret\n", " dk_1_secret", "dk_1_secreté", ""])
def test_a_key_that_no_header_takes_is_refused_without_showing_it(key):
    with refused(dc.InvalidInput, "API key") as caught:
        Client("http://127.0.0.1:9", key)
    assert "secret" not in str(caught.value)


def test_a_key_is_in_no_error(waits):  # noqa: ARG001
    with pytest.raises(dc.ServiceError) as caught:
        Client("http://127.0.0.1:9", "dk_1_secret").status()
    assert "secret" not in f"{caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize("context", [{"age": float("nan")}, {"age": object()}, [float("inf")]])
def test_what_json_cannot_say_is_refused_here_without_showing_it(service, client, context):
    stub, _ = service
    with refused(dc.InvalidInput) as caught:
        client.decide(context)
    assert "nan" not in str(caught.value)
    assert stub.asked == []
