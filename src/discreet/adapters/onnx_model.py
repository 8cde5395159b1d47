"""A released predictor as an ONNX model, for runtimes in other languages.

It is a product, a sum and a link, so its text is short. Exploration is not part of
it: a model predicts losses, and always playing the smallest stops learning.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.unit_ball import SQRT_HALF
from discreet.releases.canonical import write_atomically
from discreet.releases.released import Released
from discreet.types import Array
from discreet.validate import installed

MODEL = """
<ir_version: 8, opset_import: ["" : 17], producer_name: "discreet">
discreet (double[n, {width}] {given}) => (double[n, {actions}] losses{action}) {{
{steps}
}}
"""
"""Opset 17 is old enough for runtimes of 2022, and has double precision for every operator here."""
SHORTENED = """
  absolute = Abs (contexts)
  largest = ReduceMax <axes = [-1], keepdims = 1> (absolute)
  divisor = Max (largest, one)
  small = Div (contexts, divisor)
  squares = ReduceSumSquare <axes = [-1], keepdims = 1> (small)
  root = Sqrt (squares)
  length = Max (root, one)
  rows = Div (small, length)
  products = MatMul (rows, weights)
  scores = Add (products, bias)
"""
"""Scores of c / max(1, ‖c‖), as ``UnitBall`` computes it, without squares that overflow.

With c' = c / max(1, max|c|) it is c' / max(1, ‖c'‖): where c' ≠ c, ‖c'‖ is at least 1.
"""
LINKS = {"logistic": "Sigmoid (scores)", "clip": "Clip (scores, zero, one)"}


def onnx_model(released: Released) -> Any:
    """Return the newest release as ``onnx.ModelProto``, in double precision.

    Where the plan reads contexts with ``UnitBall``, the input is ``contexts`` (n, d); otherwise it
    is ``features`` (n, p), as ``plan.features.map`` makes them. The outputs are ``losses`` (n, A),
    in [0, 1] for every outcome of a plan, and ``action`` (n,), the number of the smallest. With
    joint features rows are pairs of context and action, and ``losses`` is (n, 1), without actions.
    The metadata name the actions, the release and its digest.
    """
    installed("onnx", "to write ONNX models", "onnx")
    from onnx import checker, helper, numpy_helper, parser

    if released.latest is None or released.plan is None:
        raise InvalidInput(
            "released must have a plan and at least one release; it has none. "
            "Pass learner.released after the first release, or Released.load(path)."
        )
    plan, latest = released.plan, released.latest
    weights = np.asarray(latest.predictor.weights, dtype=np.float64)
    kind = plan["features"]["kind"]
    given, steps = "features", "  scores = MatMul (features, weights)\n"
    constants: dict[str, Array] = {"weights": weights.T}
    if kind == "UnitBall":
        given, steps = "contexts", SHORTENED
        scaled = SQRT_HALF * weights
        constants |= {"weights": scaled[:, 1:].T, "bias": scaled[:, 0], "one": 1.0}
    if latest.predictor.link == "clip":
        constants |= {"zero": 0.0, "one": 1.0}
    steps += f"  losses = {LINKS.get(latest.predictor.link, 'Identity (scores)')}\n"
    if kind != "Joint":
        steps += "  action = ArgMin <axis = -1, keepdims = 0> (losses)"
    sizes = {"width": len(constants["weights"]), "actions": len(weights)}
    action = "" if kind == "Joint" else ", int64[n] action"
    model = parser.parse_model(MODEL.format(given=given, action=action, steps=steps, **sizes))
    for name, values in constants.items():
        tensor = numpy_helper.from_array(np.array(values, dtype=np.float64, order="C"), name)
        model.graph.initializer.append(tensor)
    metadata = {
        "plan": latest.plan_digest,
        "release": str(latest.number),
        "digest": latest.digest,
        "event": type(latest.event).__name__,
        "epsilon": str(plan["budget"]["epsilon"]),
        "delta": str(plan["budget"]["delta"]),
        "unit": str(plan["unit"]),
    }
    if released.actions is not None:
        metadata["actions"] = json.dumps([*released.actions], ensure_ascii=False)
    helper.set_model_props(model, metadata)
    checker.check_model(model)
    return model


def save_onnx(released: Released, path: str | Path) -> None:
    """Write ``onnx_model(released)`` to a file, which anyone may read."""
    write_atomically(Path(path), onnx_model(released).SerializeToString(), mode=0o644)
