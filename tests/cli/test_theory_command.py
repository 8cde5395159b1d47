"""``discreet theory``: bounds in numbers, and the experiments."""

import json

import pytest

from discreet.lab import theory
from discreet.lab.report import scaling_report
from discreet.lab.theory import scaling_experiments

NAMES = [
    *("vanilla", "batched_vanilla", "batched_bonus"),
    *("private_batched_vanilla", "private_batched_bonus"),
]
COMMAND = ["theory"]
SIZES = ["--T", "100000", "--A", "10", "--F", "1000", "--epsilon", "1", "--delta", "0.05"]


def test_bounds_as_json(document):
    document = document("bounds", *SIZES)
    assert (document["epochs"], document["fits"]) == (17, 16)
    for name in NAMES:
        expected = theory.statement(name, 100_000, 10, 1000, 0.05, 1.0)
        each = document[name]
        assert each["error_bound"] == expected.error_bound
        assert each["regret_bound"] == expected.regret_bound.total == sum(each["terms"].values())
        assert each["terms"][each["dominant"]] == max(each["terms"].values())
        assert each["bound_over_T"] == pytest.approx(each["regret_bound"] / 100_000)
        assert len(each["epochs"]) == (0 if name == "vanilla" else 16)
    assert document["batched_bonus"]["epochs"][0].keys() == {"exploration", "bonus", "rate"}
    last = document["batched_vanilla"]["epochs"][-1]["rate"]
    assert last == document["batched_vanilla"]["learning_rate"]


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--T", 9, "--A", 1, "--F", 2], "A must be"),
        (["--T", 9, "--A", 2, "--F", 2, "--epsilon", 0], "epsilon must be"),
        (["--T", 9, "--A", 2], "--F"),
    ],
)
def test_mistakes_are_one_line(refuses, flags, word):
    refuses("bounds", *flags, words=word)


def test_scaling_writes_its_results_and_names_every_file(call, document, here, monkeypatch):
    """tests/lab/theory plays the whole grid and reads the page."""
    axes = (scaling_experiments.Axis("T", (16, 32), "rounds T"),)
    monkeypatch.setattr(scaling_experiments, "QUICK", axes)
    monkeypatch.setattr(scaling_report, "write_report", lambda *_: [])
    words = ["scaling", "--out", "here", "--quick", "--seeds", 2]
    assert document(*words)["files"] == ["scaling.json"]
    written = json.loads((here / "here" / "scaling.json").read_text())
    assert {point["algorithm"] for point in written["points"]} == set(NAMES)
    assert "slope of the bound" in call(*words)[1]
