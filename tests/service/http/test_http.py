"""The service over HTTP, in a process of its own."""

import asyncio
import json
import time
from contextlib import closing

import pytest

from discreet import Budget, Category, Date, Flag, Hashed, Number, Plan, Schema
from discreet.service import access, logs
from discreet.service.access import PER_SECOND
from discreet.service.http.bodies import Bodies
from discreet.service.http.handlers import ExperimentHandlers
from discreet.service.http.routes import experiment_routes, openapi_document
from discreet.service.metrics import on_this_machine
from discreet.service.runtime.service import Service
from discreet.service.settings import Settings
from discreet.service.storage.locations import open_database
from service.dashboard.visitor import Visitor
from waiting import until

HERE = {"context": [0.3, -0.2]}


def new_key(running, admin, *scopes):
    status, made, _ = running.call("POST", "/v1/admin/keys", {"scopes": list(scopes)}, admin)
    assert status == 200
    return made["key"]


class Stopped:
    """A clock that runs only as a test says."""

    now, time = 0.0, time.time

    def monotonic(self):
        return self.now


class InProcess:
    """A service in this process, without a socket; ``call`` is that of ``Server``."""

    def __init__(self, settings):
        self.settings = settings
        self._runner = asyncio.Runner()
        self._service = Service(settings)
        self._runner.run(self._service.start(upkeep=False))
        self._visitor = Visitor(self._service)

    def call(self, method, path, body=None, key=None, headers=()):
        given = {"content-type": "application/json", **dict(headers)}
        if key:
            given["authorization"] = f"Bearer {key}"
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given["content-length"] = str(len(content or b""))
        reply = self._runner.run(self._visitor.ask(method, path, content=content, **given))
        reported = reply.headers.get("content-type") == "application/json"
        return reply.status, json.loads(reply.text) if reported else reply.text, reply.headers

    def looks(self):
        """At what another process wrote."""
        self._runner.run(self._service.state.refresh())

    def stop(self):
        service, self._service = self._service, None
        if service is not None:
            self._runner.run(service.stop())
            self._runner.close()


@pytest.fixture
def limited(written, monkeypatch):
    """``limited(rate_limit=…)``: a service, its admin key, and the clock of its limits."""
    clock, started = Stopped(), []
    for module in (access, logs):
        monkeypatch.setattr(module, "time", clock)

    def start(**changes):
        folder, key = written(**changes)
        started.append(InProcess(Settings.read(folder / "experiment.toml")))
        return started[-1], key, clock

    yield start
    for each in started:
        each.stop()


def decided(running, key, **headers):
    status, answer, _ = running.call("POST", "/v1/decide", HERE, key, headers)
    assert status == 200
    return answer


def test_replies_do_not_depend_on_earlier_records(limited):
    people = {"unit": "user", "batches_per_user": 1, "records_per_batch": 1}
    running, key, _ = limited(**people, waiting="pipeline")

    def post(path, **body):
        status, answer, headers = running.call("POST", f"/v1/{path}", body, key)
        shape = {name: len(str(value)) for name, value in answer.items() if name != "action"}
        kept = {name: text for name, text in headers.items() if name not in ("date",)}
        return status, answer, (shape, kept if path != "decide" else sorted(kept))

    first, again, other = (post("decide", user=name, **HERE) for name in ("ann", "ann", "bob"))
    assert first[0] == 200
    assert (first[1]["stored"], first[2]) == (True, again[2])
    assert again[2] == other[2]
    received = [post("observe", decision=each[1]["decision"], loss=0.5) for each in (first, again)]
    assert received[0] == received[1]
    tickets = [post("tickets", user=name) for name in ("ann", "cid")]
    assert tickets[0][2] == tickets[1][2]
    assert tickets[0][1]["stored"] is True
    erased = [post("admin/erase", user=name)[:2] for name in ("ann", "nobody")]
    assert erased == [(200, {"erased": True})] * 2
    for path, body in (("decide", HERE), ("decide", HERE | {"user": ""}), ("tickets", {})):
        status, answer, _ = post(path, **body)
        assert (status, answer["error"]["field"]) == (422, "user"), answer


def test_from_the_first_decision_to_the_first_release(written, server):
    folder, key = written()
    running = server(folder)
    with pytest.raises(AssertionError, match="must be served by one process"):
        server(folder)
    first = [decided(running, key) for _ in range(4)]
    assert [each["stored"] for each in first] == [True] * 4
    for each in first:
        body = {"decision": each["decision"], "loss": 0.5}
        assert running.call("POST", "/v1/observe", body, key)[:2] == (200, {"stored": True})
    body = {"decision": first[0]["decision"], "loss": 0.75}
    status, answer, _ = running.call("POST", "/v1/observe", body, key)
    assert (status, answer["error"]["code"]) == (409, "conflict")
    running.windows_end()
    until(lambda: running.call("GET", "/v1/releases", key=key)[1]["current"])
    status, answer, _ = running.call("POST", "/v1/observe", body, key)
    assert (status, answer["error"]["code"]) == (410, "over")
    assert decided(running, key)["release"] == 1
    status, document, headers = running.call("GET", "/v1/releases/current", key=key)
    assert (status, document["number"], document["kind"]) == (200, 1, "release")
    listed = running.call("GET", "/v1/releases", key=key)[1]["releases"]
    assert headers["etag"] == f'"{listed[1]["digest"]}"'
    assert running.call("GET", "/v1/ledger", key=key)[1]["spent"]["unit"] == "decision"
    code, _, reported = running.stop()
    assert code == 0
    # Before the log: where it listens, and that its anchor lies beside its database.
    lines = reported.splitlines()
    assert [line[0] == "{" for line in lines] == [False, False, True, True, True, True]
    events = [json.loads(line) for line in lines[2:]]
    assert [each["event"] for each in events] == ["started", "release begun", "released", "stopped"]
    assert {each["experiment"] for each in events} == {"test"}


WRONG = ("", "Bearer", "Bearer dk_000000000000_" + "A" * 43, "Basic eDp5", "Bearer dk_x_y")


@pytest.mark.parametrize("limit", [10_000, 0])
def test_a_wrong_key_is_refused(limited, capsys, limit):
    """And answered seldom, also where valid keys have no limit."""
    running, key, _ = limited(rate_limit=limit)
    for given in (*WRONG, f"Bearer {key[:-1]}", f"Bearer {key}x", f"Basic {key}", "Bearer \xe9"):
        headers = {"Authorization": given}
        assert running.call("POST", "/v1/decide", HERE, headers=headers)[0] == 401, given
    headers = {"Authorization": f"bearer {key}"}
    assert running.call("POST", "/v1/decide", HERE, headers=headers)[0] == 200
    forwarded = {"X-Forwarded-For": "203.0.113.7"}
    wrong = [running.call("POST", "/v1/decide", HERE, headers=forwarded)[0] for _ in range(60)]
    assert wrong == [401] * PER_SECOND + [429] * (60 - PER_SECOND)
    assert running.call("POST", "/v1/decide", HERE, key, forwarded)[0] == 200  # a valid key
    other = {"X-Forwarded-For": "203.0.113.8"}
    assert running.call("POST", "/v1/decide", HERE, headers=other)[0] == 401
    running.stop()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line[0] == "{"]
    refused = [each for each in lines if each["event"] == "authentication refused"]
    assert sum(each.get("count", 1) for each in refused) == 9 + 60 + 1
    assert len(refused) == 2  # at once, and how many more
    assert not any("203.0.113" in json.dumps(each) for each in lines)


def test_a_key_has_an_expiry_a_rate_and_a_last_use(limited):
    running, admin, _ = limited()

    def make(**words):
        return running.call("POST", "/v1/admin/keys", {"scopes": ["decide"]} | words, admin)

    status, made, _ = make(expires_in="2h", rate=2)
    assert (status, made["rate"], made["used"]) == (200, 2, None)
    codes = [running.call("POST", "/v1/decide", HERE, made["key"])[0] for _ in range(5)]
    assert codes == [200] * 2 + [429] * 3
    answers = new_key(running, admin, "observe")
    running.call("POST", "/v1/observe", {"decision": "x", "loss": 0.5}, answers)
    listed = running.call("GET", "/v1/admin/keys", key=admin)[1]["keys"]
    used = {each["id"]: each["used"] for each in listed}
    assert -60 < time.time() - used[made["id"]] < 3660
    assert used[made["id"]] % 3600 == 0
    assert used[answers.split("_")[1]] is None  # it would tell whether somebody answered
    with closing(open_database(running.settings).connect()) as connection:
        ends = "UPDATE keys SET expires = expires - 7200 WHERE expires IS NOT NULL"
        connection.execute(ends)
    running.looks()
    assert running.call("POST", "/v1/decide", HERE, made["key"])[0] == 401
    for wrong in ({"expires_in": "soon"}, {"expires_in": 5}, {"rate": 0}, {"rate": "2"}):
        assert make(**wrong)[0] == 422, wrong
    assert running.call("GET", "/")[2]["location"] == "/ui"


BAD = [
    b'{"context": [0.1]}',
    b'{"context": ["0.1", 0.2]}',
    b'{"context": [true, 0.2]}',
    b'{"context": [1e400, 0.2]}',
    b'{"context": [[0.1], 0.2]}',
    b'{"context": {"a": 1}}',
    b'{"context": [0.1, 0.2], "user": "ann"}',
]
"""Contexts that are no vector of the unit ball. [attack/test_fuzz.py has other malformed bodies]"""


def test_bad_bodies_are_refused_to_their_sender(limited):
    running, key, _ = limited(window=60)
    for body in BAD:
        status, answer, _ = running.call("POST", "/v1/decide", body, key)
        assert status == 422, body[:60]
        assert answer["error"]["code"] == "invalid"
    too_long = {"Idempotency-Key": "k" * 256}
    assert running.call("POST", "/v1/decide", HERE, key, too_long)[0] == 422
    assert running.call("GET", "/v1/status", key=key)[1]["batches"] == []  # no slot was taken
    requested = [
        {"decision": decided(running, key)["decision"], "loss": 0.5},
        {"decision": "forged", "loss": 0.5},
    ]
    requested.insert(1, requested[0] | {"loss": 0.25})
    _, answer, _ = running.call("POST", "/v1/observe:batch", {"observations": requested}, key)
    assert [each["status"] for each in answer["results"]] == [200, 409, 404]
    assert answer["results"][0] == {"status": 200, "stored": True}
    many = {"observations": requested * 334}
    assert running.call("POST", "/v1/observe:batch", many, key)[0] == 422


def test_limits_of_body_kind_and_rate(limited):
    running, key, clock = limited(body_limit=2048, rate_limit=5)
    statuses = [running.call("GET", "/v1/status", key=key)[0] for _ in range(12)]
    assert statuses == [200] * 5 + [429] * 7
    clock.now += 0.4  # as many as the rate says
    statuses = [running.call("GET", "/v1/status", key=key)[0] for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert running.call("POST", "/v1/decide", b" " * 3000, key)[0] == 413
    wrong = {"Content-Type": "text/plain"}
    assert running.call("POST", "/v1/decide", HERE, key, wrong)[0] == 415
    status, answer, _ = running.call("PUT", "/v1/decide", HERE, key)
    assert (status, answer["error"]["code"]) == (405, "method_not_allowed")
    status, answer, headers = running.call("GET", "/nowhere")
    assert (status, answer["error"]["code"]) == (404, "not_found")
    assert "default-src 'none'" in headers["content-security-policy"]


ANSWERS = ("/v1/observe", "/v1/observe:batch", "/v1/activate")
SLOTS = ("/v1/decide", "/v1/tickets")
FEW = 3
"""Requests per second."""


def emptied(running, key, path, method="POST"):
    """Ask until the bucket of a path is empty."""
    for _ in range(FEW + 1):
        status = running.call(method, path, b"{}" if method == "POST" else None, key)[0]
    assert status == 429


def test_answers_do_not_use_the_rate_of_decisions(limited):
    """Each kind of request has a bucket of its own, and health has none."""
    running, key, clock = limited(rate_limit=FEW)
    kinds = [*((path, "POST") for path in (*ANSWERS, *SLOTS)), ("/v1/status", "GET")]
    for path, method in kinds:
        clock.now += 1.0  # all buckets are full
        emptied(running, key, path, method)
        requested = {each: running.call(how, each, b"{}" if how == "POST" else None, key)[0]
                 for each, how in kinds}  # fmt: skip
        refused = {each for each, status in requested.items() if status == 429}
        assert refused == (set(ANSWERS) if path in ANSWERS else {path})
    for path in ("/healthz", "/readyz"):
        assert [running.call("GET", path)[0] for _ in range(9 * FEW)] == [200] * 9 * FEW


@pytest.mark.parametrize("origins", [[], ["https://shop.example"]])
def test_other_origins_are_allowed_by_name_alone(limited, origins):
    running, key, _ = limited(cors_origins=origins)
    requested = {"Origin": "https://shop.example"}
    allowed = running.call("GET", "/v1/status", key=key, headers=requested)[2]
    assert ("access-control-allow-origin" in allowed) == bool(origins)
    other = running.call("GET", "/v1/status", key=key, headers={"Origin": "https://e.example"})[2]
    assert "access-control-allow-origin" not in other


def test_idempotency_keys_and_public_releases(limited):
    running, key, _ = limited(window=60, public_releases=True)
    name = {"Idempotency-Key": "order-17"}
    assert decided(running, key, **name) == decided(running, key, **name)
    status, document, headers = running.call("GET", "/v1/releases/0")
    assert (status, document["kind"]) == (200, "genesis")
    assert "immutable" in headers["cache-control"]
    for path in ("9", "-1", "x", "0x1", "1e3", "99999999999999999999"):
        assert running.call("GET", f"/v1/releases/{path}")[0] == 404
    assert running.call("GET", "/v1/status")[0] == 401


def test_metrics_do_not_depend_on_answers(limited):
    running, key, _ = limited(window=60, internal_metrics=True)

    def public():
        text = running.call("GET", "/metrics", key=key)[1]
        return {
            line
            for line in text.splitlines()
            if "observe" in line or "activate" in line or not line.startswith("discreet_request")
        }

    decisions = [decided(running, key) for _ in range(4)]
    public()
    before = public()
    for each in decisions[:3]:
        running.call("POST", "/v1/observe", {"decision": each["decision"], "loss": 0.5}, key)
    running.call("POST", "/v1/observe", {"decision": decisions[0]["decision"], "loss": 1}, key)
    running.call("POST", "/v1/observe", {"decision": decisions[0]["decision"], "loss": 1})
    assert public() == before
    assert any("discreet_slots_issued 4.0" in line for line in before)
    internal = running.call("GET", "/internal/metrics", key=key)[1]
    assert 'route="/v1/observe",status="409"' in internal


@pytest.mark.parametrize(("unit", "listed"), [("decision", False), ("user", True)])
def test_the_openapi_document_has_the_fields_of_the_schema_and_none_that_is_refused(unit, listed):
    columns = [
        Number("age", 0, 120),
        Number("paid", 0, 9, clip=True, indicator=True),
        Category("device", ["phone", "desk"]),
        Category("stars", [1, 2], other=True),
        Flag("member", stand_in=False),
        Hashed("town", 8),
        Date("at"),
    ]
    plan = Plan(n_actions=2, features=Schema(columns), budget=Budget(1.0, 1e-6), unit=unit)
    routes = experiment_routes(Bodies(plan), ExperimentHandlers(None, None))
    shapes = openapi_document(routes, "test")["components"]["schemas"]
    context = shapes["Decide"]["properties"]["context"]
    assert context["additionalProperties"] is False
    assert [*context["properties"]] == [column.name for column in columns]
    assert context["required"] == ["age", "device", "stars", "town", "at"]
    assert context["properties"]["age"] == {"type": "number", "minimum": 0, "maximum": 120}
    assert context["properties"]["device"] == {"enum": ["phone", "desk"]}
    assert context["properties"]["stars"] == {"type": "integer"}
    assert {"type": "null"} in context["properties"]["paid"]["anyOf"]
    for name in ("Decide", "Ticket"):
        assert ("user" in shapes[name]["properties"]) is listed
        assert ("user" in shapes[name]["required"]) is listed
        assert "x-" not in json.dumps(shapes[name])


def test_what_counts_as_this_machine():
    assert all(map(on_this_machine, ("127.0.0.1", "::1")))
    assert not any(map(on_this_machine, ("10.0.0.1", "", "unknown")))
