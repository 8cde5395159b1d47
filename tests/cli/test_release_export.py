"""``discreet release export`` writes the newest predictor for other runtimes."""

import json

import numpy as np
import onnxruntime

import discreet as dc
from discreet.cli.main import main


def saved(tmp_path):
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=dc.Budget(8.0, 1e-5), imported=50)
    learner = dc.Learner(plan)
    rows = np.linspace(-1, 1, 50)[:, None]
    learner.import_log(rows, np.arange(50) % 2, (rows[:, 0] > 0) * 1.0)
    learner.released.save(tmp_path / "released.json")
    return learner.released, str(tmp_path / "released.json")


def test_the_newest_release_is_written(tmp_path, capsys):
    released, path = saved(tmp_path)
    out = tmp_path / "model.onnx"
    assert main(["release", "export", path, "--onnx", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["release"] == len(released.items)
    assert said["digest"] == released.latest.digest
    session = onnxruntime.InferenceSession(out.read_bytes())
    losses, _ = session.run(None, {"contexts": np.array([[0.5]])})
    assert losses.shape == (1, 2)


def test_a_folder_that_is_not_there_is_said_in_one_line(tmp_path, capsys):
    _, path = saved(tmp_path)
    assert main(["release", "export", path, "--onnx", str(tmp_path / "no" / "model.onnx")]) == 2
    assert "output must be writable" in capsys.readouterr().err
