"""A folder with a single experiment moves into a folder of many, and everything still fits."""

import pytest

from discreet.errors import InvalidInput, StateClaimed
from discreet.service.runtime import lifecycle
from discreet.service.settings import Settings
from discreet.service.storage.locations import POINTER, anchor_of
from service.conftest import toml
from service.hosting import Folder, host


@pytest.fixture
def many(tmp_path):
    return Folder(tmp_path / "many", [])


@pytest.fixture
def single(tmp_path):
    """A folder with an experiment whose anchor lies inside it and is named in full; its key."""
    folder = tmp_path / "single"
    (folder / "vault").mkdir(parents=True, mode=0o700)
    (folder / "welcome.toml").write_text(toml(experiment="Welcome, all"))
    (folder / "vault" / POINTER).write_text(f"{folder}/kept/anchor.jsonl\n")
    return folder, lifecycle.begin(Settings.read(folder / "welcome.toml"))


def test_chain_vault_anchor_and_keys_keep_working(single, many, play, released):
    folder, key = single
    file = folder / "welcome.toml"

    async def before(service):
        decisions = [await service.decisions.decide("x", [0.1, 0.2]) for _ in range(4)]
        with pytest.raises(StateClaimed, match="must not be served"):
            many.held.adopt(file)
        await service.decisions.observe(decisions[0].decision, 0.5)
        await released(service)
        return await service.state.document(1), decisions[0].decision

    document, decision = play(Settings.read(file), before)
    assert many.held.adopt(file) == "welcome-all"
    assert not folder.exists()
    moved = Settings.read(many.file("welcome-all", "experiment.toml"))
    assert anchor_of(moved).path == many.file("welcome-all", "kept/anchor.jsonl")

    async def after(asking, _):
        path = "/v1/experiments/welcome-all"
        reported = await asking.ask("GET", f"{path}/releases/1", authorization=f"Bearer {key}")
        assert (reported.status, reported.text.encode()) == (200, document)
        assert (await asking.decide("welcome-all", key))[1]["stored"]
        late = await asking.call("POST", f"{path}/observe", key, {"decision": decision, "loss": 1})
        assert late[0] == 410  # it knows its own

    host(many, after)


@pytest.mark.parametrize("name", ["vault", "database", "anchor"])
def test_paths_must_be_right_after_the_move(single, many, name):
    folder, _ = single
    usual = {"vault": "vault", "database": "discreet.db", "anchor": "kept/anchor.jsonl"}
    text = toml(experiment="Welcome, all", **{name: f"{folder}/{usual[name]}"})
    (folder / "welcome.toml").write_text(text)
    with pytest.raises(InvalidInput, match="relative to the file"):
        many.held.adopt(folder / "welcome.toml", "a")
    assert folder.exists()


def test_what_cannot_be_adopted_stays(single, many, monkeypatch, tmp_path):
    folder, _ = single
    many.add("taken")
    with pytest.raises(InvalidInput, match="name must be new"):
        many.held.adopt(folder / "welcome.toml", "taken")
    monkeypatch.setenv("DISCREET_VAULT", str(folder / "vault"))
    with pytest.raises(InvalidInput, match="the environment has it"):
        many.held.adopt(folder / "welcome.toml", "a")
    monkeypatch.delenv("DISCREET_VAULT")
    (folder / "kept/anchor.jsonl").rename(folder / "elsewhere")
    with pytest.raises(StateClaimed, match="anchor must be at"):
        many.held.adopt(folder / "welcome.toml", "a")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/experiment.toml").write_text(toml())
    with pytest.raises(InvalidInput, match=r"signing\.key"):
        many.held.adopt(tmp_path / "empty", "a")
    assert many.held.names() == ["taken"]
    assert (folder / "welcome.toml").is_file()
