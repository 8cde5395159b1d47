"""Every example runs as it stands."""

import subprocess
import sys
from pathlib import Path

import pytest

from discreet.cli.main import main

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "first_steps.py": "3 releases, ε = 1.000 at δ = 1e-05",
    "decide_from_releases.py": "action probabilities",
    "compare.py": "noise scale of ε = inf",
    "audit_broken_mechanisms.py": "8 of 8 are caught",
    "audit_your_own.py": "lies 27%: holds",
}


def test_every_script_is_tested():
    assert set(SAYS) == {path.name for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize("name", SAYS)
def test_script(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-X", "utf8", str(EXAMPLES / name)],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_experiment(command, path, capsys):
    assert main([command, str(path), "--rows", "500", "--seeds", "2"]) == 0
    assert capsys.readouterr().out
