"""Advice of commands: once each on the error stream, silenced by a flag, never in the answer."""

import json

import numpy as np
import pytest

from discreet.cli.main import main

COMMANDS = {
    "run": ["run", "--seeds", "3", "--epsilon", "1"],
    "curve": ["curve", "--seeds", "2", "--epsilon", "1", "8"],
}


@pytest.fixture
def long_rows(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{x:.3f},{y:.3f},{int(x > y)}" for x, y in rng.normal(size=(80, 2)) * 9]
    path = tmp_path / "set.csv"
    path.write_text("\n".join(["x,y,class", *lines]) + "\n")
    return str(path)


@pytest.mark.parametrize("name", COMMANDS)
def test_words_come_once_and_the_answer_stays_pure(name, long_rows, capsys):
    assert main([*COMMANDS[name], "--data", long_rows, "--json"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    lines = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert lines == err.splitlines()
    assert len(lines) == len(set(lines)) == 1
    assert "rows are longer than 1" in lines[0]
    assert "docs/warnings.md#long-rows" in lines[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_quiet_is_quiet(name, long_rows, capsys):
    assert main([*COMMANDS[name], "--data", long_rows, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_a_plan_with_too_much_noise_is_told_so(tmp_path, capsys):
    words = ["run", "--data", "twonorm", "--rows", "100", "--seeds", "1", "--epsilon", "0.1"]
    path = tmp_path / "experiment.toml"
    path.write_text("horizon = 100\n")
    assert main([words[0], str(path), *words[1:]]) == 0
    assert capsys.readouterr().err.count("warning: ε = 0.1") == 1


def test_a_plan_says_its_own_line_unless_it_is_quiet(capsys):
    words = ["plan", "--actions", "3", "--dimension", "10", "--horizon", "500", "--epsilon", "1"]
    assert main(words) == 0
    loud = capsys.readouterr().out
    assert main([*words, "--quiet"]) == 0
    quiet = capsys.readouterr().out
    assert [line for line in loud.splitlines() if line not in quiet.splitlines()] == [
        line for line in loud.splitlines() if line.startswith("Warning: ")
    ]
    assert "Warning: " in loud
