"""With its core dependencies alone, discreet decides, releases and says which extra is missing."""

import importlib.metadata
import json
import subprocess
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import discreet
from tolerances import HANG

EXTRAS = (
    *("sklearn", "pyarrow", "matplotlib", "joblib", "uvicorn", "cryptography", "dask", "torch"),
    *("narwhals", "pandas", "polars"),
)
PLAY = """
import importlib.util, json, sys, numpy as np
import discreet as dc
plan = dc.Plan(n_actions=3, features=dc.UnitBall(2), budget=dc.Budget(epsilon=1.0, delta=1e-5),
               first_batch=1, growth=2.0)
learner = dc.Learner(plan)
for context in np.random.default_rng(0).uniform(-0.7, 0.7, size=(20, 2)):
    decision = learner.decide(context)
    learner.observe(decision.id, loss=float(decision.action != 1))
learner.released.save("released.json")
learner.save("learner.state")
learner = dc.Learner.load("learner.state")
labels = np.arange(60) % 3
contexts = np.random.default_rng(1).normal(size=(60, 2))
print(json.dumps({
    "releases": len(dc.Released.load("released.json").items),
    "epsilon": learner.ledger.spent().epsilon,
    "loss": [dc.evaluate(plan, contexts, labels, seed=0).loss,
             dc.evaluate(dc.Plan(n_actions=3, features=dc.UnitBall(2), oracle=dc.Logistic(),
                                 budget=plan.budget), contexts, labels, seed=0).loss],
    "found": [name for name in sys.argv[1:] if importlib.util.find_spec(name)],
}))
"""
COMMAND = "import sys; from discreet.cli.main import main; raise SystemExit(main(sys.argv[1:]))"


def needed(name):
    """The distributions that a plain install of ``name`` brings, itself left out."""
    found, waiting = {}, [name]
    while waiting:
        for text in importlib.metadata.requires(waiting.pop()) or ():
            need = Requirement(text)
            if need.name not in found and (not need.marker or need.marker.evaluate({"extra": ""})):
                found[need.name] = importlib.metadata.distribution(need.name)
                waiting.append(need.name)
    return found.values()


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """``python(code, *arguments)`` in an environment that links to the core and nothing else."""
    folder = tmp_path_factory.mktemp("core")
    venv.create(folder / "venv", with_pip=False)
    (packages,) = (folder / "venv").glob("[lL]ib/**/site-packages")
    (packages / "discreet").symlink_to(Path(discreet.__file__).parent)
    for distribution in needed("discreet"):
        for top in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(distribution.locate_file(top))
    program = next((folder / "venv").glob("[bS]*/python*"))

    def run(code, *arguments):
        # -I: neither PYTHONPATH nor the user's packages are seen.
        command = [program, "-I", "-X", "utf8", "-c", code, *arguments]
        return subprocess.run(
            command, cwd=folder, capture_output=True, encoding="utf-8", timeout=HANG
        )

    return run


def test_the_core_decides_and_releases(python):
    done = python(PLAY, *EXTRAS)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["found"] == []
    assert said["releases"] == 4
    assert said["epsilon"] == pytest.approx(1.0, abs=1e-4)
    assert all(0.0 < loss < 1.0 for loss in said["loss"])


@pytest.mark.parametrize(
    "words",
    ["version", "plan --actions 3 --dimension 10", "run --data fried --rows 200 --seeds 1"],
)
def test_commands_of_the_core(python, words):
    done = python(COMMAND, *words.split())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [("campaign run --preset quick --out out", "campaign"), ("serve --init", "serve")],
)
def test_other_commands_name_their_extra(python, words, extra):
    done = python(COMMAND, *words.split())
    assert done.returncode == 2
    assert f"discreet[{extra}]" in done.stderr
    assert "Traceback" not in done.stderr
