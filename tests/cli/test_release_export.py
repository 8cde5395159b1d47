"""``discreet release export`` writes the newest predictor for other runtimes."""

import numpy as np
import onnxruntime

import discreet as dc


def test_the_newest_release_is_written(refuses, document, tmp_path):
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=dc.Budget(8.0, 1e-5), imported=50)
    learner = dc.Learner(plan)
    rows = np.linspace(-1, 1, 50)[:, None]
    learner.import_log(rows, np.arange(50) % 2, (rows[:, 0] > 0) * 1.0)
    released, path, out = learner.released, tmp_path / "released.json", tmp_path / "model.onnx"
    released.save(path)
    said = document("release", "export", path, "--onnx", out)
    assert (said["release"], said["digest"]) == (len(released.items), released.latest.digest)
    session = onnxruntime.InferenceSession(out.read_bytes())
    losses, _ = session.run(None, {"contexts": np.array([[0.5]])})
    assert losses.shape == (1, 2)
    away = tmp_path / "no" / "model.onnx"
    refuses("release", "export", path, "--onnx", away, said="output must be writable")
