"""``discreet serve --folder`` and ``discreet experiment`` as programs."""

import json
import signal
import time

import pytest

from discreet.cli.main import main
from discreet.client import Client
from discreet.service.settings import Settings
from service.conftest import toml
from service.hosting import Folder
from waiting import until

BODY = {"context": [0.1, 0.2]}


def decide(running, name, key):
    return running.call("POST", f"/v1/experiments/{name}/decide", BODY, key)


def command(capsys, *words):
    """What a command answers in JSON."""
    code = main([*words, "--json"])
    reported = json.loads(capsys.readouterr().out)
    assert (code == 0) != ("error" in reported), reported
    return reported


def test_commands_reach_a_running_server(tmp_path, server, capsys):
    place = tmp_path / "server"
    key = command(capsys, "serve", "--folder", str(place), "--init")["server_key"]
    assert "must be new" in command(capsys, "serve", "--folder", str(place), "--init")["error"]
    place.joinpath("server.toml").write_text(f'anchors = "{tmp_path}/anchors"\n')
    running = server(tmp_path, "--folder", str(place))
    assert running.call("GET", "/v1/experiments", key=key)[1] == {"experiments": [], "archived": []}
    (tmp_path / "file.toml").write_text(toml(window=60))

    def experiment(*words):
        return command(capsys, "experiment", *words, "--folder", str(place))

    made = {}
    for name in ("a", "b"):
        reported = experiment("new", name, "--from", str(tmp_path / "file.toml"))
        assert reported["anchor"] == str(tmp_path / "anchors" / name / "anchor.jsonl")
        made[name] = reported["admin_key"]
    until(lambda: decide(running, "b", made["b"])[0] == 200)
    with Client(f"http://127.0.0.1:{running.port}/v1/experiments/a", made["a"]) as client:
        decision = client.decide(BODY["context"])
        client.observe(decision, 0.5)
        assert (decision.stored, client.status()["experiment"]) == (True, "a")
    experiment("pause", "a")
    until(lambda: not decide(running, "a", made["a"])[1]["stored"])
    experiment("resume", "a")
    until(lambda: decide(running, "a", made["a"])[1]["stored"])
    experiment("end", "a")
    assert "must stay 'ended'" in experiment("resume", "a")["error"]
    assert "under way" in experiment("archive", "a")["error"]
    assert experiment("archive", "a", "--burn")["place"] == str(place / "archive/a")
    assert decide(running, "a", made["a"])[0] == 410
    assert decide(running, "b", made["b"])[1]["stored"]
    reported = experiment("list")
    assert [(each["name"], each["mode"]) for each in reported["experiments"]] == [("b", "online")]
    assert reported["archived"] == ["a"]
    with pytest.raises(AssertionError, match="must be served by one server"):
        server(tmp_path, "--folder", str(place))
    code, _, reported = running.stop()
    assert code == 0
    events = [json.loads(line)["event"] for line in reported.splitlines() if line.startswith("{")]
    assert events.count("started") == events.count("stopped") == 2


def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path, server):
    folder = Folder(tmp_path / "server")
    running = server(tmp_path, "--folder", str(folder.path))
    kept = [
        (name, decide(running, name, folder.keys[name])[1]["decision"])
        for name in ("a", "b", "a", "b", "b")
    ]
    running.stop(signal.SIGKILL)
    running = server(tmp_path, "--folder", str(folder.path))
    for name, decision in kept:
        body = {"decision": decision, "loss": 0.5}
        path = f"/v1/experiments/{name}/observe"
        assert running.call("POST", path, body, folder.keys[name])[:2] == (200, {"stored": True})
    listed = running.call("GET", "/v1/experiments", key=folder.key)[1]["experiments"]
    assert [each["under_way"] for each in listed] == [1, 1]


def test_workers_share_all_experiments(tmp_path, server, postgres):
    name = f"w-{time.time_ns():x}"
    folder = Folder(tmp_path / "server", [f"{name}-a", f"{name}-b"], database=postgres)
    running = server(tmp_path, "--folder", str(folder.path), "--workers", "2")
    decided = [decide(running, each, key) for each, key in folder.keys.items() for _ in range(8)]
    assert all(each[1]["stored"] for each in decided)
    assert len({each[1]["decision"] for each in decided}) == 16
    reported = running.call("GET", "/metrics", key=folder.key)[1].decode()
    for each in folder.keys:
        assert f'count{{experiment="{each}",route="/v1/decide"}} 8.0' in reported
    path = f"/v1/admin/experiments/{name}-a/archive"
    assert running.call("POST", path, {"burn": True}, folder.key)[0] == 200
    until(lambda: decide(running, f"{name}-a", folder.keys[f"{name}-a"])[0] == 410)
    assert decide(running, f"{name}-b", folder.keys[f"{name}-b"])[1]["stored"]
    assert running.stop()[0] == 0
    settings = Settings.read(folder.path / f"archive/{name}-a/experiment.toml")
    assert settings.postgres
    assert settings.database.endswith(f"{name.replace('-', '_')}_a")


def test_sqlite_has_one_worker(tmp_path, server):
    folder = Folder(tmp_path / "server", [])
    with pytest.raises(AssertionError, match="workers must be 1 with SQLite"):
        server(tmp_path, "--folder", str(folder.path), "--workers", "2")
