"""Tests of data use an empty cache, and leave nothing in that of the user."""

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("DISCREET_CACHE", str(folder))
    return folder
