"""Every endpoint with every kind of key: who may call what is written here once more."""

import re

import pytest

from discreet.service.http.app import make_app
from discreet.service.runtime.service import Service
from discreet.service.storage.api_keys import SCOPES
from service.attack.harness import context, write_settings

NOBODY, EVERYBODY = frozenset(), frozenset(SCOPES)
READERS = {"release:read", "audit"}
ALLOWED = {
    ("POST", "/v1/decide"): {"decide"},
    ("POST", "/v1/observe"): {"observe"},
    ("POST", "/v1/observe:batch"): {"observe"},
    ("POST", "/v1/activate"): {"decide", "observe"},
    ("POST", "/v1/tickets"): {"ticket"},
    ("GET", "/v1/releases"): READERS,
    ("GET", "/v1/releases/{number}"): READERS,
    ("GET", "/v1/lift"): READERS,
    ("GET", "/v1/schema"): EVERYBODY,
    ("GET", "/v1/actions"): EVERYBODY,
    ("POST", "/v1/admin/actions"): NOBODY,
    ("GET", "/v1/ledger"): {"audit"},
    ("GET", "/v1/changes"): {"audit"},
    ("GET", "/v1/status"): EVERYBODY,
    ("POST", "/v1/admin/mode"): NOBODY,
    ("POST", "/v1/admin/serving"): NOBODY,
    ("POST", "/v1/admin/burn"): NOBODY,
    ("POST", "/v1/admin/erase"): NOBODY,
    ("POST", "/v1/admin/keys"): NOBODY,
    ("GET", "/v1/admin/keys"): NOBODY,
    ("POST", "/v1/admin/keys/revoke"): NOBODY,
    ("GET", "/metrics"): {"audit"},
    ("GET", "/internal/metrics"): NOBODY,
    ("GET", "/openapi.json"): EVERYBODY,
    ("POST", "/personalizer/v1.0/rank"): {"decide"},
    ("POST", "/personalizer/v1.0/events/{event:path}/reward"): {"observe"},
    ("POST", "/personalizer/v1.0/events/{event:path}/activate"): {"decide", "observe"},
    ("POST", "/personalizer/{version}/multislot/{rest:path}"): EVERYBODY,
}
"""Beside ``admin``, which may call all of them."""
OPEN = {("GET", "/healthz"), ("GET", "/readyz")}
BODIES = {
    "/v1/decide": {"context": context(1)},
    "/v1/observe": {"decision": "x", "loss": 0.5},
    "/v1/observe:batch": {"observations": [{"decision": "x", "loss": 0.5}]},
    "/v1/activate": {"decision": "x"},
    "/v1/tickets": {},
}
FORGED = "dk_0123456789ab_" + "A" * 43


@pytest.fixture(scope="module")
def served(tmp_path_factory, launcher):
    from service.attack.harness import Place

    place = Place(tmp_path_factory.mktemp("scopes") / "experiment", launcher, first_batch=1024)
    with place.served():
        keys = {
            scope: place.post("/v1/admin/keys", {"scopes": [scope]})[1]["key"] for scope in SCOPES
        }
        yield place, keys


def answered(place, method, path, key):
    """The status; who was refused too often asks again, since that is not what is asked here."""
    path, status = re.sub(r"{\w+(:\w+)?}", "current", path), 429
    while status == 429:
        if method == "GET":
            status = place.get(path, key=key)[0]
        else:
            status = place.post(path, BODIES.get(path, {"nonsense": 1}), key=key)[0]
    return status


def test_every_route_is_judged_here(tmp_path):
    app = make_app(Service(begun(tmp_path)))
    found = set()
    for route in app.routes:
        if not route.path.startswith("/ui"):  # people log in there, with their own tests
            found |= {(method, route.path) for method in route.methods - {"HEAD"}}
    assert found == set(ALLOWED) | OPEN | {("GET", "/")}  # which leads to the dashboard


def begun(folder):
    from discreet.service.runtime import lifecycle

    settings = write_settings(folder)
    lifecycle.begin(settings)
    return settings


@pytest.mark.parametrize(("method", "path"), ALLOWED)
def test_a_key_opens_the_routes_of_its_scopes_only(served, method, path):
    place, keys = served
    for scope, key in keys.items():
        permitted = scope in ALLOWED[method, path] | {"admin"}
        status = answered(place, method, path, key)
        assert (status not in (401, 403)) == permitted, (scope, status)
        assert permitted or status == 403
    for bad in (None, "", "nonsense", FORGED, keys["decide"][:-1], keys["decide"] + "A"):
        assert answered(place, method, path, bad) == 401, bad


def test_a_revoked_key_opens_nothing(served):
    place, _ = served
    made = place.post("/v1/admin/keys", {"scopes": list(SCOPES)})[1]
    assert answered(place, "GET", "/v1/status", made["key"]) == 200
    place.post("/v1/admin/keys/revoke", {"id": made["id"]})
    for method, path in ALLOWED:
        assert answered(place, method, path, made["key"]) == 401


@pytest.mark.parametrize(("method", "path"), sorted(OPEN))
def test_health_needs_no_key(served, method, path):
    assert answered(served[0], method, path, None) == 200


def test_releases_can_be_public(place_on_sqlite):
    place = place_on_sqlite(public_releases=True)
    with place.served():
        for method, path in ALLOWED:
            expected = 200 if path.startswith("/v1/releases") else 401
            if path == "/v1/lift":  # open too, and there is none
                expected = 404
            assert answered(place, method, path, None) == expected, path


def test_an_unprotected_route_is_noticed(place_on_sqlite):
    place = place_on_sqlite()
    with place.served(sabotage="open_doors"):
        key = place.post("/v1/admin/keys", {"scopes": ["decide"]})[1]["key"]
        served = (place, {"decide": key})
        with pytest.raises(AssertionError):
            test_a_key_opens_the_routes_of_its_scopes_only(served, "GET", "/v1/ledger")
