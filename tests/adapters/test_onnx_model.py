"""ONNX models: what onnxruntime predicts is what the release predicts."""

import json
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest

import discreet as dc
from adapter_plays import CONTEXTS, PLAN, ROWS, TABLE
from discreet.adapters.onnx_model import onnx_model, save_onnx
from tolerances import EXACT

OPEN = replace(PLAN, horizon=None, imported=ROWS, actions=["none", "mail", "call"])
CHOSEN = np.random.default_rng(2).integers(3, size=ROWS)


def released(plan, contexts=CONTEXTS):
    learner = dc.Learner(plan)
    losses = TABLE[np.arange(ROWS), CHOSEN]
    played = CHOSEN if plan.catalogue is None else np.asarray(plan.actions.ids)[CHOSEN]
    learner.import_log(contexts, played, losses)
    return learner.released


def run(model, rows):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (given,) = session.get_inputs()
    return session.run(None, {given.name: rows}), given.name


@pytest.mark.parametrize(
    "oracle", [dc.PooledRidge(), dc.Ridge(), dc.Logistic()], ids=lambda each: type(each).__name__
)
def test_contexts_go_in_and_the_same_losses_come_out(oracle):
    policy = dc.SquareCB(scale=16.0) if isinstance(oracle, dc.Logistic) else OPEN.policy
    told = released(replace(OPEN, oracle=oracle, policy=policy))
    rows = np.concatenate([CONTEXTS, 10 * CONTEXTS, np.zeros((1, 4)), np.full((1, 4), 1e300)])
    (losses, action), name = run(onnx_model(told), rows)
    expected = told.latest.predictor.losses(OPEN.features.map(rows))
    assert name == "contexts"
    np.testing.assert_allclose(losses, expected, rtol=EXACT, atol=EXACT)
    np.testing.assert_array_equal(action, expected.argmin(axis=1))


def test_with_a_schema_features_go_in():
    plan = replace(OPEN, features=dc.Schema([dc.Number(f"c{at}", -1, 1) for at in range(4)]))
    rows = [{f"c{at}": float(value) for at, value in enumerate(row)} for row in CONTEXTS]
    told = released(plan, rows)
    features = plan.features.map(rows)
    (losses, _), name = run(onnx_model(told), features)
    assert name == "features"
    expected = told.latest.predictor.losses(features)
    np.testing.assert_allclose(losses, expected, rtol=EXACT, atol=EXACT)


def test_of_a_catalogue_pairs_go_in():
    items = {"a": [0.1], "b": [0.5], "c": [-0.5]}
    plan = replace(OPEN, n_actions=None, actions=dc.Catalogue(dc.UnitBall(1), items))
    told = released(plan)
    pairs = plan.features.rows(plan.features.map(CONTEXTS), plan.catalogue.rows[CHOSEN])
    (losses,), _ = run(onnx_model(told), pairs)
    expected = told.latest.predictor.losses(pairs)
    np.testing.assert_allclose(losses, expected, rtol=EXACT, atol=EXACT)


def test_the_file_says_what_it_is(tmp_path):
    told = released(OPEN)
    save_onnx(told, tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    said = {each.key: each.value for each in model.metadata_props}
    assert json.loads(said["actions"]) == ["none", "mail", "call"]
    assert (said["digest"], said["release"]) == (told.latest.digest, str(told.latest.number))
    assert (said["event"], said["epsilon"], said["unit"]) == ("Gaussian", "4.0", "decision")
