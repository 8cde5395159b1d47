"""Warnings about contexts that were handed over for evaluation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import discreet as dc
from discreet.simulate.labelled_data import advise_on_contexts, findings

RNG = np.random.default_rng(0)
FINE = RNG.uniform(-0.5, 0.5, size=(200, 3))


def topics(contexts, columns=()):
    return [topic for topic, _ in findings(contexts, columns)]


def test_scaled_columns_are_fine():
    assert topics(FINE) == []
    assert topics(FINE[:, :1]) == []  # a single column cannot dominate others
    assert topics(np.zeros((60, 2))) == []


def test_each_mistake_is_named():
    assert topics(FINE * 10) == ["long-rows"]
    assert topics(FINE * [1, 1, 30]) == ["a-column-that-dominates", "long-rows"]
    assert topics(np.column_stack([np.arange(200), FINE]))[0] == "identifiers"
    amounts = RNG.permutation(5000)[:200]  # distinct, and neither counted nor in order
    assert topics(np.column_stack([amounts, FINE])) == [
        "a-column-that-dominates",
        "long-rows",
    ]


def test_columns_are_named_by_header_or_place():
    ids = np.column_stack([FINE, RNG.permutation(200) + 1000.0])
    (_, words), *_ = findings(ids, ("age", "visits", "size", "customer"))
    assert "column 'customer' looks like an identifier" in words
    (_, words), *_ = findings(ids)
    assert "column 4 looks like" in words


def test_huge_numbers_do_not_warn_of_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert "long-rows" in topics(np.full((60, 2), 1e300))


def test_a_schema_needs_no_advice():
    with warnings.catch_warnings():
        warnings.simplefilter("error", dc.Advice)
        advise_on_contexts(dc.Schema([dc.Number("age", 0, 9)]), [{"age": 3}])
    with pytest.warns(dc.Advice, match="docs/warnings.md#long-rows"):
        advise_on_contexts(dc.UnitBall(3), FINE * 10)


@pytest.mark.parametrize("play", ["evaluate", "privacy_curve"])
def test_evaluations_advise_once_at_the_caller_and_name_columns(play):
    import pandas as pd

    frame = pd.DataFrame(FINE * 10, columns=["age", "visits", "size"])
    frame["customer"] = np.arange(200)
    frame["label"] = (FINE[:, 0] > 0).astype(int)
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(4), budget=dc.Budget.none())
    how = {"evaluate": (plan, frame, "label"), "privacy_curve": (frame, "label")}
    with pytest.warns(dc.Advice) as caught:
        getattr(dc, play)(*how[play])
    assert len(caught) == 2
    assert "column 'customer' looks like an identifier" in str(caught[0].message)
    assert all(each.filename == __file__ for each in caught)


def test_a_plan_whose_horizon_is_too_near_is_told_so_when_it_is_evaluated():
    budget = dc.Budget(0.1, 1e-5)
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(3), budget=budget, horizon=200)
    with pytest.warns(dc.Advice, match="unlikely to beat") as caught:
        dc.evaluate(plan, FINE, (FINE[:, 0] > 0).astype(int))
    assert [each.filename for each in caught] == [__file__]
