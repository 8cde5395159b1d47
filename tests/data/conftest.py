"""No test of data sees, or leaves anything in, the cache of whoever runs it."""

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("DISCREET_CACHE", str(folder))
    return folder
