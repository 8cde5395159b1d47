"""``discreet serve --init``, ``keys`` and ``restore`` as a newcomer types them."""

import json

import pytest

from discreet.cli import main
from discreet.service.opening import begin
from discreet.service.settings import Settings


def run(capsys, *words):
    code = main(list(words))
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_three_commands_reach_a_first_decision(here, capsys, server):
    code, out, _ = run(capsys, "serve", "--init", "--json")
    assert code == 0
    key = json.loads(out)["admin_key"]
    running = server(here)
    body = {"context": {"hour": 9, "device": "phone"}}
    status, answer, _ = running.call("POST", "/v1/decide", body, key)
    assert (status, answer["stored"], answer["release"]) == (200, True, 0)
    for bad, field in (
        ({"hour": 25, "device": "phone"}, "context.hour"),
        ({"hour": "9", "device": "phone"}, "context.hour"),
        ({"hour": 9}, "context.device"),
        ({"hour": 9, "device": 3}, "context.device"),
        ({"hour": 9, "device": "phone", "day": 2}, "context"),
    ):
        status, answer, _ = running.call("POST", "/v1/decide", {"context": bad}, key)
        assert (status, answer["error"]["field"]) == (422, field)


def test_init_writes_what_only_the_owner_may_read(here, capsys):
    assert run(capsys, "serve", "--init")[0] == 0
    assert (here / "discreet.db").stat().st_mode & 0o077 == 0
    assert (here / "vault").stat().st_mode & 0o077 == 0
    code, _, told = run(capsys, "serve", "--init")
    assert code == 2
    assert "must be empty for a new experiment" in told


def test_init_begins_the_experiment_of_a_file_that_is_there(here, capsys):
    run(capsys, "serve", "--init")
    text = (here / "experiment.toml").read_text().replace('"welcome"', '"other"')
    (here / "second.toml").write_text(
        text.replace('"discreet.db"', '"second.db"').replace('"vault" ', '"second" ')
    )
    code, out, _ = run(capsys, "serve", "--init", "--config", "second.toml")
    assert code == 0
    assert "read second.toml: experiment 'other' has begun" in out


def test_keys_are_created_listed_and_revoked(here, capsys):
    run(capsys, "serve", "--init")
    code, out, _ = run(capsys, "keys", "create", "--scope", "decide", "--label", "shop", "--json")
    made = json.loads(out)
    assert code == 0
    assert made["key"].startswith(f"dk_{made['id']}_")
    assert made["key"].split("_", 2)[2].encode() not in (here / "discreet.db").read_bytes()
    code, out, _ = run(capsys, "keys", "revoke", made["id"])
    assert code == 0
    _, out, _ = run(capsys, "keys", "list", "--json")
    listed = {each["label"]: each for each in json.loads(out)["keys"]}
    assert listed["shop"]["revoked"]
    assert listed["first key"]["scopes"] == ["admin"]
    assert "hash" not in listed["shop"]
    code, _, told = run(capsys, "keys", "create", "--scope", "decde")
    assert (code, "Did you mean 'decide'?" in told) == (2, True)
    code, _, told = run(capsys, "keys", "revoke", "nobody")
    assert (code, "discreet keys list" in told) == (2, True)


def test_restore_begins_a_new_epoch(here, capsys):
    run(capsys, "serve", "--init")
    code, out, _ = run(capsys, "restore")
    assert (code, out) == (0, "a new epoch has begun\n")
    assert "epoch" in (here / "vault" / "anchor.jsonl").read_text().splitlines()[-1]


def test_a_database_behind_its_anchor_is_refused_in_one_line(here, capsys):
    run(capsys, "serve", "--init")
    line = '{"epoch": 1, "number": 7, "digest": "later"}\n'
    with open(here / "vault" / "anchor.jsonl", "a") as file:
        file.write(line)
    code, _, told = run(capsys, "serve")
    assert code == 2
    assert told.count("\n") == 1
    assert "run discreet restore" in told


def test_a_missing_file_says_how_to_make_one(here, capsys):  # noqa: ARG001
    code, _, told = run(capsys, "serve")
    assert (code, "discreet serve --init" in told) == (2, True)


def test_begin_returns_a_key_once(here):
    from discreet.service.example import EXAMPLE

    (here / "experiment.toml").write_text(EXAMPLE)
    assert begin(Settings.read(here / "experiment.toml")).startswith("dk_")


@pytest.mark.parametrize("path", ["", "/", "/v1/ledger"])
def test_the_ledger_of_a_service_is_verified(written, server, path, monkeypatch, capsys):
    folder, key = written()
    running = server(folder)
    monkeypatch.setenv("DISCREET_API_KEY", key)
    assert main(["ledger", "verify", f"http://127.0.0.1:{running.port}{path}"]) == 0
    assert "valid: the ledger says the same" in capsys.readouterr().out
