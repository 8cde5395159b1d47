"""``--group``: the losses of each group, printed, written and drawn."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.data import load

QUICK = ["--epsilon", "8", "--seeds", "2", "--quiet"]


@pytest.fixture
def sales(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{x:.3f},{'' if row < 25 else 'north' if row % 3 else 'south'},{'yes' if x > 0 else 'no'}"
        for row, x in enumerate(rng.uniform(-0.9, 0.9, 150))
    ]
    (tmp_path / "sales.csv").write_text("\n".join(["size,region,bought", *lines]))
    return tmp_path / "sales.csv"


def test_a_curve_by_group(document, sales):
    found = document("curve", "--data", sales, "--group", "region", *QUICK)["groups"]
    assert [line["group"] for line in found] == ["north", "south", "(missing)"]
    assert [line["rounds"] for line in found] == [84, 41, 25]
    in_python = dc.privacy_curve(sales, groups="region", epsilons=[8], seeds=2).by_group()
    assert found == [line._asdict() for line in in_python]
    cut = document("curve", "--data", sales, "--group", "region", "--rows", 120, *QUICK)
    drawn = np.random.default_rng(0).permutation(150)[:120]
    south = sum(row >= 25 and row % 3 == 0 for row in drawn)
    assert south != 31  # as many as there are in the first 120 rows
    assert {line["group"]: line["rounds"] for line in cut["groups"]}["south"] == south


def test_the_page_and_the_figure_of_groups(call, sales, tmp_path):
    flags = ["--data", sales, "--group", "region", *QUICK, "--out", tmp_path / "out"]
    said = call("curve", *flags)[1]
    page = (tmp_path / "out" / "index.html").read_text()
    assert "By group" in page
    assert "--group region" in page
    assert page.count("<svg") == 2
    assert (tmp_path / "out" / "groups.png").read_bytes().startswith(b"\x89PNG")
    assert "(missing)" in said


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_run_by_group(call, document, sales, seeds):
    flags = ["run", "--data", sales, "--group", "region", *QUICK, "--seeds", seeds]
    found = document(*flags)
    data = load(sales)
    plan = dc.Plan.from_config(found["plan"])
    words = np.asarray([each or "(missing)" for each in data.source.columns["region"]])
    runs = [
        dc.evaluate(plan, data.contexts, data.labels, groups=words, seed=seed).by_group()
        for seed in range(seeds)
    ]
    assert [line["loss"] for line in found["groups"]] == pytest.approx(
        np.mean([[line.loss for line in run] for run in runs], axis=0).tolist()
    )
    assert all(line["low"] <= line["loss"] <= line["high"] for line in found["groups"])
    assert "north" in call(*flags)[1]


def test_bad_columns_are_refused(call, sales):
    assert "Did you mean 'region'?" in call("run", "--data", sales, "--group", "regio")[2]
    assert "column of a file" in call("curve", "--data", "fried", "--group", "region")[2]
