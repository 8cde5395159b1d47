"""OpenML through a client that is played here: fetching, keeping, damage, no network."""

import http.client
import inspect
import urllib.error
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from sklearn import datasets

from discreet import InvalidInput
from discreet.data import load, openml
from discreet.data.openml import cached_numbers, cached_path, is_unreachable
from wording import refused

NAN = np.nan
# As scikit-learn hands a set over: one float64 table, with categories as codes in their order.
BUNCH = {
    "data": np.array([[1.0, 2, 5], [NAN, 0, 5], [4, NAN, 5], [2, 1, 5]]),
    "feature_names": ["size", "colour", "same"],
    "categories": {"colour": ["red", "green", "blue"]},
    "target": np.array(["P", "N", "N", "P"], dtype=object),
}
CONTEXTS = [[1, 1, 0, 0, 0, 5], [2, 0, 0, 1, 0, 5], [4, 0, 0, 0, 1, 5], [2, 0, 1, 0, 0, 5]]
OFFLINE = urllib.error.URLError(OSError(-2, "Name or service not known"))


@pytest.fixture
def client(monkeypatch):
    """A client that answers with ``client.answer``, and counts."""
    played = SimpleNamespace(calls=[], answer=BUNCH)
    real = inspect.signature(datasets.fetch_openml)

    def fetch_openml(**arguments):
        real.bind(**arguments)  # what we ask for must be what the real client understands
        played.calls.append(arguments)
        if isinstance(played.answer, Exception):
            raise played.answer
        return SimpleNamespace(**played.answer)

    monkeypatch.setattr(datasets, "fetch_openml", fetch_openml)
    return played


def test_a_set_is_fetched_once_and_encoded(client, monkeypatch):
    fetched = load("openml:901")
    assert fetched.contexts.tolist() == CONTEXTS  # blue, green, red, missing
    assert fetched.classes == ("N", "P")
    assert fetched.labels.tolist() == [1, 0, 0, 1]
    assert client.calls[0]["data_id"] == 901
    assert client.calls[0]["as_frame"] is False
    kept = load("openml:901")
    assert len(client.calls) == 1
    assert (kept.name, kept.digest, kept.classes) == ("openml:901", fetched.digest, ("N", "P"))
    assert (kept.contexts.dtype, kept.labels.dtype) == (np.float64, np.int64)
    assert cached_numbers() == [901]
    monkeypatch.setattr("discreet.data.openml.FORMAT", "discreet-openml/3")
    load("openml:901")
    assert len(client.calls) == 2


def test_damage_is_noticed_and_mended(client):
    digest, whole = load("openml:901").digest, cached_path(901).read_bytes()
    for place in range(0, len(whole), 97):
        damaged = bytearray(cached_path(901).read_bytes())
        damaged[place] ^= 1
        cached_path(901).write_bytes(damaged)
        assert load("openml:901").digest == digest
    assert len(client.calls) > 5
    # The archive has its own checks, which a whole archive of another set passes.
    with np.load(cached_path(901)) as file:
        kept = dict(file)
    fetched = len(client.calls)
    for change in ({"contexts": np.zeros((4, 1))}, {"classes": np.array(["P", "N"])}):
        np.savez(cached_path(901), **{**kept, **change})
        assert load("openml:901").dimension == 6
    assert len(client.calls) == fetched + 2


@pytest.mark.parametrize(
    "error",
    [
        OFFLINE,
        TimeoutError("timed out"),
        http.client.IncompleteRead(b""),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_network(client, cache_folder, error):
    client.answer = error
    words = ["openml:901", "reachable", "discreet data fetch openml:901", str(cache_folder)]
    with refused(InvalidInput, *words) as caught:
        load("openml:901")
    assert is_unreachable(caught.value)
    assert not cached_numbers()


def test_a_number_that_openml_does_not_know(client):
    client.answer = ValueError("Dataset with data_id 999999 not found.")
    with refused(InvalidInput, "999999 not found", "www.openml.org") as caught:
        load("openml:999999")
    assert not is_unreachable(caught.value)


def test_a_set_that_is_no_bandit(client):
    for target, words in ((None, "one target"), (np.array([NAN, 0, 1, 1]), "NaN")):
        client.answer = {**BUNCH, "target": target}
        with refused(InvalidInput, "openml:5", words):
            load("openml:5")
    assert not cached_numbers()


def test_a_sparse_set(client):
    full = np.array([[0.0, 2], [1, 0], [0, 0], [0, 1]])
    sparse = {"data": scipy.sparse.csr_array(full), "feature_names": ["a", "b"], "categories": {}}
    client.answer = BUNCH | sparse
    assert (load("openml:5").contexts == full).all()
    client.answer["data"] = scipy.sparse.csr_array((10**6, 10**6))
    with refused(InvalidInput, "at most"):
        load("openml:6")


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert openml.cache_folder() != tmp_path
    monkeypatch.setenv("DISCREET_CACHE", str(tmp_path))
    assert openml.cache_folder() == tmp_path
    monkeypatch.delenv("DISCREET_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert openml.cache_folder() == tmp_path / "discreet"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert openml.cache_folder() == Path.home() / ".cache" / "discreet"


@pytest.mark.usefixtures("client")
def test_a_full_disk_leaves_no_half_of_a_set(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "write_bytes", full)
        with refused(InvalidInput, "No space left"):
            load("openml:901")
    assert not cached_numbers()
    assert load("openml:901").rows == 4
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DISCREET_CACHE", str(tmp_path / "file"))
    with refused(InvalidInput, "cache folder", "DISCREET_CACHE"):
        load("openml:901")
