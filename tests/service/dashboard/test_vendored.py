"""Files that others wrote are those they published, with licences; pages name no other place."""

import base64
import hashlib
import json
import re
import shutil
from importlib.resources import files
from pathlib import Path

import pytest

UI = Path(str(files("discreet.service.dashboard")))
OURS = {"dashboard.css", "dashboard.js"}


def wrong(folder):
    """Files whose content, licence or record is missing or differs."""
    listed = json.loads((folder / "vendored.json").read_text())
    found = []
    for package in listed:
        if not (folder / package["licence_file"]).read_text().strip():
            found.append(package["licence_file"])
        for name, expected in package["files"].items():
            digest = hashlib.sha384((folder / name).read_bytes()).digest()
            if f"sha384-{base64.b64encode(digest).decode()}" != expected:
                found.append(name)
    known = {name for package in listed for name in package["files"]}
    known |= {package["licence_file"] for package in listed} | {"vendored.json"} | OURS
    return found + sorted({path.name for path in folder.iterdir()} - known)


def test_checksums_hold():
    assert wrong(UI / "static") == []


@pytest.mark.parametrize("name", ["htmx.min.js"])
def test_an_altered_file_is_noticed(tmp_path, name):
    shutil.copytree(UI / "static", tmp_path / "static")
    file = tmp_path / "static" / name
    file.write_bytes(file.read_bytes() + b"\n")
    assert wrong(tmp_path / "static") == [name]


def test_pages_name_no_other_place():
    for path in (*UI.glob("templates/*.html"), *(UI / "static" / name for name in OURS)):
        assert not re.search(r"https?://|//\w+\.\w", path.read_text()), path.name
