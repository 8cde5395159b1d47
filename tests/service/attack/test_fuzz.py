"""Generated requests and a list of malformed ones: no 5xx, nothing invalid accepted."""

import json
import math
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from service.attack.harness import Place, context

QUIET = {
    "database": None,
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": list(HealthCheck),
}
DEEP = b"[" * 100_000
MALFORMED = [
    b"", b" ", b"{", b"}", b"[]", b"null", b"true", b"0", b'""', b'"x"', b"{}", b"{'context': {}}",
    b"\xff", b"\xef\xbb\xbf{}", b"{}\x00", b"{}{}", b'{"context"}', b'{"context":}', b"NaN",
    b'{"a": NaN}', b"-Infinity", b"1e400", b'{"context": {"n": NaN, "device": "phone"}}',
    b'{"context": {"n": Infinity, "device": "phone"}}',
    b'{"context": {"n": 1e400, "device": "phone"}}',
    b'{"context": {"n": -1e400, "device": "phone"}}',
    b'{"context": {"n": "1", "device": "phone"}}',
    b'{"context": {"n": true, "device": "phone"}}',
    b'{"context": {"n": null, "device": "phone"}}',
    b'{"context": {"n": [1], "device": "phone"}}',
    b'{"context": {"n": -1, "device": "phone"}}',
    b'{"context": {"n": 1000001, "device": "phone"}}',
    b'{"context": {"n": 1, "device": 1}}', b'{"context": {"n": 1, "device": null}}',
    b'{"context": {"n": 1, "device": ["phone"]}}', b'{"context": {"n": 1}}',
    b'{"context": {"device": "phone"}}', b'{"context": {"n": 1, "device": "phone", "more": 0}}',
    b'{"context": {"n": 1, "device": "\xff"}}', b'{"context": {"n": 1, "device": "\\ud800"}}',
    b'{"context": {"n": 01, "device": "phone"}}', b'{"context": {"n": +1, "device": "phone"}}',
    b'{"context": {"n": .5, "device": "phone"}}', b'{"context": {"n": 1., "device": "phone"}}',
    b'{"context": {"n": 0x1, "device": "phone"}}', b'{"context": {"N": 1, "device": "phone"}}',
    b'{"context": [1, "phone"]}', b'{"context": "n"}', b'{"context": null}', b'{"context": 1}',
    b'{"context": {"n": 1, "device": "phone"}, "user": "u"}',
    b'{"context": {"n": 1, "device": "phone"}, "user": 7}',
    b'{"context": {"n": 1, "device": "phone"}, "deferred": 1}',
    b'{"context": {"n": 1, "device": "phone"}, "deferred": "yes"}',
    b'{"context": {"n": 1, "device": "phone"}, "action": 1}',
    b'{"context": {"n": 1, "device": "phone"}, }', b'{"context": {"n": 1, "device": "phone"}} x',
    b'{"context": {"n": 1, "device": "phone"}', DEEP, b'{"context": ' + DEEP,
    b'{"context": {"n": ' + b"9" * 5000 + b', "device": "phone"}}', b'{"x": "' + b"y" * 300_000,
    b'{"decision": "x", "loss": 2}', b'{"decision": "x", "loss": -0.001}',
    b'{"decision": "x", "loss": "0.5"}', b'{"decision": "x", "loss": true}',
    b'{"decision": "x", "loss": null}', b'{"decision": "x", "loss": NaN}', b'{"loss": 0.5}',
    b'{"decision": 1, "loss": 0.5}', b'{"decision": "x"}', b'{"decision": "x", "loss": 1e400}',
    b'{"decision": "", "loss": 0.5}', b'{"decision": "\xc3\xa9", "loss": 0.5}',
    b'{"decision": "AAAA", "loss": 0.5}', b'{"decision": "=====", "loss": 0.5}',
    b'{"observations": {}}', b'{"observations": []}', b'{"observations": [1]}',
    b'{"observations": [{"decision": "x", "loss": 2}]}', b'{"mode": "on"}', b'{"mode": 1}',
    b'{"share": 2}', b'{"share": "1"}', b'{"release": -1}', b'{"release": 1e3}',
    b'{"release": 99999999999999999999}', b'{"release": true}', b'{"batch": "1"}',
    b'{"batch": 1.5}', b'{"batch": 99999999999999999999}', b'{"batch": -1}', b'{"scopes": []}',
    b'{"scopes": ["all"]}', b'{"scopes": "admin"}', b'{"id": "\x00"}',
    b'{"id": 1}', b'{"id": "nobody"}',
]  # fmt: skip

NUMBERS = ("-1", "x", "99999999999999999999", "%00", "1e3", "%F0%9F%92%A9", "..", "1/2")
WRONG_PATHS = ["/v2/decide", "/v1/decide/", "/v1", *(f"/v1/releases/{each}" for each in NUMBERS)]


@pytest.fixture(scope="module")
def served(tmp_path_factory, launcher):
    place = Place(tmp_path_factory.mktemp("fuzz") / "experiment", launcher, first_batch=2**20)
    with place.served():
        yield place


def posts(document):
    return [path for path, methods in document["paths"].items() if "post" in methods]


def judge(document, method, path, body, status, content):
    """What must hold of every answer."""
    assert status < 500, (method, path, content)
    if status != 200:
        error = json.loads(content)["error"]
        assert set(error) <= {"code", "message", "field"}
        assert error["code"]
        assert error["message"]
    reported = document["paths"].get(path, {}).get(method.lower(), {}).get("responses", {})
    assert not reported or str(status) in reported or status in (400, 405), (
        f"{status} is not documented"
    )
    if status == 200 and path == "/v1/decide":
        assert proper_context(json.loads(body)["context"]), "an invalid context was accepted"
    if status == 200 and path == "/v1/observe":
        loss = json.loads(body)["loss"]
        assert not isinstance(loss, bool)
        assert 0 <= loss <= 1


def proper_context(given):
    """The rules of the schema, once more and by other means."""
    number = given["n"]
    return (
        set(given) == {"n", "device"}
        and isinstance(given["device"], str)
        and isinstance(number, (int, float))
        and not isinstance(number, bool)
        and math.isfinite(number)
        and 0 <= number <= 1_000_000
    )


def generated(place, document, count):
    """Requests from the OpenAPI document, half of them meant to be wrong."""
    import requests
    import schemathesis
    from jsonschema_rs import validator_for

    schema = schemathesis.openapi.from_dict(document)
    schema.config.generation.update(with_security_parameters=False)
    operations = [result.ok() for result in schema.get_all_operations()]
    modes = list(schemathesis.GenerationMode)
    each = max(1, count // (len(operations) * len(modes)))
    seen, session = Counter(), requests.Session()
    session.headers["Authorization"] = f"Bearer {place.admin}"
    for operation in operations:
        takes_body = bool(list(operation.body))
        checker = validator_for(bundled(document, operation.path)) if takes_body else None
        for mode in modes:
            if mode == schemathesis.GenerationMode.NEGATIVE and not takes_body:
                continue  # a number in the address is all there is to be wrong

            @settings(max_examples=each, **QUIET)
            @given(case=operation.as_strategy(generation_mode=mode))
            def send(case):
                given = case.as_transport_kwargs(base_url=f"http://127.0.0.1:{place.port}")
                answer = session.request(**given, timeout=60)
                path = operation.path  # noqa: B023
                sent = answer.request.body or b""
                judge(document, case.method, path, sent, answer.status_code, answer.content)
                if answer.status_code == 200 and checker is not None:  # noqa: B023
                    assert checker.is_valid(json.loads(sent)), "an invalid body was accepted"  # noqa: B023
                seen[answer.status_code] += 1

            send()
    return seen


def bundled(document, path):
    """The schema of a body with all that it refers to."""
    shape = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return {**shape, "components": document["components"]}


ODD = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=5,
)


@some.composite
def nearly(draw):
    """A proper request to decide or observe in which one place is something odd."""
    decide = {"context": context(draw(some.integers(0, 999)))}
    observe = {"decision": draw(some.text(max_size=60)), "loss": draw(some.floats(0, 1))}
    path, body = draw(some.sampled_from([("/v1/decide", decide), ("/v1/observe", observe)]))
    target = body
    if path == "/v1/decide" and draw(some.booleans()):
        target = body["context"]
    name = draw(some.sampled_from([*target, "more", "user", "deferred"]))
    if draw(some.booleans()):
        target[name] = draw(ODD)
    else:
        target.pop(name, None)
    return path, json.dumps(body).encode()


def odd_values(place, document, count):
    seen = Counter()

    @settings(max_examples=count, **QUIET)
    @given(nearly())
    def send(made):
        path, body = made
        status, content = place.call("POST", path, body, raw=True)
        judge(document, "POST", path, body, status, content)
        seen[status] += 1

    send()
    return seen


def test_generated_requests(served):
    document = served.get("/openapi.json")[1]
    seen = generated(served, document, 500) + odd_values(served, document, 250)
    assert seen.total() >= 500
    assert seen[200] > 10
    assert seen[422] > 50


@pytest.mark.long
def test_20_000_generated_requests(served):
    document = served.get("/openapi.json")[1]
    seen = generated(served, document, 20_000) + odd_values(served, document, 10_000)
    assert seen.total() >= 20_000


def test_malformed_bodies(served):
    document = served.get("/openapi.json")[1]
    for path in posts(document):
        for body in MALFORMED:
            status, content = served.call("POST", path, body, raw=True)
            judge(document, "POST", path, body, status, content)
            if path != "/v1/tickets" or body != b"{}":
                assert 400 <= status < 500 or path == "/v1/observe:batch", (path, body[:80], status)
    kind = {"Content-Type": "text/plain"}
    assert served.call("POST", "/v1/decide", b"{}", kind)[0] == 415
    for method in ("PUT", "DELETE", "PATCH"):
        assert served.call(method, "/v1/decide", b"{}")[0] == 405
    for path in WRONG_PATHS:
        status, content = served.call("GET", path, raw=True)
        assert status in (404, 405), path
        assert json.loads(content)["error"]["code"]


def test_a_lax_service_is_noticed(place_on_sqlite):
    place = place_on_sqlite()
    with place.served(sabotage="lax_parsing"):
        document = place.get("/openapi.json")[1]
        with pytest.raises(AssertionError):
            odd_values(place, document, 500)
