"""Dataclass ↔ mapping: round trips, decimals as text, unknown keys named at every level."""

import numpy as np
import pytest

import discreet as dc
from discreet.plan.config import from_config, to_config
from discreet.plan.plan import ORACLES
from wording import refused

AGE = {"kind": "Number", "name": "age", "low": 0, "high": 100}


def document(**changes):
    """A small plan as TOML gives it, with parts replaced (None removes one)."""
    parts = {
        "n_actions": 2,
        "features": {"kind": "UnitBall", "dimension": 3},
        "policy": {"kind": "SquareCB", "scale": 4.0},
        "oracle": {"kind": "Ridge", "ridge": 0.01},
        "budget": {"epsilon": 1.0, "delta": 1e-5},
        **changes,
    }
    return {name: value for name, value in parts.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_action": 2}, ["plan must", "'n_action'", "Did you mean 'n_actions'?"]),
        ({"policy": {"kind": "SquareCb"}}, ["plan.policy.kind", "Did you mean 'SquareCB'?"]),
        ({"oracle": {"kind": "Ridge", "rigde": 1}}, ["plan.oracle", "Did you mean 'ridge'?"]),
        ({"budget": {"epsilom": 1.0}}, ["plan.budget", "Did you mean 'epsilon'?"]),
        (
            {"features": {"kind": "Schema", "fields": [AGE, {**AGE, "hihg": 1}]}},
            ["plan.features.fields[1]", "'hihg'", "Did you mean 'high'?"],
        ),
        (
            {"features": {"kind": "Schema", "fields": [{**AGE, "kind": "Nmber"}]}},
            ["plan.features.fields[0].kind", "Did you mean 'Number'?"],
        ),
    ],
)
def test_an_unknown_key_names_the_nearest_at_its_level(changes, words):
    with refused(dc.InvalidInput, *words):
        dc.Plan.from_config(document(**changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": None}, ["plan.features must be given"]),
        ({"budget": {"delta": 1e-5}}, ["plan.budget.epsilon must be given"]),
        ({"features": {"kind": "UnitBall"}}, ["plan.features.dimension must be given"]),
        ({"policy": {"scale": 4.0}}, ["plan.policy", "a table with a kind"]),
        ({"budget": 1.0}, ["plan.budget", "a table"]),
        ({"policy": {"kind": "SquareCB", "scale": "much"}}, ["plan.policy.scale", "'much'"]),
        ({"n_actions": "3"}, ["n_actions", "'3'"]),
        ({"horizon": 10.5}, ["horizon", "10.5"]),
        ({"format": "discreet-plan/9"}, ["plan.format", "'discreet-plan/9'"]),
    ],
)
def test_a_missing_or_wrong_value_says_where(changes, words):
    with refused(dc.InvalidInput, *words):
        dc.Plan.from_config(document(**changes))


def test_a_finite_class_keeps_its_bits():
    weights = np.random.default_rng(0).normal(size=(3, 2, 4))
    read = from_config(ORACLES, to_config(dc.FiniteClass(weights)), "oracle")
    twice = from_config(ORACLES, to_config(read), "oracle")
    np.testing.assert_array_equal(read.weights, twice.weights)
    np.testing.assert_allclose(read.weights, weights, atol=2.0**-52 * np.abs(weights).max())


def test_decimals_are_text_and_whole_numbers_are_numbers():
    decimals = {"scale": "16.0", "exponent": "0.5"}
    assert to_config(dc.SquareCB(scale=16, exponent=0.5)) == {"kind": "SquareCB", **decimals}
    assert to_config(dc.UnitBall(np.int64(3))) == {"kind": "UnitBall", "dimension": 3}
    assert type(to_config(dc.UnitBall(np.int64(3)))["dimension"]) is int


def test_what_was_added_later_is_written_only_where_it_says_something():
    """Documents of before keep their bytes, and so their digests."""
    plain = {"kind": "Number", "name": "a", "low": "0.0", "high": "1.0", "clip": False}
    assert to_config(dc.Number("a", 0, 1)) == plain
    assert to_config(dc.Number("a", 0, 1, stand_in=0)) == {**plain, "stand_in": "0.0"}
    pair = [dc.Number("a", 0, 1, indicator=True), dc.Number("b", 0, 1)]
    assert to_config(pair[0]) == {**plain, "indicator": True}
    assert "products" not in to_config(dc.Schema(pair))
    assert to_config(dc.Schema(pair, products=[("a", "b")]))["products"] == [["a", "b"]]
