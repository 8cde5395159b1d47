"""The classifier in scikit-learn's shape: its contract, what it costs, and what it refuses."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import discreet as dc
from discreet.adapters.private_classifier import PrivateClassifier, on_the_simplex
from discreet.errors import InvalidInput
from tolerances import EXACT

ROWS = 1_000
X = np.random.default_rng(0).uniform(-2, 2, size=(ROWS, 3))
Y = np.where(X[:, 0] > 0.5, "high", np.where(X[:, 0] < -0.5, "low", "middle"))
CLASSES = ["low", "middle", "high"]


def model(**changes):
    given = {"epsilon": 8.0, "classes": CLASSES, "bounds": (-2, 2), "random_state": 0}
    return PrivateClassifier(**{**given, **changes})


def test_the_contract_of_scikit_learn():
    """Every check that applies passes; none is expected to fail.

    The checks set ``random_state``: without one two fits differ by design, which has its own test.
    Their labels vary, so the classes are those that occur.
    """
    found = check_estimator(PrivateClassifier(classes="from labels"), on_skip=None)
    assert {each["status"] for each in found} <= {"passed", "skipped"}
    skipped = {each["check_name"] for each in found if each["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # asks for a setting of SciPy
    assert len(found) > 50


@pytest.mark.parametrize("oracle", [None, dc.Ridge(), dc.Logistic()])
def test_a_fit_is_a_learner_that_imports_a_log(oracle):
    fitted = model(oracle=oracle, bounds=None).fit(X, Y)
    plan = dc.Plan(
        n_actions=3, features=dc.UnitBall(3), budget=dc.Budget(8.0, 1e-5), policy=dc.Greedy(),
        oracle=oracle or dc.PooledRidge(), feedback="full", losses="one_label", imported=ROWS,
    )  # fmt: skip
    learner = dc.Learner(plan, noise=dc.SeededNoise(0))
    learner.import_log(X, None, (Y[:, None] != np.array(sorted(CLASSES))) * 1.0)
    assert fitted.released_.plan == plan.to_config()
    assert fitted.released_.latest.digest == learner.released.latest.digest
    losses = learner.released.latest.predictor.losses(plan.features.map(X))
    assert (fitted.predict(X) == np.array(sorted(CLASSES))[losses.argmin(axis=1)]).all()


def test_every_fit_of_an_object_adds_up_and_a_seed_buys_nothing():
    one = model(random_state=None, epsilon=1.0).fit(X, Y)
    once = one.spent_
    one.fit(X, Y)
    assert once < one.spent_ < 2.0 + 1e-9
    assert clone(one).fit(X, Y).spent_ == once
    assert model().fit(X, Y).spent_ == math.inf


def test_what_is_refused_costs_nothing_and_leaves_the_model():
    narrow = dc.Schema([dc.Number(name, -2, 2) for name in "abc"])
    one = model(random_state=None, features=narrow, bounds=None).fit(X, Y)
    before, spent = one.predict(X), one.spent_
    with pytest.raises(InvalidInput, match="y must hold declared classes"):
        one.fit(X, np.where(Y == "low", "other", Y))
    with pytest.raises(ValueError, match="NaN"):
        one.fit(np.where(X > 1.9, np.nan, X), Y)
    with pytest.raises(InvalidInput, match=r"in \[-2, 2\]"):  # the learner itself refuses the log
        one.fit(X * 2, Y)
    assert one.spent_ == spent
    assert (one.predict(X) == before).all()


def test_partial_fits_go_on_and_cost_once():
    one = model(random_state=None).partial_fit(X[:5], Y[:5])  # the first batch is not full
    np.testing.assert_array_equal(one.predict_proba(X[:2]), np.full((2, 3), 1 / 3))
    assert (one.spent_, one.release_) == (0.0, None)
    for part in range(0, ROWS, 100):
        one.partial_fit(X[part : part + 100], Y[part : part + 100])
    assert one.spent_ <= 8.0
    assert len(one.released_.items) >= 6
    assert one.score(X, Y) > 0.6
    fitted = model(random_state=None).fit(X, Y)
    releases = len(fitted.released_.items)
    fitted.partial_fit(X[:16], Y[:16])
    assert len(fitted.released_.items) == releases + 1
    assert fitted.spent_ <= 8.0


def test_a_copy_predicts_and_cannot_go_on():
    one = model().partial_fit(X[:100], Y[:100])
    for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        np.testing.assert_array_equal(other.predict_proba(X), one.predict_proba(X))
        assert other.spent_ == one.spent_
        with pytest.raises(InvalidInput, match="this is a copy"):
            other.partial_fit(X[:100], Y[:100])
    assert b"_learner" not in pickle.dumps(one)


def test_frames_with_a_schema():
    frame = pd.DataFrame({"age": (X[:, 0] + 2) * 20, "device": np.where(X[:, 1] > 0, "p", "d")})
    columns = dc.Schema([dc.Number("age", 0, 80), dc.Category("device", ["p", "d"])])
    one = model(features=columns, bounds=None).fit(frame, Y)
    assert one.score(frame, Y) > 0.7
    assert one.feature_names_in_.tolist() == ["age", "device"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"classes": None}, "classes must be a list of all classes"),
        ({"classes": ["low"]}, "two or more"),
        ({"bounds": (1, -1)}, "low < high"),
        ({"bounds": ([0, 1], 3)}, "bounds must be"),
        ({"features": dc.UnitBall(3)}, "bounds must be left out"),
        ({"features": dc.Schema([dc.Number("a", 0, 1)]), "bounds": None}, "X must have 1 columns"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_mistakes(change, said):
    with pytest.raises(InvalidInput, match=said):
        model(**change).fit(X, Y)


def test_probabilities_are_the_nearest_point_of_the_simplex():
    scores = np.random.default_rng(1).normal(size=(50, 4))
    found = on_the_simplex(scores)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=EXACT)
    assert (found >= 0).all()
    assert (found.argmax(axis=1) == scores.argmax(axis=1)).all()
    distance = ((scores - found) ** 2).sum(axis=1)
    for other in np.random.default_rng(2).dirichlet(np.ones(4), size=200):
        assert (((scores - other) ** 2).sum(axis=1) >= distance - EXACT).all()
