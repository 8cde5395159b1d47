"""A released predictor as an ONNX model, for runtimes in other languages.

It is a product, a sum and a link, so ``onnx.helper`` writes it whole. Exploration is not part of
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
from discreet.types import Floats
from discreet.validate import installed

OPSET = 17
"""Old enough for runtimes of 2022, and it has double precision for every operator used here."""


def onnx_model(released: Released) -> Any:
    """The newest release as ``onnx.ModelProto``, in double precision.

    Where the plan reads contexts with ``UnitBall``, the input is ``contexts`` (n, d); otherwise it
    is ``features`` (n, p), as ``plan.features.map`` makes them. The outputs are ``losses`` (n, A),
    in [0, 1] for every outcome of a plan, and ``action`` (n,), the place of the smallest. With
    joint features rows are pairs of context and action, and ``losses`` is (n, 1), without actions.
    The metadata name the actions, the release and its digest.
    """
    installed("onnx", "to write ONNX models", "onnx")
    from onnx import TensorProto, checker, helper

    if released.latest is None or released.plan is None:
        raise InvalidInput(
            "released must have a plan and at least one release; it has none. "
            "Pass learner.released after the first release, or Released.load(path)."
        )
    predictor = released.latest.predictor
    weights = np.asarray(predictor.weights, dtype=np.float64)
    kind = released.plan["features"]["kind"]
    ball, joint = kind == "UnitBall", kind == "Joint"
    graph = _Graph(helper, TensorProto.DOUBLE)
    width = weights.shape[-1] - 1 if ball else weights.shape[-1]
    given = "contexts" if ball else "features"
    if ball:
        rows = graph.shortened(given)
        scores = graph.add("MatMul", rows, graph.constant("weights", SQRT_HALF * weights[:, 1:].T))
        scores = graph.add("Add", scores, graph.constant("bias", SQRT_HALF * weights[:, 0]))
    else:
        scores = graph.add("MatMul", given, graph.constant("weights", weights.T))
    graph.linked(predictor.link, scores)
    tensor = helper.make_tensor_value_info
    outputs = [tensor("losses", TensorProto.DOUBLE, ["n", len(weights)])]
    if not joint:
        graph.add("ArgMin", "losses", to="action", axis=-1, keepdims=0)
        outputs.append(tensor("action", TensorProto.INT64, ["n"]))
    inputs = [tensor(given, TensorProto.DOUBLE, ["n", width])]
    made = helper.make_graph(graph.nodes, "discreet", inputs, outputs, graph.constants)
    model = helper.make_model(
        made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="discreet"
    )
    plan, latest = released.plan, released.latest
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


class _Graph:
    """Nodes and constants, in the order in which they are computed."""

    def __init__(self, helper: Any, kind: int) -> None:
        self.helper, self.kind = helper, kind
        self.nodes: list[object] = []
        self.constants: list[object] = []

    def constant(self, name: str, values: Floats | float) -> str:
        array = np.asarray(values, dtype=np.float64)
        tensor = self.helper.make_tensor(name, self.kind, array.shape, array.ravel().tolist())
        self.constants.append(tensor)
        return name

    def add(self, operator: str, *inputs: str, to: str | None = None, **settings: object) -> str:
        name = to or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, [*inputs], [name], **settings))
        return name

    def shortened(self, rows: str) -> str:
        """c / max(1, ‖c‖), as ``UnitBall`` computes it, without squares that overflow.

        With c' = c / max(1, max|c|) it is c' / max(1, ‖c'‖): where c' ≠ c, ‖c'‖ is at least 1.
        """
        one = self.constant("one", 1.0)
        largest = self.add("ReduceMax", self.add("Abs", rows), axes=[-1], keepdims=1)
        small = self.add("Div", rows, self.add("Max", largest, one))
        squares = self.add("ReduceSumSquare", small, axes=[-1], keepdims=1)
        return self.add("Div", small, self.add("Max", self.add("Sqrt", squares), one))

    def linked(self, link: str, scores: str) -> None:
        """The predictor's link, from scores to ``losses``."""
        ends = [self.constant("low", 0.0), self.constant("high", 1.0)] if link == "clip" else []
        operator = {"logistic": "Sigmoid", "clip": "Clip"}.get(link, "Identity")
        self.add(operator, scores, *ends, to="losses")
