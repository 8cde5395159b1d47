"""Win rates and what privacy costs, by hand."""

import math

import numpy as np
import pytest

from discreet.lab.campaign.presets import ROUNDS
from discreet.lab.report import algorithm_comparison as comparison
from discreet.lab.report.figures import STYLES
from discreet.lab.report.selection import REFERENCE, SHORT, select
from discreet.lab.report.tables import beside_default
from lab.report.folders import run, settings, table
from tolerances import EXACT


def selection(losses, epsilon=1.0):
    """``losses`` by data set and algorithm; None where there is no run."""
    rows = [
        run(data, algorithm, epsilon, 0, loss)
        for data, each in losses.items()
        for algorithm, loss in each.items()
        if loss is not None
    ]
    return select(table(rows))


THREE = selection(
    {
        "a": {"ReplayBonusPO": 0.1, "VanillaPO": 0.2, "Supervised": 0.0},
        "b": {"ReplayBonusPO": 0.3, "VanillaPO": 0.3, "Supervised": 0.0},
        "c": {"ReplayBonusPO": 0.5, "VanillaPO": 0.4, "Supervised": 0.0},
        "d": {"ReplayBonusPO": 0.5, "VanillaPO": 0.6, "Supervised": 0.0},
        "e": {"ReplayBonusPO": 0.5, "VanillaPO": None, "Supervised": 0.0},
    }
)


def test_wins_ties_and_losses_by_hand():
    rates = comparison.win_rates(THREE)
    assert [tuple(each.values()) for each in comparison.with_short_names(rates)] == [
        (1.0, 1e-5, "bpo", "bpo", 5, 0, 5, 0, 50.0),
        (1.0, 1e-5, "bpo", "vpo", 4, 2, 1, 1, 62.5),
        (1.0, 1e-5, "vpo", "bpo", 4, 1, 1, 2, 37.5),
        (1.0, 1e-5, "vpo", "vpo", 4, 0, 4, 0, 50.0),
    ]
    assert comparison.first(rates, 1.0) == "ReplayBonusPO"


@pytest.mark.parametrize(("ahead", "outcome"), [(0.9e-12, 0), (1.1e-12, 1), (-1.1e-12, -1)])
def test_a_win_is_a_difference_above_the_margin(ahead, outcome):
    loss = np.asarray([[[0.0], [ahead]]])
    assert comparison.outcomes(loss)[0, 0, 0, 1] == outcome
    assert comparison.outcomes(loss)[0, 0, 1, 0] == -outcome


def increase_of(losses):
    """``losses`` by ε, of one algorithm on data sets 0, 1, …"""
    rows = [
        run(f"set {number}", "VanillaPO", epsilon, 0, loss)
        for epsilon, each in losses.items()
        for number, loss in enumerate(each)
    ]
    return [tuple(each.values()) for each in comparison.loss_increase(select(table(rows)))]


def test_increase_by_hand():
    rows = increase_of({math.inf: [0.1, 0.1], 8.0: [0.1, 0.2], 1.0: [0.3, 0.3, 0.9]})
    assert [row[:2] for row in rows] == [("VanillaPO", epsilon) for epsilon in (math.inf, 8.0, 1.0)]
    free, baseline, private = (row[2:] for row in rows)
    assert free == pytest.approx((-0.05, 0.05, 2, 8.0), abs=EXACT)
    assert baseline == (0.0, 0.0, 2, 8.0)
    # 0.2 and 0.1; the third set has no run at ε = 8.
    assert private == pytest.approx((0.15, 0.05, 2, 8.0), abs=EXACT)
    assert increase_of({math.inf: [0.1]}) == []


def test_mean_losses_are_over_the_same_sets():
    means = comparison.mean_losses(THREE)
    assert [each["mean"] for each in means] == pytest.approx([0.35, 0.375, 0.0], abs=EXACT)
    assert [each["algorithm"] for each in means if each["best"]] == ["ReplayBonusPO"]


def test_choices_count_oracle_and_ridge():
    rows = [
        run("a", "VanillaPO", 1.0, 0, 0.2, settings=settings(0.1)),
        run("a", "VanillaPO", 1.0, 0, 0.3, settings=settings(1e-6)),
        run("b", "VanillaPO", 1.0, 0, 0.2, settings=settings(0.1, scale=3.0)),
        run("c", "VanillaPO", 1.0, 0, 0.2, settings=settings(1e-6), oracle="Logistic"),
    ]
    found = select(table(rows)).choices()
    assert [tuple(each.values()) for each in found] == [
        ("VanillaPO", 1.0, 1e-5, "Ridge", 0.1, 2),
        ("VanillaPO", 1.0, 1e-5, "Logistic", 1e-6, 1),
    ]


def test_means_and_shares_by_hand():
    known = np.array([0.1, 0.3, -0.1, 0.0])
    (found,) = comparison.differences(["Rival"], [1.0], np.append(known, np.nan)[:, None, None])
    mean, half = known.mean(), 1.96 * known.std(ddof=1) / 2
    assert tuple(found.values())[:4] == (1.0, "Rival", 4, pytest.approx(mean))
    assert (found["low"], found["high"]) == pytest.approx((mean - half, mean + half), rel=1e-3)
    assert found["default_ahead_percent"] == pytest.approx(100 * 2.5 / 4)
    for name in ("ahead_low", "ahead_high"):  # Wilson: the bound's own deviation reaches the share
        bound = found[name] / 100
        spread = math.sqrt(bound * (1 - bound) / 4)
        assert abs(2.5 / 4 - bound) == pytest.approx(1.959964 * spread, rel=1e-5)
    assert "+0.075" in beside_default([found]).rows[0][1]
    assert comparison.differences(["Rival"], [1.0], np.full((2, 1, 1), np.nan)) == []


def test_no_two_algorithms_look_alike():
    rivals = [*ROUNDS, "Epsilon-greedy", "Thompson", "AdaSSP"]
    assert {*rivals, *SHORT, REFERENCE, "Default"} <= {*STYLES}
    for names in ([*SHORT, REFERENCE, "Default"], [*rivals, "Default"]):
        assert len({(STYLES[name][0], str(STYLES[name][1])) for name in names}) == len(names)
