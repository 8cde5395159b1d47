"""The experiments: their points, their slopes, and what they must show."""

from __future__ import annotations

import json

import numpy as np
import pytest

from discreet.cli.command_line import as_json
from discreet.lab import theory
from discreet.lab.report.scaling_report import write_report
from discreet.lab.theory import scaling_experiments as scaling


@pytest.fixture(scope="module")
def found():
    return list(scaling.points(scaling.QUICK, seeds=4))


@pytest.fixture(scope="module")
def document(found):
    return scaling.document_of(found, scaling.QUICK, 4)


def test_points_oracle_calls_and_bounds(found):
    lines = sum(
        len(axis.values) * len(axis.instances) * (2 if axis.private_only else 5)
        for axis in scaling.QUICK
    )
    assert len(found) == 2 * lines
    assert {point.algorithm for point in found} == set(theory.STATEMENTS)
    for point in found:
        calls = point.T if point.algorithm == "vanilla" else theory.fits(point.T)
        assert point.fits == calls
        assert (point.regret >= 0).all()
        assert (point.regret <= min(point.T, point.bound)).all()


def test_hard_instances_grow_like_the_theorems_say(found):
    for each in scaling.growth(found, scaling.QUICK):
        if each["rates"] == "theorem" and each["instance"] == "hard":
            assert each["low"] <= 0.55
            assert each["axis"] != "T" or each["slope"] <= 0.55


def test_intervals_of_slopes_cover():
    """95 % intervals of 200 lines with fixed seeds cover between 88 and 99 %."""
    x = np.array([2.0, 8.0, 32.0, 128.0])
    assert scaling.slope(x, 3 * x**0.2) == pytest.approx(0.2)
    covered = 0
    for seed in range(200):
        noise = np.random.default_rng(seed).gamma(5.0, 0.2, size=(4, 30))
        _, low, high = scaling.fitted_slope(x, x[:, None] ** 0.5 * noise)
        covered += low <= 0.5 <= high
    assert 0.88 <= covered / 200 <= 0.99


def test_results_are_plain_and_the_report_needs_nothing_else(document, tmp_path):
    names = write_report(json.loads(as_json(document)), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    page = (tmp_path / "index.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "<script" not in page
    assert page.count("<svg") == 3
    assert "times T" in page
    assert (tmp_path / "bounds.png").read_bytes().startswith(b"\x89PNG")
    lines = (tmp_path / "points.csv").read_text().splitlines()
    assert len(lines) == 1 + len(document["points"])
    assert {point["instance"] for point in document["points"]} == {
        "hard",
        *scaling.GAPS,
        scaling.ITEMS,
        "worst",
    }
