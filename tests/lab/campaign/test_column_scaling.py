"""Columns scaled by ranges that the data themselves give: as a schema would, for evaluation."""

import numpy as np
import pytest

import discreet as dc
from discreet.lab.campaign.column_scaling import FEATURES, scaled
from tolerances import EXACT

CONTEXTS = np.random.default_rng(3).normal(size=(40, 3)) * [1.0, 1e-6, 1e6] + [0.0, 5.0, -1e7]


@pytest.mark.parametrize(("features", "below", "above"), [("ranges", 0, 0), ("wide", 0.5, 1.5)])
def test_features_are_those_of_a_schema_that_declares_the_ranges(features, below, above):
    low, high = CONTEXTS.min(axis=0), CONTEXTS.max(axis=0)
    low, high = low - below * (high - low), high + above * (high - low)
    names = "abc"
    schema = dc.Schema([dc.Number(*field) for field in zip(names, low, high, strict=True)])
    rows = [dict(zip(names, row, strict=True)) for row in CONTEXTS]
    found = dc.UnitBall(6).map(scaled(CONTEXTS, features))
    assert found == pytest.approx(schema.map(rows), abs=1e-9)


def test_raw_columns_stay_as_they_are():
    assert scaled(CONTEXTS, "raw") is CONTEXTS


def test_standard_columns_have_mean_zero_and_deviation_one_over_the_root_of_their_number():
    found = scaled(CONTEXTS, "standard")
    assert found.mean(axis=0) == pytest.approx(0.0, abs=1e-8)
    assert found.std(axis=0) == pytest.approx(3**-0.5, rel=EXACT)


def test_linear_columns_and_many_columns_have_no_squares():
    assert scaled(CONTEXTS, "linear").shape == (40, 3)
    many = np.random.default_rng(4).normal(size=(5, 13))
    assert scaled(many, "ranges").shape == (5, 13)


@pytest.mark.parametrize("features", [*FEATURES[1:], "linear", "standard"])
def test_a_constant_column_says_nothing(features):
    contexts = np.column_stack([np.full(40, 0.1), CONTEXTS[:, 0]])
    found = scaled(contexts, features)
    assert (found[:, 0] == 0.0).all()
    assert np.isfinite(found).all()
