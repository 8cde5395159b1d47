"""Advice of commands: once each on the error stream, silenced by a flag, never in the answer."""

import json

import numpy as np
import pytest

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
def test_words_come_once_the_answer_stays_pure_and_quiet_is_quiet(name, long_rows, call):
    words = [*COMMANDS[name], "--data", long_rows]
    _, out, err = call(*words, "--json")
    json.loads(out)
    (line,) = err.splitlines()
    assert line.startswith("warning: ")
    assert "rows are longer than 1" in line
    assert "docs/warnings.md#long-rows" in line
    assert call(*words, "--quiet")[2] == ""


def test_a_plan_with_too_much_noise_is_told_so(here, call):
    (here / "experiment.toml").write_text("horizon = 100\n")
    words = ["--data", "twonorm", "--rows", "100", "--seeds", "1", "--epsilon", "0.1"]
    assert call("run", "experiment.toml", *words)[2].count("warning: ε = 0.1") == 1


def test_a_plan_says_its_own_line_unless_it_is_quiet(call):
    words = ["plan", "--actions", "3", "--dimension", "10", "--horizon", "500", "--epsilon", "1"]
    loud, quiet = call(*words)[1].splitlines(), call(*words, "--quiet")[1].splitlines()
    warnings = [line for line in loud if line not in quiet]
    assert warnings == [line for line in loud if line.startswith("Warning: ")] != []
