"""Loss against ε: the runs are those of ``evaluate``, and the words follow from the numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.data import load
from tolerances import EXACT, SOLVER

DATA = load("linear", rows=600)


@pytest.fixture(scope="module")
def curve():
    return dc.privacy_curve(
        DATA.contexts, DATA.labels, epsilons=[math.inf, 1, 8], seeds=3, horizon=200
    )


def made(losses, best_fixed=0.5, epsilons=(1.0, 4.0, math.inf)):
    """A curve with these losses, one row per ε."""
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=dc.Budget.none())
    return dc.PrivacyCurve(epsilons, np.asarray(losses), best_fixed, 0.6, 1000, plan)


def test_each_point_is_the_mean_of_the_runs_of_evaluate(curve):
    assert curve.epsilons == (1.0, 8.0, math.inf)
    budgets = dc.Budget(1.0, 1e-5), dc.Budget(8.0, 1e-5), dc.Budget.none()
    for budget, found in zip(budgets, curve.losses, strict=True):
        plan = replace(curve.plan, budget=budget, horizon=200)
        runs = [dc.evaluate(plan, DATA.contexts, DATA.labels, seed=seed) for seed in range(3)]
        np.testing.assert_allclose(found, [run.loss for run in runs], rtol=0, atol=SOLVER)
        assert curve.best_fixed == pytest.approx(np.mean([r.best_fixed for r in runs]), abs=EXACT)
        assert curve.uniform == pytest.approx(np.mean([r.uniform for r in runs]), abs=EXACT)


def test_intervals_are_students():
    point = made([[0.1, 0.2, 0.3]] * 3).table[0]
    assert point.standard_error == pytest.approx(0.1 / math.sqrt(3))
    assert point.high - point.loss == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)
    assert point.loss - point.low == pytest.approx(point.high - point.loss)


@pytest.mark.parametrize(
    ("losses", "best", "first", "said"),
    [
        ([[0.31, 0.3], [0.21, 0.2], [0.1, 0.11]], 0.5, 1.0, "From ε = 1 on, the plan beats"),
        ([[0.6, 0.61], [0.2, 0.21], [0.1, 0.11]], 0.5, 4.0, "ε = 4 has 0.1 more loss than no"),
        ([[0.2, 0.21], [0.6, 0.61], [0.1, 0.11]], 0.5, math.inf, "too small for any of these ε"),
        ([[0.6, 0.61], [0.6, 0.61], [0.1, 0.11]], 0.5, math.inf, "only ε = ∞ beats"),
        ([[0.6, 0.61], [0.6, 0.61], [0.55, 0.51]], 0.5, None, "no interval lies below"),
    ],
)
def test_the_verdict_follows_from_the_intervals(losses, best, first, said):
    curve = made(losses, best)
    assert curve.helps_from == first
    assert said in curve.verdict
    assert said in repr(curve)
    assert "no privacy" not in made(losses[:2], best, curve.epsilons[:2]).verdict


def test_a_name_words_and_losses_are_the_same_set(curve):
    names = np.array(["a", "b", "c", "d", "e", "f"])[: DATA.n_actions]
    wrong = np.arange(DATA.n_actions) != DATA.labels[:, None]
    how = {"epsilons": [1, 8, math.inf], "seeds": 3, "horizon": 200}
    by_word = dc.privacy_curve(DATA.contexts, names[DATA.labels], **how)
    by_loss = dc.privacy_curve(DATA.contexts, losses=wrong.astype(float), **how)
    by_name = dc.privacy_curve("linear:600", **how)
    for other in (by_word, by_loss, by_name):
        np.testing.assert_allclose(other.losses, curve.losses, rtol=0, atol=SOLVER)


def test_a_plan_of_ones_own_keeps_all_but_its_budget(curve):
    plan = replace(curve.plan, policy=dc.Uniform(), budget=dc.Budget(3.0, 1e-7))
    own = dc.privacy_curve(
        DATA.contexts, DATA.labels, plan=plan, epsilons=[1.0], seeds=2, horizon=100
    )
    assert own.plan.budget == dc.Budget(1.0, 1e-7)
    assert own.losses.mean() == pytest.approx(own.uniform, abs=0.15)


def test_the_figure_shows_every_number(curve):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert curve.plot(axes) is axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "8", "∞"]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"best fixed action, {curve.best_fixed:.4f}" in labels
    assert f"no privacy, {curve.table[-1].loss:.4f}" in labels
    assert "ε" in axes.get_xlabel()
    assert "200 rounds" in axes.get_ylabel()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seeds": 1}, "intervals are over seeds"),
        ({"epsilons": []}, "at least one ε"),
        ({"horizon": -1}, "horizon must be at least 1"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_bad_requests_are_refused(changes, said):
    with pytest.raises(dc.InvalidInput, match=said):
        dc.privacy_curve(DATA.contexts, DATA.labels, **{"seeds": 2, **changes})


def test_contexts_with_words_need_a_plan_of_their_own():
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=dc.Budget.none())
    for contexts, said in (([{"age": 3}] * 4, "plan=Plan"), (plan, "plan=plan")):
        with pytest.raises(dc.InvalidInput, match=said):
            dc.privacy_curve(contexts, [0, 1, 0, 1])
