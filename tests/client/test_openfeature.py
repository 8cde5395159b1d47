"""The OpenFeature provider: the published scenarios, one slot per person and release, events."""

import asyncio
import json
import logging
import threading
from functools import partial
from pathlib import Path

import pytest
from openfeature import api
from openfeature.evaluation_context import EvaluationContext
from openfeature.event import ProviderEvent
from openfeature.exception import ErrorCode, ProviderFatalError, ProviderNotReadyError
from openfeature.flag_evaluation import Reason
from openfeature.track import TrackingEventDetails

import discreet as dc
from discreet.client import Client, openfeature_provider
from discreet.client.openfeature_provider import DiscreetProvider
from waiting import PATIENCE, until
from wording import refused

ExperimentFlag = partial(openfeature_provider.ExperimentFlag, deadline=PATIENCE)
"""A flag that waits for a machine that pauses."""
SCENARIOS = json.loads(
    (Path(__file__).parents[2] / "clients/js/openfeature_scenarios.json").read_text()
)
ANN = EvaluationContext("ann", {"age": 29, "customer": False, "email": "ann@example.org"})
FIELDS = [{"kind": "Number", "name": "age"}, {"kind": "Flag", "name": "customer"}]


class Experiment:
    """What a stub of a service says; tests change its attributes."""

    def __init__(self, stub, actions):
        self.actions, self.release, self.unit, self.word = actions, 1, "decision", "Loss"
        self.features, self.failure, self.stub = {"fields": FIELDS}, {}, stub
        self.decided, self.url = 0, stub.url
        stub.answer = self.answer

    def answer(self, _method, path):
        name = path.rpartition("/")[2]
        if name in self.failure:
            return self.failure[name]
        if name == "decide":
            self.decided += 1
            made = {"decision": f"d{self.decided}", "action": self.actions[0]}
            return 200, made | {"release": self.release, "stored": True}
        outcome = {"kind": self.word}
        shape = {"features": self.features, "n_actions": len(self.actions), "outcome": outcome}
        known = {
            "status": {"serving": self.release, "unit": self.unit},
            "schema": shape | {"actions": self.actions if self.actions[0] != 0 else None},
            "observe": {"stored": True},
        }
        return 200, known[name]

    def sent(self, name):
        """Bodies and headers of the requests of a kind."""
        return [
            (json.loads(body), headers)
            for _, path, headers, body in self.stub.asked
            if path.endswith(name)
        ]


@pytest.fixture
def service(stub):
    return Experiment(stub, ["mail", "call"])


@pytest.fixture
def opened():
    """``opened(flags)``: a client of OpenFeature whose provider has them."""

    def start(flags, wait=True, **options):
        provider = DiscreetProvider(flags, **options)
        try:
            (api.set_provider_and_wait if wait else api.set_provider)(provider)
        finally:
            start.provider = provider
        return api.get_client()

    yield start
    api.clear_providers()


def details(client, kind, *given):
    return getattr(client, f"get_{kind}_details")(*given)


def values(row):
    return {row["variant"]: row["value"], **row["others"]}


@pytest.mark.parametrize("row", SCENARIOS["static"], ids=lambda row: row["type"])
def test_scenario_resolves_a_value_with_details(opened, row):
    flag = ExperimentFlag("http://127.0.0.1:9", values=values(row), fixed=row["variant"])
    client = opened({row["flag"]: flag})
    found = details(client, row["type"], row["flag"], row["default"])
    assert (found.value, found.variant) == (row["value"], row["variant"])
    assert (found.reason, found.error_code) == (Reason.STATIC, None)
    assert getattr(client, f"get_{row['type']}_value")(row["flag"], row["default"]) == row["value"]


@pytest.mark.parametrize("row", SCENARIOS["static"], ids=lambda row: row["type"])
def test_scenario_resolves_what_an_experiment_decides(service, opened, row):
    service.actions = [row["variant"], *row["others"]]
    client = opened({row["flag"]: ExperimentFlag(service.url, values=values(row))})
    found = details(client, row["type"], row["flag"], row["default"], ANN)
    assert (found.value, found.variant) == (row["value"], row["variant"])
    assert found.reason == Reason.SPLIT
    assert found.flag_metadata == {"release": 1, "stored": True}
    method = getattr(client, f"get_{row['type']}_details_async")
    again = asyncio.run(method(row["flag"], row["default"], ANN))
    assert (again.value, again.reason) == (row["value"], Reason.CACHED)


def test_scenario_context_and_flag_not_found(service, opened):
    row = SCENARIOS["missing"]
    client = opened({})
    assert client.provider.get_metadata().name == "discreet"
    found = client.get_string_details(row["flag"], row["default"])
    assert (found.value, found.reason) == (row["default"], Reason.ERROR)
    assert found.error_code == ErrorCode[row["code"]]
    row = SCENARIOS["context"]
    service.actions = [row["variant"], *row["others"]]
    client = opened({row["flag"]: ExperimentFlag(service.url, values=values(row))})
    given = EvaluationContext("sulisław", row["attributes"])
    assert client.get_string_value(row["flag"], row["default"], given) == row["value"]
    found = client.get_string_details(row["flag"], row["default"], EvaluationContext())
    assert (found.value, found.reason) == (row["default"], Reason.ERROR)
    assert found.error_code == ErrorCode.TARGETING_KEY_MISSING


def test_scenario_type_mismatch_takes_no_slot(service, opened):
    row = SCENARIOS["mismatch"]
    service.actions = [row["variant"], *row["others"]]
    flag = ExperimentFlag(service.url, values=values(row))
    found = opened({row["flag"]: flag}).get_integer_details(row["flag"], row["default"], ANN)
    assert (found.value, found.reason) == (row["default"], Reason.ERROR)
    assert found.error_code == ErrorCode[row["code"]]
    assert service.decided == 0
    for kind, value in (("boolean", 1), ("integer", True), ("float", "1"), ("object", "x")):
        flag = ExperimentFlag("http://127.0.0.1:9", values={"a": value}, fixed="a")
        found = details(opened({"flag": flag}), kind, "flag", None)
        assert found.error_code == ErrorCode.TYPE_MISMATCH


def test_one_request_per_person_and_release(service, opened):
    client = opened({"flag": ExperimentFlag(service.url)}, refresh=0.0)
    for _ in range(5):
        assert client.get_string_value("flag", "?", ANN) == "mail"
    assert service.decided == 1
    client.get_string_value("flag", "?", EvaluationContext("bob", ANN.attributes))
    assert service.decided == 2
    service.release = 2
    until(lambda: client.get_string_details("flag", "?", ANN).flag_metadata["release"] == 2)
    until(lambda: client.get_string_details("flag", "?", ANN).reason == Reason.CACHED)
    assert service.decided == 3
    names = [headers["Idempotency-Key"] for _, headers in service.sent("decide")]
    assert len(set(names)) == 3
    assert "ann" not in str(names)
    assert names[0].startswith("732a6faa")  # as in JavaScript: they may share an experiment


def test_whoever_counts_already_is_shown_the_same_and_counts_no_more(service, opened):
    used = (409, {"error": {"code": "idempotency_key_used", "message": "over"}})
    good = (200, {"decision": "d", "action": "call", "release": 1, "stored": True})
    answers = [used, good]
    answer = service.answer
    service.stub.answer = lambda m, p: answers.pop(0) if p.endswith("decide") else answer(m, p)
    client = opened({"flag": ExperimentFlag(service.url)})
    found = client.get_string_details("flag", "?", ANN)
    assert (found.value, found.flag_metadata["stored"]) == ("call", False)
    (first, _), (second, headers) = service.sent("decide")
    assert second == first | {"deferred": True}
    client.track("flag", ANN, TrackingEventDetails(1.0))
    opened.provider.shutdown()
    assert service.sent("observe") == []
    assert headers["Idempotency-Key"]


def test_only_what_the_experiment_needs_is_sent_under_one_name(service, opened):
    vector = EvaluationContext("ann", {"features": [0.5, 0.25], "age": 3})
    for given in (ANN, ANN, vector):
        client = opened({"flag": ExperimentFlag(service.url)})  # a process of the application
        client.get_string_value("flag", "?", given)
        service.unit = "user"
        if len(service.sent("decide")) == 2:  # no names: contexts and actions are numbers
            service.features, service.actions = {"kind": "UnitBall", "dimension": 2}, [0, 1]
    found = client.get_integer_details("flag", 7, vector)
    assert (found.value, found.variant) == (0, "0")
    assert isinstance(client.get_float_value("flag", 7.0, vector), float)
    bodies = [body for body, _ in service.sent("decide")]
    context = {"age": 29, "customer": False}
    assert bodies == [
        {"context": context, "sticky": "ann"},
        {"context": context, "sticky": "ann", "user": "ann"},
        {"context": [0.5, 0.25], "sticky": "ann", "user": "ann"},
    ]
    assert len({headers["Idempotency-Key"] for _, headers in service.sent("decide")}) == 1


@pytest.mark.parametrize(
    ("word", "details", "sent"),
    [
        ("Loss", TrackingEventDetails(0.25), {"loss": 0.25}),
        ("Reward", TrackingEventDetails(12.5), {"reward": 12.5}),
        ("Reward", TrackingEventDetails(99.0, {"reward": 3}), {"reward": 3}),
    ],
)
def test_track_reports_the_outcome_of_the_last_decision(service, opened, word, details, sent):
    service.word = word
    client = opened({"flag": ExperimentFlag(service.url, event="purchase")})
    client.track("purchase", ANN, details)  # before any decision
    client.get_string_value("flag", "?", ANN)
    client.track("flag", ANN, details)  # not its event
    client.track("purchase", EvaluationContext(), details)
    client.track("purchase", ANN)
    client.track("purchase", ANN, TrackingEventDetails())
    client.track("purchase", ANN, details)
    opened.provider.shutdown()
    assert [body for body, _ in service.sent("observe")] == [{"decision": "d1", **sent}]
    client.track("purchase", ANN, details)  # after the end: nothing happens


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (
            (422, {"error": {"code": "i", "message": "age: got 29", "field": "age"}}),
            "INVALID_CONTEXT",
        ),
        ((401, {"error": {"code": "no_key", "message": "x"}}), "GENERAL"),
        ((500, {}), "GENERAL"),
        ((200, b"<html>"), "PARSE_ERROR"),
        ((200, {}), "PARSE_ERROR"),
    ],
)
def test_failures_have_their_code_and_the_callers_value(service, opened, failure, code):
    client = opened({"flag": ExperimentFlag(service.url)})
    service.failure["decide"] = failure
    found = client.get_string_details("flag", "default", ANN)
    assert (found.value, found.error_code) == ("default", ErrorCode[code])
    assert "29" not in found.error_message
    given = EvaluationContext("bob", {"age": float("nan")})  # JSON cannot say it
    found = client.get_string_details("flag", "default", given)
    assert found.error_code == ErrorCode.INVALID_CONTEXT


def test_a_silent_service_costs_at_most_the_deadline(service, opened):
    client = opened({"flag": ExperimentFlag(service.url)})
    decisions = client.provider._flags["flag"]
    decisions.client = Client(service.url, deadline=0.1)
    held = threading.Event()
    service.stub.answer = lambda *_: (200, {"answer": held.wait(PATIENCE)})
    assert client.get_string_details("flag", "default", ANN).error_code == ErrorCode.GENERAL
    held.set()  # an answer before this would have been read, and is a PARSE_ERROR


def test_events_and_remembered_decisions_while_the_service_is_away(service, opened):
    events = []
    handlers = {each: lambda _, each=each: events.append(each.name) for each in ProviderEvent}
    for event, handler in handlers.items():
        api.add_handler(event, handler)
    # Shorter than a service that is busy asks to wait.
    client = opened({"flag": ExperimentFlag(service.url, deadline=8.0)}, refresh=0.0)

    def after(event):
        client.get_string_details("flag", "?", ANN)
        return event in events

    until(lambda: after("PROVIDER_READY"))
    busy = (503, {}, ("Retry-After", "9"))
    service.failure = dict.fromkeys(("status", "decide"), busy)
    until(lambda: after("PROVIDER_STALE"))
    assert client.get_string_details("flag", "?", ANN).reason == Reason.CACHED
    events.clear()
    service.failure = {"decide": busy}
    service.release = 2
    until(lambda: after("PROVIDER_CONFIGURATION_CHANGED"))
    assert "PROVIDER_READY" in events
    found = client.get_string_details("flag", "?", ANN)
    assert (found.value, found.reason) == ("mail", Reason.STALE)
    service.failure = {"status": (401, {})}
    until(lambda: after("PROVIDER_ERROR"))


def test_a_service_that_is_away_at_the_start_is_found_later(service, opened):
    flags = {"flag": ExperimentFlag(service.url, "dk_1_secret")}
    assert "secret" not in repr(flags)
    service.failure["status"] = (401, {"error": {"code": "no_key", "message": "no"}})
    with pytest.raises(ProviderFatalError):
        opened(flags)
    service.failure["status"] = (500, {})
    with pytest.raises(ProviderNotReadyError):
        opened(flags)
    found = api.get_client().get_string_details("flag", "default", ANN)
    assert (found.value, found.error_code) == ("default", ErrorCode.PROVIDER_NOT_READY)
    service.failure.clear()
    opened.provider._flags["flag"].refreshed = -10.0
    until(lambda: api.get_client().get_string_value("flag", "default", ANN) == "mail")


def test_every_action_needs_a_value(service, opened):
    with pytest.raises(ProviderFatalError) as caught:
        opened({"flag": ExperimentFlag(service.url, values={"mail": 1})})
    assert "mail, call" in caught.value.error_message
    with refused(dc.InvalidInput, "fixed"):
        ExperimentFlag(service.url, values={"mail": 1}, fixed="cal")


def test_whoever_asked_longest_ago_is_forgotten(service, opened, monkeypatch):
    monkeypatch.setattr(openfeature_provider, "REMEMBERED", 2)
    client = opened({"flag": ExperimentFlag(service.url)})
    for name in ("a", "b", "c", "c", "b", "a"):
        client.get_string_value("flag", "?", EvaluationContext(name, {"age": 3}))
    assert service.decided == 4


def test_outcomes_that_fail_are_counted_without_what_was_said(service, opened, caplog):
    client = opened({"flag": ExperimentFlag(service.url)})
    client.get_string_value("flag", "?", ANN)
    refusal = {"error": {"code": "invalid", "message": "loss must be below 1; got 77"}}
    service.failure["observe"] = (422, refusal)
    with caplog.at_level(logging.WARNING, "discreet.openfeature"):
        client.track("flag", ANN, TrackingEventDetails(77.0))
        client.track("flag", ANN, TrackingEventDetails(float("nan")))
        opened.provider.shutdown()
    assert len(caplog.records) == 2
    assert "77" not in caplog.text
    assert "ann" not in caplog.text
