"""Log lines: events of the catalogue, ids of keys, and repeated failures as a count."""

import json
import logging
import re
from pathlib import Path

import pytest

from discreet.service import logs
from discreet.service.access import ANSWER
from discreet.service.http.bodies import Bodies
from discreet.service.http.handlers import ExperimentHandlers
from discreet.service.http.routes import experiment_routes
from discreet.service.logs import EVENTS, Log, ServerMessages
from discreet.service.metrics import Metrics, text_of
from service.dashboard.visitor import Visitor

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/logs.md").read_text()


def lines_of(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_the_page_lists_every_event_with_its_fields_and_no_other():
    rows = re.findall(r"^\| `([^`]+)` \|([^|]*)\|", PAGE, re.MULTILINE)
    reported = {event: tuple(re.findall(r"`(\w+)`", fields)) for event, fields in rows}
    assert reported == EVENTS


def test_the_code_emits_every_event_and_no_other():
    source = "".join(path.read_text() for path in (ROOT / "src/discreet/service").rglob("*.py"))
    emitted = set(re.findall(r'\.(?:event|failure)\(\s*"([^"]+)"', source))
    assert emitted == set(EVENTS)


def test_a_line_has_only_the_fields_of_its_event(capsys):
    log = Log("test")
    with pytest.raises(TypeError, match="no field"):
        log.event("stopped", kind="x")
    with pytest.raises(KeyError):
        log.event("observed")
    log.event("mode changed", mode="frozen", by="me")
    (line,) = lines_of(capsys)
    assert set(line) == {"time", "event", "experiment", "worker", "mode", "by"}
    assert line["experiment"] == "test"


def test_equal_failures_are_counted_and_not_repeated(capsys, monkeypatch):
    log = Log("test")
    for number in range(5):
        log.failure("request failed", request=f"{number}", kind="A", route="/v1/decide", status=503)
    log.failure("upkeep failed", kind="A")
    first, other = lines_of(capsys)
    assert (first["request"], "count" in first, other["event"]) == ("0", False, "upkeep failed")
    log.write_counts()  # the minute is not over
    assert lines_of(capsys) == []
    monkeypatch.setattr(logs, "PERIOD", 0.0)
    log.write_counts()
    (counted,) = lines_of(capsys)
    assert (counted["count"], counted["route"], "request" in counted) == (4, "/v1/decide", False)
    log.write_counts(all=True)
    assert lines_of(capsys) == []


@pytest.mark.parametrize("route", logs.UNCOUNTED)
def test_failures_of_answers_have_no_number(capsys, route):
    log = Log("test")
    for _ in range(3):
        log.failure("request failed", kind="A", route=route, status=503)
    log.write_counts(all=True)
    assert [line.get("count") for line in lines_of(capsys)] == [None, None]


def test_messages_of_uvicorn_are_logged_without_their_text(capsys):
    logger = logging.getLogger("uvicorn.error")
    before = logger.handlers, logger.propagate, logger.level
    logger.setLevel(logging.NOTSET)  # a server that ran in this process may have set one
    try:
        ServerMessages(Log("test")).install()
        logger.warning("secret words")
        try:
            raise ValueError("secret words")
        except ValueError:
            logger.exception("more secret words")
    finally:
        logger.handlers, logger.propagate = before[:2]
        logger.setLevel(before[2])
    reported = lines_of(capsys)
    assert [line["event"] for line in reported] == ["server trouble"] * 2
    assert reported[1]["kind"] == "ValueError"
    assert "secret" not in json.dumps(reported)


@pytest.fixture
def database():
    return "discreet.db"


def test_operations_are_logged_with_their_key(settings, play, capsys):
    async def scenario(service):
        await service.set_mode("shadow", "me")
        made = await service.create_key(["decide"], "a shop", by="me")
        await service.revoke_key(made["id"], "me")
        await service.set_serving(0, "me")
        await service.decisions.decide("caller", [0.1, 0.2], user="somebody")
        await service.burn(1, "me")
        await service.erase("somebody", "me")
        return made["id"]

    people = {"unit": "user", "batches_per_user": 2, "records_per_batch": 1}
    key = play(settings(window=60, **people), scenario)
    reported = lines_of(capsys)
    assert [line["event"] for line in reported] == [
        "started",
        "mode changed",
        "key created",
        "key revoked",
        "served document changed",
        "batch burned",
        "user erased",
        "stopped",
    ]
    assert all(line["by"] == "me" for line in reported[1:-1])
    assert reported[2]["key"] == reported[3]["key"] == key
    assert "somebody" not in json.dumps(reported)
    assert "shop" not in json.dumps(reported)


def test_a_storage_fault_is_logged_by_its_safe_name(settings, play, capsys):
    async def scenario(service):
        service.state.writer.fault = "SQLITE_FULL"
        await service.upkeep.watch()
        assert not service.state.unready  # it tried, and could write after all
        service.state._unread = "SQLITE_IOERR"
        await service.upkeep.watch()
        assert (await service.status())["unready"] == {"database": "SQLITE_IOERR"}
        await service.upkeep.watch()
        await service.state.refresh()
        await service.upkeep.watch()

    play(settings(window=60), scenario)
    reported = [line for line in lines_of(capsys) if "ready" in line["event"]]
    assert [(line["event"], line.get("reasons"), line.get("kind")) for line in reported] == [
        ("not ready", ["database"], "SQLITE_IOERR"),
        ("ready", None, None),
    ]


def test_requests_that_report_losses_are_not_counted(settings):
    """Every route whose requests are answers: how many came tells who answered."""
    answers = {
        each.path
        for each in experiment_routes(Bodies(settings().plan), ExperimentHandlers(None, None))
        if each.bucket == ANSWER
    }
    assert answers == {"/v1/observe", "/v1/observe:batch", "/v1/activate"}
    metrics = Metrics(internal=True)
    for path in (*answers, "/v1/decide"):
        for status in (200, 410, 503):
            metrics.count(path, status, 0.1)
    reported = text_of(metrics._own(internal=False)).decode()
    assert "/v1/decide" in reported
    assert not [path for path in answers if path in reported]
    assert all(path in metrics.internal("127.0.0.1").decode() for path in answers)


SECRET = "loss 0.731 of ann@example.org"


def test_the_text_of_an_error_is_not_logged(settings, play, capsys, monkeypatch):
    """It may quote a request; its kind cannot."""
    chosen = settings()

    class Mishap(Exception):  # noqa: N818
        pass

    async def fails(*_, **__):
        raise Mishap(SECRET)

    async def scenario(service):
        visitor = Visitor(service)
        assert (await visitor.log_in(settings.key())).status == 303
        monkeypatch.setattr(service.decisions, "decide", fails)
        monkeypatch.setattr(service, "status", fails)
        requested = {"context": [0.1, 0.2]}
        bearer = {"authorization": f"Bearer {settings.key()}"}
        replies = [
            await visitor.ask("POST", "/v1/decide", raw=requested, **bearer),
            await visitor.get("/v1/status", **bearer),
            await visitor.get("/ui"),
        ]
        assert [each.status for each in replies] == [500] * 3
        await service.upkeep._tried(fails)
        return "".join(each.text for each in replies)

    reported = play(chosen, scenario)
    log = capsys.readouterr().err
    assert log.count('"kind": "Mishap"') == 4  # two routes, a page, the upkeep
    assert "0.731" not in reported + log
    assert "ann@" not in reported + log
