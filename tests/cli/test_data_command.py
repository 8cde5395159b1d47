"""discreet data list, show and fetch."""

import argparse
import json
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.cli import data_command as commands
from discreet.cli.command_line import as_json
from discreet.cli.main import main
from discreet.data import load


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("DISCREET_CACHE", str(folder))
    return folder


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "sets"
    place.mkdir()
    for name, rows in (("big", 1200), ("small", 9)):
        np.savez(place / f"{name}.npz", X=np.zeros((rows, 3)), y=np.arange(rows) % 3)
    return place


@pytest.fixture
def client(monkeypatch):
    """OpenML with one set, 901; ``client.offline`` cuts it off."""
    datasets = pytest.importorskip("sklearn.datasets")
    played = SimpleNamespace(offline=False, calls=[])

    def fetch_openml(*, data_id, **_):
        played.calls.append(data_id)
        if played.offline:
            raise OSError("Network is unreachable")
        if data_id != 901:
            raise ValueError(f"Dataset with data_id {data_id} not found.")
        return SimpleNamespace(
            data=np.eye(4),
            feature_names=list("abcd"),
            categories={},
            target=np.array(["N", "P", "P", "P"], dtype=object),
        )

    monkeypatch.setattr(datasets, "fetch_openml", fetch_openml)
    return played


def call(command, **arguments):
    """The answer; its document must be JSON and its text words."""
    given = {"json": True, "target": None, **arguments}
    answer = getattr(commands, command)(argparse.Namespace(**given))
    assert answer.text.strip()
    assert json.loads(as_json(answer.document))
    return answer


@pytest.mark.usefixtures("client")
def test_list_names_every_source(cache_folder):
    answer = call("list_", sources=[])
    assert set(answer.document["generated"]) >= {"fried", "twonorm", "ringnorm", "waveform"}
    assert answer.document["collections"] == {"paper": {"sets": 100, "cached": 0}}
    assert answer.document["cached"] == []
    assert "none yet" in answer.text
    call("fetch", names=["openml:901"])
    answer = call("list_", sources=[])
    assert answer.document["cached"] == ["openml:901"]
    assert answer.document["collections"]["paper"]["cached"] == 1
    for word in ("fried", "digits", "paper", "openml:901", str(cache_folder), ".parquet"):
        assert word in answer.text


def test_list_shows_what_a_folder_holds(folder):
    answer = call("list_", sources=[str(folder)])
    assert answer.document["sets"] == [
        {"name": "big", "kind": "file", "rows": 1200, "features": 3, "classes": 3},
        {"name": "small", "kind": "file", "rows": 9, "features": 3, "classes": 3},
    ]
    assert answer.text.splitlines()[0].split() == ["set", "rows", "features", "classes"]
    assert "1,200" in answer.text
    assert "2 sets" in answer.text


def test_a_bad_file_does_not_hide_the_others(folder):
    (folder / "bad.npz").write_bytes(b"nothing")
    answer = call("list_", sources=[str(folder)])
    assert answer.code == 1
    assert answer.document["failed"] == 1
    assert [each["name"] for each in answer.document["sets"]] == ["bad", "big", "small"]
    assert "archive" in answer.text


def test_list_fetches_nothing(client):
    answer = call("list_", sources=["openml:901", "fried:50"])
    assert client.calls == []
    assert [each["rows"] for each in answer.document["sets"]] == [None, 50]
    call("fetch", names=["openml:901"])
    assert call("list_", sources=["openml:901"]).document["sets"][0]["rows"] == 4


def test_show(folder):
    document = call("show", name=f"{folder}:small").document
    data = load(folder / "small.npz")
    assert document["digest"] == data.digest
    assert (document["rows"], document["features"], document["classes"]) == (9, 3, 3)
    assert document["class_rows"][2] == {"label": 2, "name": "2", "rows": 3}
    assert document["constant_loss"] == pytest.approx(2 / 3)
    assert document["best_loss"] is None


def test_show_says_which_column_is_the_class_and_that_there_is_no_header(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_text("5.1,3.5,a\n4.9,3.0,b\n4.7,3.2,b\n")
    answer = call("show", name=str(path))
    assert answer.document["rows"] == 3
    assert answer.document["header"] is False
    assert "no header" in answer.text
    assert "the class is 'column 3'" in answer.text
    path.write_text("length,width,kind\n5,3.5,a\n4,3.0,b\n4,3.2,b\n")
    answer = call("show", name=str(path), target="length")
    assert answer.document["target"] == "length"
    assert answer.document["columns"] == ["width", "kind"]
    assert "header" not in answer.text
    assert "the class is 'length'" in answer.text


def test_fetch_goes_on_after_a_failure(client):
    answer = call("fetch", names=["openml:7", "openml:901", "fried:20"])
    assert answer.code == 1
    assert client.calls == [7, 901]
    errors = [each["error"] for each in answer.document["sets"]]
    assert "not found" in errors[0]
    assert errors[1:] == [None, None]
    assert answer.document["sets"][1]["digest"] == load("openml:901").digest
    assert "2 of 3" in answer.text


def test_fetch_without_a_network_tries_once(client):
    call("fetch", names=["openml:901"])
    client.offline = True
    answer = call("fetch", names=["openml:7", "paper"])
    assert client.calls == [901, 7]
    found = {each["name"]: each["error"] for each in answer.document["sets"]}
    assert answer.code == 1
    assert found["openml:901"] is None
    assert "discreet data fetch openml:7" in found["openml:7"]
    assert "not tried" in found["openml:44"]
    assert answer.document["failed"] == 100


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["list"], "generated"),
        (["list", "iris", "fried:30"], "sets"),
        (["show", "fried:30"], "digest"),
        (["fetch", "fried:30"], "failed"),
    ],
)
def test_on_the_command_line(words, key, capsys):
    if "iris" in words:
        pytest.importorskip("sklearn")
    assert main(["data", *words, "--json"]) == 0
    assert key in json.loads(capsys.readouterr().out)
    assert main(["data", *words]) == 0
    assert capsys.readouterr().out.strip()
