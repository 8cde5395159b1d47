"""``--group``: the losses of each group, printed, written and drawn."""

from __future__ import annotations

import json

import numpy as np
import pytest

import discreet as dc
from discreet.cli.main import main
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


def answer(capsys, *arguments):
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_curve_by_group(capsys, sales):
    found = answer(capsys, "curve", "--data", sales, "--group", "region", *QUICK)["groups"]
    assert [line["group"] for line in found] == ["north", "south", "(missing)"]
    assert [line["rounds"] for line in found] == [84, 41, 25]
    in_python = dc.privacy_curve(sales, groups="region", epsilons=[8], seeds=2).by_group()
    assert found == [line._asdict() for line in in_python]
    cut = answer(capsys, "curve", "--data", sales, "--group", "region", "--rows", 120, *QUICK)
    drawn = np.random.default_rng(0).permutation(150)[:120]
    south = sum(row >= 25 and row % 3 == 0 for row in drawn)
    assert south != 31  # as many as there are in the first 120 rows
    assert {line["group"]: line["rounds"] for line in cut["groups"]}["south"] == south


def test_the_page_and_the_figure_of_groups(capsys, sales, tmp_path):
    flags = ["--data", str(sales), "--group", "region", *QUICK, "--out", str(tmp_path / "out")]
    assert main(["curve", *flags]) == 0
    page = (tmp_path / "out" / "index.html").read_text()
    assert "By group" in page
    assert "--group region" in page
    assert page.count("<svg") == 2
    assert (tmp_path / "out" / "groups.png").read_bytes().startswith(b"\x89PNG")
    assert "(missing)" in capsys.readouterr().out


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_run_by_group(capsys, sales, seeds):
    flags = ["run", "--data", sales, "--group", "region", *QUICK, "--seeds", seeds]
    found = answer(capsys, *flags)
    data = load(sales)
    plan = dc.Plan.from_config(found["plan"])
    words = np.asarray([each or "(missing)" for each in data.source.by_name()["region"]])
    runs = [
        dc.evaluate(plan, data.contexts, data.labels, groups=words, seed=seed).by_group()
        for seed in range(seeds)
    ]
    assert [line["loss"] for line in found["groups"]] == pytest.approx(
        np.mean([[line.loss for line in run] for run in runs], axis=0).tolist()
    )
    assert all(line["low"] <= line["loss"] <= line["high"] for line in found["groups"])
    assert main([*map(str, flags)]) == 0
    assert "north" in capsys.readouterr().out


def test_bad_columns_are_refused(capsys, sales):
    assert main(["run", "--data", str(sales), "--group", "regio"]) == 2
    assert "Did you mean 'region'?" in capsys.readouterr().err
    assert main(["curve", "--data", "fried", "--group", "region"]) == 2
    assert "column of a file" in capsys.readouterr().err
