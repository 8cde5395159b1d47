"""What is shipped, and the commands that build and check it."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import discreet
from tolerances import HANG

ROOT = Path(__file__).parents[1]
CORE = {"numpy", "scipy", "array-api-compat", "opendp", "dp-accounting"}
EXTRAS = {
    *("campaign", "serve", "client", "openfeature", "frames", "postgres", "warehouse", "traces"),
    *("dask", "torch", "sklearn", "coba", "obp", "onnx", "bench", "docs", "dev", "all"),
}


@pytest.fixture(scope="module")
def shipped():
    """Paths in the installed wheel; an editable install has none of ours."""
    files = importlib.metadata.files("discreet") or []
    inside = {str(path): Path(path.locate()) for path in files}
    if "discreet/__init__.py" not in inside:
        assert "DISCREET_TESTS_WHEEL" not in os.environ, "the wheel must be tested; it is not"
        pytest.skip("an editable install has no wheel to look into; make test has")
    return inside


def test_the_wheel_is_what_is_imported(shipped):
    assert Path(discreet.__file__).samefile(shipped["discreet/__init__.py"])


def test_the_wheel_holds_the_package_and_nothing_else(shipped):
    parts = {path.split("/")[0] for path in shipped if not path.startswith((".", "bin/"))}
    info = f"discreet-{discreet.__version__}.dist-info"
    assert parts == {"discreet", info}
    assert {"discreet/py.typed", "discreet/templates/frame.html"} <= set(shipped)
    assert f"{info}/licenses/LICENSE" in shipped
    assert not [path for path in shipped if re.search(r"(^|/)(tests?|bench|docs)/", path)]


def test_the_wheel_is_the_source(shipped):
    source = ROOT / "src"
    ours = {
        str(path.relative_to(source)): path.read_bytes()
        for path in (source / "discreet").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    packed = {
        name: path.read_bytes()
        for name, path in shipped.items()
        if name.startswith("discreet/") and not name.endswith(".pyc")
    }
    assert packed == ours


def test_metadata():
    about = importlib.metadata.metadata("discreet")
    assert about["Version"] == project()["version"] == discreet.__version__
    assert about["License-Expression"] == "MIT"
    assert about["Requires-Python"] == ">=3.11"
    assert set(about.get_all("Provides-Extra")) == EXTRAS
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="discreet")
    assert command.value == "discreet.cli.main:main"


def test_a_page_of_pypi_would_be_complete():
    stated = project()
    assert (ROOT / stated["readme"]).is_file()
    assert 20 < len(stated["description"]) < 100
    assert len(set(stated["keywords"])) == len(stated["keywords"]) > 4
    kinds = {classifier.split(" :: ")[0] for classifier in stated["classifiers"]}
    assert {"Development Status", "Intended Audience", "Topic", "Typing"} <= kinds
    assert not [each for each in stated["classifiers"] if each.startswith("License")]  # PEP 639
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(stated["classifiers"]))
    assert versions == ["3.11", "3.12", "3.13"]


def test_a_page_of_npm_would_be_complete():
    package = ROOT / "clients" / "js"
    stated = json.loads((package / "package.json").read_text())
    assert stated["name"] == "discreet-bandits"
    assert stated["license"] == project()["license"]
    assert stated["author"] == project()["authors"][0]["name"]
    assert {"description", "keywords", "types", "files", "exports", "engines"} <= stated.keys()
    assert (package / stated["types"]).is_file()
    assert (package / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_core_needs_little():
    needs = importlib.metadata.requires("discreet")
    core = {re.match(r"[\w-]+", need)[0].lower() for need in needs if "extra ==" not in need}
    assert core == CORE
    everything = [need for need in needs if re.search(r"extra == .all.", need)]
    assert everything
    assert not [need for need in everything if "torch" in need]


def test_ci_runs_the_tests():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text().splitlines()
    assert lines.index("make test") < lines.index("make docs") < lines.index("make test-torch")


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("version", ["3.11.0", "3.12.0", "3.13.0", "3.14.0"])
def test_the_lock_file_has_a_version_of_every_dependency(version):
    """Constraints that do not fit the project would stop make setup on some Python."""
    here = {"python_full_version": version, "python_version": version[:4]}
    lines = (ROOT / "requirements-dev.lock").read_text().splitlines()
    locked = [Requirement(line) for line in lines if not line.startswith("#")]
    pins = {pin.name: pin for pin in locked if not pin.marker or pin.marker.evaluate(here)}
    extras = project()["optional-dependencies"]
    parts = ("campaign", "serve", "openfeature", "postgres", "dask", "dev", "docs", "torch")
    parts += ("sklearn", "coba", "onnx")
    for text in [*project()["dependencies"], *(need for part in parts for need in extras[part])]:
        need = Requirement(text)
        (pinned,) = pins[need.name].specifier
        assert need.specifier.contains(pinned.version), text


@pytest.mark.skipif(shutil.which("make") is None, reason="make must be installed")
def test_every_promised_target_exists():
    targets = (
        "setup demo test test-torch test-long coverage lock release-check sbom lint docs bench"
    )
    command = ["make", "--dry-run", "PYTHON=python3", *targets.split(), "clean"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    for step in ("demo", "pytest", "-m torch --no-skips", "-m long", "--cov=discreet", "mypy",
                 "uv pip compile", "twine check", "cyclonedx-py", "check_site.py", "--quick",
                 "rm -rf"):  # fmt: skip
        assert step in done.stdout
