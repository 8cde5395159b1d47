"""``discreet report``: one page from releases, and no file after an error."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

MARKUP = "<b>mail</b>"


def saved(path, *, control=None, rounds=600, guardrails=None):
    """Releases of a plan whose second action is the good one."""
    named = {"actions": ["none", MARKUP], "outcome": dc.Reward(0, 50), "features": dc.UnitBall(1)}
    parts = {"control": control, "guardrails": guardrails}
    plan = dc.Plan(**named, **parts, budget=dc.Budget(8.0, 1e-5))
    learner = dc.Learner(plan, draws=np.random.default_rng(0))
    for _ in range(rounds // 50):
        decided = learner.decide(np.zeros((50, 1)))
        learner.observe(
            decided.id, reward=np.where(np.asarray(decided.action) == MARKUP, 40.0, 5.0)
        )
    learner.released.save(path)
    return str(path)


@pytest.fixture
def report(document, tmp_path):
    """The document and the folder of a report on a file."""
    out = tmp_path / "page"
    return lambda source, code=0: (document("report", source, "--out", out, code=code), out)


def test_a_page_has_results_lift_and_guarantee(report, tmp_path):
    rails = [dc.Guardrail("complaints")]
    source = saved(tmp_path / "released.json", control=dc.Control(0.3), guardrails=rails)
    document, out = report(source)
    page = (out / "index.html").read_text()
    assert not document["guardrails"][0]["alert"]  # nobody reported any
    assert '<th scope="row">complaints</th>' in page
    assert document["lift"]["verdict"].capitalize() in page
    assert document["attacker"] in page
    assert f"{document['records']:,} records in {document['releases']} releases" in page
    assert page.count("<svg") == 2
    assert 'href="label.html"' in page
    assert (out / "label.html").exists()
    assert MARKUP not in page
    assert "&lt;b&gt;mail&lt;/b&gt;" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")  # nothing is loaded


def test_releases_of_an_evaluation_are_not_private(report, tmp_path):
    """Its noise is seeded."""
    x = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(2), budget=dc.Budget(1.0, 1e-5))
    dc.evaluate(plan, x, (x[:, 0] > 0).astype(int), seed=0).released.save(tmp_path / "e.json")
    document, out = report(tmp_path / "e.json")
    assert not document["private"]
    assert "No privacy" in (out / "index.html").read_text()


@pytest.mark.parametrize(
    ("rounds", "cut", "facts"),
    [(0, 0, "nothing was released"), (600, 40, "SON")],
    ids=["no release yet", "an altered file"],
)
def test_an_error_writes_nothing(report, tmp_path, rounds, cut, facts):
    source = tmp_path / "released.json"
    saved(source, rounds=rounds)
    source.write_bytes(source.read_bytes()[: -cut or None])
    document, out = report(source, code=2)
    assert facts in document["error"]
    assert not out.exists()
