"""``discreet theory``: bounds in numbers, and the experiments."""

import json

import pytest

from discreet.cli.main import main
from discreet.lab import theory
from discreet.lab.report import scaling_report
from discreet.lab.theory import scaling_experiments
from discreet.lab.theory.scaling_experiments import _axes

NAMES = [
    "vanilla",
    "batched_vanilla",
    "batched_bonus",
    "private_batched_vanilla",
    "private_batched_bonus",
]
SIZES = ["--T", "100000", "--A", "10", "--F", "1000", "--epsilon", "1", "--delta", "0.05"]


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Exit code, standard output and standard error of ``discreet theory …``."""
    monkeypatch.chdir(tmp_path)

    def answer(*arguments):
        code = main(["theory", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return answer


def test_bounds_as_json(call):
    code, out, _ = call("bounds", *SIZES, "--json")
    assert code == 0
    document = json.loads(out)
    assert (document["epochs"], document["fits"]) == (17, 16)
    for name in NAMES:
        said = theory.statement(name, 100_000, 10, 1000, 0.05, 1.0)
        each = document[name]
        assert each["error_bound"] == said.error_bound
        assert each["regret_bound"] == said.regret_bound.total == sum(each["terms"].values())
        assert each["terms"][each["dominant"]] == max(each["terms"].values())
        assert each["bound_over_T"] == pytest.approx(each["regret_bound"] / 100_000)
        assert len(each["epochs"]) == (0 if name == "vanilla" else 16)
    assert document["batched_bonus"]["epochs"][0].keys() == {"exploration", "bonus", "rate"}
    last = document["batched_vanilla"]["epochs"][-1]["rate"]
    assert last == document["batched_vanilla"]["learning_rate"]


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--T", 0, "--A", 2, "--F", 2], "T must be"),
        (["--T", 9, "--A", 1, "--F", 2], "A must be"),
        (["--T", 9, "--A", 2, "--F", 0], "F must be"),
        (["--T", 9, "--A", 2, "--F", 2, "--epsilon", 0], "epsilon must be"),
        (["--T", 9, "--A", 2, "--F", 2, "--delta", 0.9], "1/2"),
        (["--T", 9, "--A", 2], "--F"),
    ],
)
def test_mistakes_are_one_line(call, flags, word):
    code, out, err = call("bounds", *flags)
    assert code == 2
    assert out == ""
    assert word in err
    assert len(err.splitlines()) == 1


def test_scaling_writes_results_figures_and_a_page(call, tmp_path, monkeypatch):
    # Enough points for slopes: tests/lab/theory plays the whole grid.
    some = _axes(T=(16, 32), A=(2, 4), F=(4, 16), epsilon=(0.5, 2))
    monkeypatch.setattr(scaling_experiments, "QUICK", some)
    code, out, _ = call("scaling", "--out", "here", "--quick", "--seeds", 2)
    assert code == 0
    written = {path.name for path in (tmp_path / "here").iterdir()}
    assert {"scaling.json", "points.csv", "slopes.csv", "index.html", "bounds.png"} <= written
    assert "slope of the bound" in out
    document = json.loads((tmp_path / "here" / "scaling.json").read_text())
    assert {point["algorithm"] for point in document["points"]} == set(NAMES)


def test_scaling_as_json(call, monkeypatch):
    monkeypatch.setattr(
        scaling_experiments, "QUICK", (scaling_experiments.Axis("T", (16, 32), "rounds T"),)
    )
    monkeypatch.setattr(scaling_report, "write_report", lambda *_: [])
    code, out, err = call("scaling", "--out", "here", "--quick", "--seeds", 2, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["files"] == ["scaling.json"]
