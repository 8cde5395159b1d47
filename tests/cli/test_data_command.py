"""discreet data list, show and fetch."""

from types import SimpleNamespace

import numpy as np
import pytest

from discreet.data import load

COMMAND = ["data"]


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


def test_list_names_every_source_and_fetches_nothing(call, document, client, cache_folder):
    found = document("list")
    assert set(found["generated"]) >= {"fried", "twonorm", "ringnorm", "waveform"}
    assert found["collections"] == {"paper": {"sets": 100, "cached": 0}}
    assert found["cached"] == []
    sets = document("list", "openml:901", "fried:50")["sets"]
    assert [each["rows"] for each in sets] == [None, 50]
    assert client.calls == []
    call("fetch", "openml:901")
    found = document("list")
    assert found["cached"] == ["openml:901"]
    assert found["collections"]["paper"]["cached"] == 1
    assert document("list", "openml:901")["sets"][0]["rows"] == 4
    text = call("list")[1]
    for word in ("fried", "digits", "paper", "openml:901", str(cache_folder), ".parquet"):
        assert word in text


def test_list_shows_the_sets_of_a_folder(call, document, folder):
    assert document("list", folder)["sets"] == [
        {"name": "big", "kind": "file", "rows": 1200, "features": 3, "classes": 3},
        {"name": "small", "kind": "file", "rows": 9, "features": 3, "classes": 3},
    ]
    text = call("list", folder)[1]
    assert text.splitlines()[0].split() == ["set", "rows", "features", "classes"]
    assert "1,200" in text
    (folder / "bad.npz").write_bytes(b"nothing")
    found = document("list", folder, code=1)
    assert found["failed"] == 1
    assert [each["name"] for each in found["sets"]] == ["bad", "big", "small"]
    assert "archive" in call("list", folder)[1]


def test_show(call, document, folder):
    found = document("show", f"{folder}:small")
    assert found["digest"] == load(folder / "small.npz").digest
    assert (found["rows"], found["features"], found["classes"]) == (9, 3, 3)
    assert found["class_rows"][2] == {"label": 2, "name": "2", "rows": 3}
    assert found["constant_loss"] == pytest.approx(2 / 3)
    assert found["best_loss"] is None
    path = folder / "iris.csv"
    path.write_text("5.1,3.5,a\n4.9,3.0,b\n4.7,3.2,b\n")
    text = call("show", path)[1]
    assert document("show", path)["header"] is False
    assert "no header" in text
    assert "the class is 'column 3'" in text
    path.write_text("length,width,kind\n5,3.5,a\n4,3.0,b\n4,3.2,b\n")
    found = document("show", path, "--target", "length")
    assert (found["target"], found["columns"]) == ("length", ["width", "kind"])


def test_fetch_goes_on_after_a_failure_and_tries_no_network_twice(call, document, client):
    found = document("fetch", "openml:7", "openml:901", "fried:20", code=1)
    assert client.calls == [7, 901]
    assert found["sets"][1]["digest"] == load("openml:901").digest
    assert [bool(each["error"]) for each in found["sets"]] == [True, False, False]
    assert "2 of 3" in call("fetch", "openml:7", "openml:901", "fried:20")[1]
    client.offline = True
    client.calls.clear()
    found = document("fetch", "openml:7", "paper", code=1)
    assert client.calls == [7]
    errors = {each["name"]: each["error"] for each in found["sets"]}
    assert errors["openml:901"] is None
    assert "discreet data fetch openml:7" in errors["openml:7"]
    assert "not tried" in errors["openml:44"]
    assert found["failed"] == 100
