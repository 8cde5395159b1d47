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
    made = released(replace(OPEN, oracle=oracle, policy=policy))
    rows = np.concatenate([CONTEXTS, 10 * CONTEXTS, np.zeros((1, 4)), np.full((1, 4), 1e300)])
    (losses, action), name = run(onnx_model(made), rows)
    expected = made.latest.predictor.losses(OPEN.features.map(rows))
    assert name == "contexts"
    np.testing.assert_allclose(losses, expected, rtol=EXACT, atol=EXACT)
    np.testing.assert_array_equal(action, expected.argmin(axis=1))


@pytest.mark.parametrize("kind", ["schema", "catalogue"])
def test_features_go_in_where_contexts_are_no_numbers(kind):
    """Those of a catalogue are of pairs of context and action."""
    schema = dc.Schema([dc.Number(f"c{at}", -1, 1) for at in range(4)])
    rows = [{f"c{at}": float(value) for at, value in enumerate(row)} for row in CONTEXTS]
    plan, features = replace(OPEN, features=schema), schema.map(rows)
    if kind == "catalogue":
        items = {"a": [0.1], "b": [0.5], "c": [-0.5]}
        plan = replace(plan, n_actions=None, actions=dc.Catalogue(dc.UnitBall(1), items))
        features = plan.features.rows(features, plan.catalogue.rows[CHOSEN])
    model = released(plan, rows)
    (losses, *_), name = run(onnx_model(model), features)
    assert name == "features"
    expected = model.latest.predictor.losses(features)
    np.testing.assert_allclose(losses, expected, rtol=EXACT, atol=EXACT)


def test_the_file_says_what_it_is(tmp_path):
    made = released(OPEN)
    save_onnx(made, tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    metadata = {each.key: each.value for each in model.metadata_props}
    assert json.loads(metadata["actions"]) == ["none", "mail", "call"]
    assert (metadata["digest"], metadata["release"]) == (
        made.latest.digest,
        str(made.latest.number),
    )
    assert (metadata["event"], metadata["epsilon"], metadata["unit"]) == (
        "Gaussian",
        "4.0",
        "decision",
    )
