"""``discreet simulate-traffic`` against a real service, and its arithmetic against known plays."""

import json
import socket
import threading
from collections import Counter

import numpy as np
import pytest

import discreet as dc
from discreet.cli.main import main
from discreet.client import Client, Decision
from discreet.data import load
from discreet.data.dataset import Dataset
from discreet.errors import ServiceError
from discreet.lab.traffic import Habits, contexts, play, summary
from discreet.plan.config import to_config
from discreet.service.settings import Settings
from service.conftest import dump
from waiting import PATIENCE, until

BALL = {"n_actions": 3, "features": {"kind": "UnitBall", "dimension": 3}}
FIELDS = [
    {"kind": "Number", "name": "hour", "low": "0", "high": "24", "clip": False},
    {"kind": "Category", "name": "device", "values": ["phone", "tablet", "desk"], "other": False},
]
WORDS = {"n_actions": 3, "features": {"kind": "Schema", "fields": FIELDS}}


@pytest.fixture
def traffic(capsys):
    """Exit code and JSON answer of the command."""

    def call(running, key, *arguments):
        url = f"http://127.0.0.1:{running.port}"
        given = ["simulate-traffic", "--url", url, "--key", key, "--json", *arguments]
        return main(given), json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def two_columns(tmp_path):
    """A file of 120 rows with two columns and three classes, which a service here can take."""
    data = load("linear", rows=120)
    path = tmp_path / "play.npz"
    np.savez(path, X=data.contexts[:, :2], y=data.labels)
    return str(path)


@pytest.fixture
def all_late(monkeypatch):
    """``all_late(running)``: no answer is sent before the window of the first batch is over."""

    def make(running):
        honest, once, over = Client.observe, threading.Lock(), []

        def observe(*given, **reported):
            with once:
                if not over:
                    settings = Settings.read(running.folder / "experiment.toml")
                    until(lambda: dump(settings)["batches"][0][4] == "sealed")
                    running.windows_end()
                    over.append(True)
            return honest(*given, **reported)

        monkeypatch.setattr(Client, "observe", observe)

    return make


def test_a_report_has_the_figures_of_its_play(written, server, traffic, two_columns, all_late):
    folder, key = written()
    running = server(folder)
    all_late(running)
    code, reported = traffic(
        running, key, "--data", two_columns, "--rate", "200", "--missing", "0.02",
        "--duplicates", "0.5", "--late", "0.9", "--late-by", "0.1",
    )  # fmt: skip
    assert (code, reported["errors"]) == (0, 0)
    assert reported["decided"] == reported["rows"] == 120
    assert reported["answers"]["decide"] == {"200": 120}
    draws = np.random.default_rng(0).random((120, 3))
    assert (
        0 < reported["missing"] == (draws[:, 0] < 0.02).sum() < 4
    )  # one of the first batch answers
    received = reported["answers"]["observe"]
    assert set(received) == {"200", "410 over"}
    doubled = (draws[:, 0] >= 0.02) & (draws[:, 2] < 0.5)
    assert sum(received.values()) == 120 - reported["missing"] + doubled.sum()
    assert 0 < reported["stored"] < 120, "while a batch waits nothing is stored"
    assert 0 <= reported["loss"] <= 1
    assert reported["loss"] == pytest.approx(
        sum(part["loss"] * part["decisions"] for part in reported["loss_over_time"]) / 120
    )
    assert reported["seconds"] >= 119 / 200
    for times in reported["latency_ms"].values():
        assert 0 < times["p50"] <= times["p90"] <= times["p99"] <= times["max"]


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--late", "1.5"], "late"),
        (["--rate", "0"], "rate"),
        (["--rows", "121"], "rows"),
        (["--url", "localhost"], "url"),
    ],
)
def test_what_cannot_be_played_is_refused(flags, word, two_columns, capsys):
    given = ["simulate-traffic", "--url", "http://127.0.0.1:9", "--data", two_columns, *flags]
    assert main(given) == 2
    assert word in capsys.readouterr().err


def test_columns_become_the_fields_of_a_schema():
    values = np.array([[0.0, 1.0], [5.0, 2.0], [10.0, 3.0]])
    data = Dataset("three", values, np.array([0, 1, 2]), 3)
    assert contexts(data, WORDS) == [
        {"hour": 0.0, "device": "phone"},
        {"hour": 12.0, "device": "tablet"},
        {"hour": 24.0, "device": "desk"},
    ]
    same = Dataset("same", np.ones((3, 2)), np.array([0, 1, 2]), 3)
    assert {row["hour"] for row in contexts(same, WORDS)} == {0.0}


def test_every_kind_of_field_gets_values_that_it_takes():
    fields = [dc.Number("n", 1, 9, log=True), dc.Flag("f"), dc.Category("c", [1, 2])]
    schema = dc.Schema([*fields, dc.Hashed("h", 4), dc.Date("t")])
    data = Dataset("many", np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 3, 3)
    rows = contexts(data, {"n_actions": 3, "features": to_config(schema)})
    assert len(np.unique(schema.map(rows), axis=0)) > 20
    assert {row["f"] for row in rows} == {True, False}


class Slow:
    """A service that answers when so many requests have arrived ``together``."""

    def __init__(self, refuses=(), together=None):
        self.refuses, self.together, self.losses = refuses, together, []

    def decide(self, context, user=None):  # noqa: ARG002
        if self.together:
            self.together.wait(PATIENCE)
        if context in self.refuses:
            raise ServiceError("no", status=503, code="storage_unavailable")
        return Decision(str(context), context % 2, 7, True)

    def observe(self, decision, loss):
        self.losses.append((int(decision.id), loss))


def test_requests_leave_on_time_however_slow_the_answers():
    slow = Slow(together=threading.Barrier(20))  # a closed loop would send no second request
    played = play(slow, list(range(20)), [0] * 20, rate=100, habits=Habits())
    assert played.answers["decide"] == {"200": 20}
    assert sorted(slow.losses) == [(row, float(row % 2)) for row in range(20)]


def test_losses_duplicates_and_failures_are_counted():
    slow, habits = Slow(refuses=(3,)), Habits(duplicates=1.0)
    reported = summary(play(slow, list(range(6)), [1] * 6, rate=500, habits=habits))
    assert Counter(row for row, _ in slow.losses) == dict.fromkeys((0, 1, 2, 4, 5), 2)
    assert reported["answers"]["decide"] == {"200": 5, "503 storage_unavailable": 1}
    assert (reported["errors"], reported["decided"], reported["stored"]) == (1, 5, 5)
    assert reported["loss"] == pytest.approx(3 / 5)  # rows 0, 2 and 4 are not their label


def test_a_connection_that_the_service_closed_costs_no_request():
    """Services close kept connections after a while; with no second attempts that must not show."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        closed = threading.Semaphore(0)

        def answer_once_each():
            for _ in range(3):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                closed.release()

        served = threading.Thread(target=answer_once_each, daemon=True)
        served.start()
        with Client(f"http://127.0.0.1:{listening.getsockname()[1]}", retries=0) as client:
            for _ in range(3):
                assert client.status() == {}
                assert closed.acquire(timeout=PATIENCE)
        served.join(PATIENCE)
