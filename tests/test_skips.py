"""Skips that nobody expects fail: tests/conftest.py judges a folder of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from libraries import NO_TORCH

HERE = Path(__file__).parent
TESTS = f"""
import pytest

@pytest.mark.skipif(True, reason="Chromium must be installed: apt install chromium")
def test_listed(): pass

@pytest.mark.skip(reason="flaky")
def test_unlisted(): pass

def test_in_the_middle(): pytest.importorskip("no_such_library")

def test_without_its_mark(): pytest.skip("could not import 'torch': No module named 'torch'")

def test_with_its_mark(): pytest.skip({NO_TORCH!r})

def test_runs(): pass
"""
MODULE = "import pytest\npytest.importorskip('no_such_library')\ndef test_never(): pass\n"


@pytest.fixture
def outcomes(tmp_path):
    """``outcomes(*options)``: each test and its outcome, and the exit status."""
    for name in ("conftest.py", "libraries.py", "seeded_sources.py"):
        (tmp_path / name).write_text((HERE / name).read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\nmarkers = torch\n")
    (tmp_path / "test_some.py").write_text(TESTS)

    def run(*options):
        command = [sys.executable, "-m", "pytest", "-v", "-rA", "-p", "no:cacheprovider"]
        command += ["-p", "no:schemathesis"]  # it is slow to import
        done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True)
        lines = re.findall(r"^(PASSED|FAILED|ERROR) \S+?(?:::(\w+))?(?: |$)", done.stdout, re.M)
        return {name: outcome for outcome, name in lines}, done.returncode

    return run


@pytest.mark.parametrize("jobs", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_a_skip_passes_only_for_a_listed_reason(outcomes, jobs):
    assert outcomes(*jobs) == (
        {
            "test_unlisted": "ERROR",  # before it begins
            "test_in_the_middle": "FAILED",
            "test_without_its_mark": "FAILED",
            "test_runs": "PASSED",
        },
        1,
    )


def test_listed_reasons_alone_pass(outcomes):
    assert outcomes("-k", "listed and not unlisted or runs") == ({"test_runs": "PASSED"}, 0)


def test_where_no_skip_is_allowed_a_listed_reason_fails_too(outcomes):
    found, code = outcomes("--no-skips", "-k", "mark or runs")
    assert code == 1
    assert found["test_with_its_mark"] == "FAILED"


def test_a_module_cannot_skip_itself(outcomes, tmp_path):
    (tmp_path / "test_module.py").write_text(MODULE)
    found, code = outcomes("test_module.py")
    assert code != 0
    assert found == {"": "ERROR"}


def test_no_folder_hides_its_tests():
    """A file that is not collected is a skip that nothing reports."""
    hidden = [path for path in HERE.rglob("conftest.py") if "collect_ignore" in path.read_text()]
    assert hidden == []
