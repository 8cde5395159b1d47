"""Many experiments in one process: each has its own keys, chain and state."""

import asyncio
import json
import re
import subprocess
from contextlib import closing
from html import unescape

import pytest

from discreet.errors import InvalidInput, StateClaimed
from discreet.service.dashboard.experiment_summary import summary
from discreet.service.dashboard.page_routes import PAGES
from discreet.service.http.bodies import Bodies
from discreet.service.http.handlers import ExperimentHandlers
from discreet.service.http.routes import PUBLIC, experiment_routes
from discreet.service.runtime import hosted_experiments, upkeep
from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.settings import ServerSettings, Settings
from discreet.service.storage import api_keys
from discreet.service.storage.locations import anchor_of, open_database
from service.conftest import toml
from service.hosting import Folder, host, hosting
from waiting import PATIENCE


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "server")


def rows_of(settings, table):
    with closing(open_database(settings).connect()) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_each_stores_its_own(folder):
    async def scenario(asking, hosted):
        for path in ("decide", "v1/decide"):
            status, reported = await asking.decide("a", folder.keys["a"], path)
            assert (status, reported["stored"]) == (200, True)
        body = {"decision": reported["decision"], "loss": 0.5}
        for name, expected in (("b", 404), ("a", 200)):  # an id is of one experiment
            path = f"/v1/experiments/{name}/observe"
            assert (await asking.call("POST", path, folder.keys[name], body))[0] == expected
        return [hosted.served[name].service.settings for name in ("a", "b")]

    first, second = host(folder, scenario)
    assert (rows_of(first, "records"), rows_of(second, "records")) == (2, 0)
    assert first.place("vault") != second.place("vault")
    assert anchor_of(first).path != anchor_of(second).path


async def test_a_key_opens_no_other_experiment_and_not_the_server(folder):
    async with hosting(folder) as (asking, hosted):
        plan = hosted.served["a"].service.settings.plan
        for route in experiment_routes(Bodies(plan), ExperimentHandlers(None, None)):
            path = route.path.replace("{number}", "0")
            # Both are accepted at home first, where headers that were accepted are remembered.
            for name in ("a", "b"):
                home = f"/v1/experiments/{name}{path}"
                status, _ = await asking.call(route.method, home, folder.keys[name], {})
                assert status not in (401, 403), path
            for key in (folder.keys["a"], folder.key):
                status, _ = await asking.call(route.method, f"/v1/experiments/b{path}", key, {})
                assert status == (200 if route.scopes == PUBLIC else 401), path
        for method, path in (
            ("GET", "/v1/experiments"),
            ("POST", "/v1/admin/experiments"),
            *(("POST", f"/v1/admin/experiments/a/{word}") for word in ("pause", "resume", "end")),
            ("POST", "/v1/admin/experiments/a/archive"),
            ("GET", "/metrics"),
            ("GET", "/openapi.json"),
        ):
            for key in (folder.keys["a"], None):
                assert (await asking.call(method, path, key, {}))[0] == 401, path
        assert (await asking.call("GET", "/v1/experiments", folder.key))[0] == 200


async def test_a_session_opens_no_other_experiment_and_not_the_server(folder):
    async with hosting(folder) as (asking, hosted):
        at_a = "/v1/experiments/a/ui"
        await asking.get(f"{at_a}/login")
        reply = await asking.send(f"{at_a}/login", key=folder.keys["a"])
        assert (reply.status, reply.headers["location"]) == (303, at_a)
        assert "Path=/v1/experiments/a/ui" in reply.headers["set-cookie"]
        assert '<a href="/ui">all experiments</a>' in (await asking.get(at_a)).text
        assert (await asking.get(at_a)).status == 200
        for path, _, scopes, methods in PAGES:
            if scopes is not None and "GET" in methods:
                path = path.replace("{number:int}", "0")
                reply = await asking.get(f"/v1/experiments/b{path}")
                assert reply.headers.get("location") == "/v1/experiments/b/ui/login", path
        assert (await asking.get("/ui")).headers["location"] == "/ui/login"
        reply = await asking.send("/ui/change", name="a", what="pause")
        assert reply.headers["location"] == "/ui/login"
        assert hosted.served["a"].service.state.mode == "online"


async def test_paths_without_a_name_are_those_of_the_only_one(tmp_path):
    folder = Folder(tmp_path / "server", ["a"])
    async with hosting(folder) as (asking, hosted):
        key, body = folder.keys["a"], {"context": [0.1, 0.2]}
        assert (await asking.call("POST", "/v1/decide", key, body))[0] == 200
        folder.add("b")
        await hosted.look()
        status, reported = await asking.call("POST", "/v1/decide", key, body)
        assert (status, reported["error"]["code"]) == (404, "unknown_experiment")
        assert (await asking.decide("c", key))[0] == 404


def test_pause_resume_end_and_archive_touch_one(folder):
    async def scenario(asking, _):
        async def stored(name):
            return (await asking.decide(name, folder.keys[name]))[1]["stored"]

        async def change(what, body=None):
            path = f"/v1/admin/experiments/a/{what}"
            return await asking.call("POST", path, folder.key, body)

        assert await stored("a")
        for what, state, takes in (
            ("pause", "paused", False),
            ("resume", "running", True),
            ("end", "ended", False),
        ):
            status, reported = await change(what)
            assert (status, reported["state"]) == (200, state)
            assert (await stored("a"), await stored("b")) == (takes, True), what
        assert (await change("resume"))[0] == 422  # the end is for good
        status, reported = await change("archive", {})
        assert (status, "burn" in reported["error"]["message"]) == (422, True)
        status, reported = await change("archive", {"burn": True})
        assert (status, reported["archived"]) == (200, "archive/a")
        assert (await asking.decide("a", folder.keys["a"]))[0] == 410
        assert await stored("b")

    host(folder, scenario)
    gone = Settings.read(folder.path / "archive/a/experiment.toml")
    assert [rows_of(gone, table) for table in ("records", "answers", "names")] == [0, 0, 0]
    assert not list(gone.place("vault").glob("batch-*")) + list(gone.place("vault").glob("names-*"))
    assert rows_of(gone, "documents") == 2  # the burn is in the chain
    with pytest.raises(InvalidInput, match="name must be new"):
        folder.held.new("a")
    assert folder.held.adopt(folder.path / "archive/a") == "a"  # back again, still ended

    async def again(asking, _):
        assert (await asking.decide("a", folder.keys["a"]))[1]["stored"] is False

    host(folder, again)


async def test_an_archive_waits_for_the_servers(folder):
    async with hosting(folder) as (asking, _):
        await asking.decide("a", folder.keys["a"])
        with pytest.raises(StateClaimed, match="must not be served"):
            folder.held.archive("a", burn=True, patience=0.0)
        assert (await asking.decide("b", folder.keys["b"]))[1]["stored"]
    assert folder.held.names() == ["a", "b"]


async def test_created_over_http_and_served_at_once(folder):
    async with hosting(folder) as (asking, _):
        text = folder.file("a", "experiment.toml").read_text()
        path, requested = "/v1/admin/experiments", {"name": "c", "toml": text}
        status, made = await asking.call("POST", path, folder.key, requested)
        assert (status, made["path"]) == (200, "/v1/experiments/c")
        assert (await asking.decide("c", made["admin_key"]))[1]["stored"]
        assert (await asking.call("POST", path, folder.key, requested))[0] == 422
        for stated in (
            'vault = "/tmp/x"\n',
            'database = "postgresql://elsewhere"\n',
            'anchor = "/etc/x"\n',
            'plan.prior = "/etc/passwd"\n',
        ):
            sent = {"name": "d", "toml": stated + text.replace("[plan]", "[other]")}
            status, reported = await asking.call("POST", path, folder.key, sent)
            assert (status, "must be left out" in reported["error"]["message"]) == (422, True), (
                stated
            )
        for name in ("../x", "A", "x_y", "-x", "", "x" * 49):
            assert (await asking.call("POST", path, folder.key, {"name": name}))[0] == 422
        assert not folder.file("d").exists()


async def test_one_child_fits_for_all(tmp_path, monkeypatch):
    folder = Folder(tmp_path / "server", [])
    for name in ("a", "b"):
        folder.add(name, window=0.1)
    started, honest = [], subprocess.Popen

    def counted(*arguments, **options):
        started.append(honest(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(hosted_experiments, "SHARE", 0.0)
    monkeypatch.setattr(subprocess, "Popen", counted)
    async with hosting(folder) as (asking, hosted):
        for name, key in folder.keys.items():
            for _ in range(4):  # the whole first batch
                assert (await asking.decide(name, key))[1]["stored"]
        states = [each.service.state for each in hosted.served.values()]
        async with asyncio.timeout(PATIENCE):
            while any(state.serving.newest == 0 for state in states):
                await asyncio.sleep(0.05)
        assert len({state.serving.chain.links[1].digest for state in states}) == 2
        reported = (await asking.call("GET", "/metrics", folder.key))[1]
        for name in folder.keys:
            assert f'discreet_release{{experiment="{name}"}} 1.0' in reported
            assert f'count{{experiment="{name}",route="/v1/decide"}} 4.0' in reported
        reported = (await asking.call("GET", "/v1/experiments/a/metrics", folder.keys["a"]))[1]
        assert 'experiment="a"' in reported
        assert 'experiment="b"' not in reported
    assert len(started) == 1
    assert started[0].poll() is not None  # it ended with the server


async def test_one_that_is_broken_stops_no_other(folder, capsys, monkeypatch):
    monkeypatch.setattr(hosted_experiments, "AGAIN", 0.0)
    secret = folder.file("b", "vault", "signing.key")
    kept = secret.read_bytes()
    secret.unlink()
    async with hosting(folder) as (asking, hosted):
        assert (await asking.decide("a", folder.keys["a"]))[1]["stored"]
        status, reported = await asking.decide("b", folder.keys["b"])
        assert (status, reported["error"]["code"]) == (503, "not_ready")
        assert "InvalidInput" in reported["error"]["message"]
        assert str(secret) not in str(reported)
        ready = await asking.call("GET", "/readyz")
        assert ready == (200, {"status": "ready", "not_ready": {"b": {"start": "InvalidInput"}}})
        await hosted.look()
        listed = (await asking.call("GET", "/v1/experiments", folder.key))[1]["experiments"]
        assert [each["state"] for each in listed] == ["running", "broken"]
        assert "signing.key" in listed[1]["reason"]
        lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
        failed = [line["experiment"] for line in lines if line["event"] == "start failed"]
        assert failed == ["b"]  # once, though it is tried again
        secret.write_bytes(kept)
        secret.chmod(0o600)
        await hosted.look()
        assert (await asking.decide("b", folder.keys["b"]))[1]["stored"]
        folder.file("a", "experiment.toml").unlink()  # somebody takes it away
        await hosted.look()
        assert (await asking.decide("a", folder.keys["a"]))[0] == 404


async def test_an_experiment_that_cannot_start_is_in_log_and_lists_with_its_reason(folder, capsys):
    edited, reached = folder.file("a", "experiment.toml"), folder.file("b", "vault", "mac.key")
    edited.write_text(edited.read_text().replace("epsilon = ", "epsilon = 1"))
    reached.chmod(0o644)
    found = {each.name: each for each in folder.held.listed()}
    assert [found[name].mode for name in "ab"] == ["online", "online"]
    assert "plan.budget.epsilon must stay" in found["a"].wrong
    assert f"{reached} has mode 0644" in found["b"].wrong
    async with hosting(folder) as (asking, _):
        listed = (await asking.call("GET", "/v1/experiments", folder.key))[1]["experiments"]
        assert [each["state"] for each in listed] == ["broken", "broken"]
        assert [each["reason"] for each in listed] == [found[name].wrong for name in "ab"]
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    reported = [
        (each["experiment"], each.get("keys")) for each in lines if "refused" in each["event"]
    ]
    assert reported == [("a", ["plan.budget.epsilon"])]


async def test_an_experiment_that_sleeps_refuses_a_revoked_key(folder, monkeypatch):
    monkeypatch.setattr(upkeep, "QUIET", 0.0)
    monkeypatch.setattr(upkeep, "NAP", 60.0)
    async with hosting(folder) as (asking, hosted):
        state = hosted.served["a"].service.state
        async with asyncio.timeout(PATIENCE):
            while not state.asleep:
                await asyncio.sleep(0.01)
        monkeypatch.setattr(upkeep, "QUIET", 3600.0)  # it does not fall asleep again
        settings = Settings.read(folder.file("a", "experiment.toml"))
        database = open_database(settings)
        with closing(database.connect()) as connection:
            api_keys.revoke(database, connection, next(iter(state.keys)))
        assert (await asking.decide("a", folder.keys["a"]))[0] == 401
        assert not state.asleep


async def test_the_page_of_a_server(folder):
    async with hosting(folder) as (asking, hosted):
        assert (await asking.log_in(folder.keys["a"])).status == 401
        assert (await asking.log_in(folder.key)).status == 303
        page = (await asking.get("/ui")).text
        assert 'href="/v1/experiments/a/ui"' in page
        assert "Pause b" in page
        text = folder.file("a", "experiment.toml").read_text()
        text = text.replace('"a"', '"c"').replace("\n", "\r\n")
        made = await asking.send("/ui/new", view="file", toml=text, do="create")
        assert (made.status, "dk_" in made.text) == (200, True)
        assert "dk_" not in (await asking.get("/ui")).text
        await asking.send("/ui/change", name="a", what="pause")
        assert hosted.served["a"].service.state.mode == "frozen"
        assert "Resume a" in (await asking.get("/ui")).text
        for what in ("end", "archive"):
            assert (await asking.send("/ui/change", name="a", what=what, typed="b")).status == 422
        await asking.send("/ui/change", name="a", what="end", typed="a")
        assert hosted.served["a"].service.state.mode == "ended"
        reply = await asking.send("/ui/change", name="a", what="archive", typed="a")
        assert (reply.status, "a" in hosted.served) == (303, False)
        foreign = await asking.ask("POST", "/ui/change", {"name": "b", "what": "pause"})
        assert (foreign.status, hosted.served["b"].service.state.mode) == (403, "online")
        await asking.send("/ui/logout")
        assert (await asking.get("/ui")).headers["location"] == "/ui/login"


async def test_the_list_agrees_with_the_pages_of_each_experiment(folder):
    control = "[plan]\ncontrol = { share = 0.25, action = 0 }"
    folder.held.new("c", toml(waiting="pipeline").replace("[plan]", control))
    folder.file("b", "experiment.toml").write_text("window = ")
    async with hosting(folder) as (asking, hosted):
        await asking.log_in(folder.key)
        service = hosted.served["c"].service
        await service.decisions.decide("caller", [0.1, 0.2])
        await service.state.store_traffic()
        page = unescape((await asking.get("/ui")).text)
        a, b, c = re.findall(r'<section class="card listed".*?</section>', page, re.DOTALL)
        assert "Not compared." in a
        assert "<b>0</b> since" in a
        assert ">broken<" in b
        assert "must be TOML" in b
        assert "<b>1</b> since" in c
        stated = await summary(service)
        for each in (stated.helped, stated.coming):
            assert each.text in c
        assert "25\N{NO-BREAK SPACE}% of the decisions are the control group and get action 0" in c
        for jargon in ("document", "genesis", "epoch", "slot"):
            assert jargon not in a + c, jargon
        refused = await asking.send("/ui/change", name="a", what="end", typed="b")
        assert "/ui/batches" not in refused.text, "a server has no page of an experiment"
        assert "Back to the first page" in refused.text

        async def unreadable():
            raise OSError

        hosted.served["a"].service.status = unreadable
        page = (await asking.get("/ui")).text
        assert "cannot be read just now" in page
        assert stated.helped.short in page, "one that cannot be read keeps nobody from the others"


async def test_behind_a_path_prefix(tmp_path):
    folder = Folder(tmp_path / "server", prefix="/bandit")
    async with hosting(folder) as (asking, _):
        for before in ("", "/bandit"):
            path = f"{before}/v1/experiments/a/decide"
            body = {"context": [0.1, 0.2]}
            assert (await asking.call("POST", path, folder.keys["a"], body))[0] == 200
        reply = await asking.get("/bandit/ui")
        assert reply.headers["location"] == "/bandit/ui/login"
        reply = await asking.get("/v1/experiments/a/ui")
        assert reply.headers["location"] == "/bandit/v1/experiments/a/ui/login"


def test_files_that_an_experiment_names_come_with_it(folder, tmp_path):
    source = tmp_path / "source"
    (source / "data").mkdir(parents=True)
    (source / "data/items.csv").write_text("id,price\nx,0.5\ny,0.7\n")
    text = """window = 1
[plan]
first_batch = 4
features = { kind = "UnitBall", dimension = 2 }
budget = { epsilon = 1.0, delta = 1e-6 }
[plan.actions]
items = "data/items.csv"
schema = { kind = "Schema", fields = [{ kind = "Number", name = "price", low = 0, high = 1 }] }
"""
    (source / "films.toml").write_text(text)
    folder.held.new("films", text, source / "films.toml")
    assert Settings.read(folder.file("films", "experiment.toml")).plan.n_actions == 2
    with pytest.raises(InvalidInput):
        folder.held.new("broken", text)
    assert not folder.file("broken").exists()


def test_settings_of_a_server(tmp_path, monkeypatch):
    (tmp_path / "server.toml").write_text("port = 1\n")
    monkeypatch.setenv("DISCREET_VAULT", "x")
    with pytest.raises(InvalidInput, match="DISCREET_VAULT must be left out"):
        ServerSettings.read(tmp_path)
    monkeypatch.delenv("DISCREET_VAULT")
    for line, wrong in (
        ("prot = 1", "prot"),
        ('database = "discreet.db"', "PostgreSQL"),
        ('database = "postgresql://x/y?options=-c"', "without options"),
        ('prefix = "x"', "prefix"),
    ):
        (tmp_path / "server.toml").write_text(line)
        with pytest.raises(InvalidInput, match=wrong):
            ServerSettings.read(tmp_path)
    with pytest.raises(InvalidInput, match="--init"):
        ExperimentFolder(tmp_path / "none")
