"""What a plan costs a machine, as ``explain``, ``discreet plan`` and ``--init`` say it."""

import json

import numpy as np
import pytest

import discreet as dc
from discreet.cli.main import main
from discreet.plan.explanation import LARGE, plan_size
from small_plans import small_plan


def plan(dimension, actions, **words):
    return small_plan(n_actions=actions, features=dc.UnitBall(dimension), **words)


CASES = {
    "default": {},
    "full feedback": {"feedback": "full"},
    "plain geometry": {"oracle": dc.PooledRidge(geometry="plain")},
    "radii": {"policy": dc.LinUCB(), "oracle": dc.PooledRidge()},
    "one batch": {"policy": dc.SquareCB(), "oracle": dc.Ridge()},
    "radii of one batch": {"policy": dc.LinUCB(), "oracle": dc.Ridge()},
}


@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
@pytest.mark.parametrize(("dimension", "actions"), [(12, 4), (30, 3)])
def test_a_document_is_about_as_large_as_stated(dimension, actions, words):
    made = plan(dimension, actions, first_batch=4000, **words)  # beyond the noise
    learner = dc.Learner(made, noise=dc.SecureNoise(fast=True), window=None)
    rng = np.random.default_rng(0)
    for _ in range(2):  # the second release has a learned matrix
        size = made.schedule.length(len(learner.released.items) + 1)
        decided = learner.decide(rng.normal(size=(size, dimension)) / dimension**0.5)
        full = made.feedback == "full"
        learner.observe(decided.id, rng.random((size, actions) if full else size))
        learner.release()
    written = len(json.dumps(learner.released.latest.to_json()))
    assert 0.6 < (written - 500) / plan_size(made).document < 1.2  # 500: names and digests


def test_a_large_plan_is_called_large_everywhere(tmp_path, monkeypatch, capsys):
    large = plan(400, 20)
    size = plan_size(large)
    assert 25e6 < size.document < 45e6
    assert 15.0 < size.seconds < 60.0
    for words in ("document of about 35 MB", "35 s on one core", "MB of memory", "Catalogue"):
        assert words in " ".join(large.explain().split())
    assert main(["plan", "--actions", "20", "--dimension", "400", "--epsilon", "1"]) == 0
    assert "Warning: this plan is large: documents of about 35 MB" in capsys.readouterr().out
    (tmp_path / "large.toml").write_text(
        'experiment = "large"\nunit = "decision"\nwindow = "1h"\n[plan]\nn_actions = 20\n'
        'features = { kind = "UnitBall", dimension = 400 }\n'
        "budget = { epsilon = 1.0, delta = 1e-5 }\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--init", "--config", "large.toml"]) == 0
    assert "Warning: this plan is large" in capsys.readouterr().out


def test_an_ordinary_plan_states_its_size_without_a_warning(capsys):
    small = plan(10, 3)
    assert plan_size(small).warning is None
    assert "Size      A release is a document of about 9.1 kB" in small.explain()
    assert "Careful" not in small.explain()
    assert main(["plan", "--actions", "3", "--dimension", "10", "--epsilon", "1", "--json"]) == 0
    size = json.loads(capsys.readouterr().out)["size"]
    assert size["document_bytes"] == plan_size(small).document < LARGE
    assert size["warning"] is None
