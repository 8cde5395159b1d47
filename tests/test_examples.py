"""Every example runs as it stands, with seeds in place of the system's entropy."""

import runpy
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
def test_script(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_experiment(command, path, capsys):
    assert main([command, str(path), "--rows", "500", "--seeds", "2"]) == 0
    assert capsys.readouterr().out
