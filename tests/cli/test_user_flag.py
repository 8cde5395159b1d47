"""``--user``: ε for all that one person contributes, in runs, curves and campaigns."""

import json

import numpy as np
import pytest

import discreet as dc
from discreet.data import load

QUICK = ["--epsilon", "8", "--seeds", "2"]
BOUND = "at most 2 records in each of at most 3 batches"


@pytest.fixture
def sales(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{x:.3f},p{person},{'yes' if x > 0 else 'no'}"
        for x, person in zip(rng.uniform(-0.9, 0.9, 150), rng.integers(0, 30, 150), strict=True)
    ]
    (tmp_path / "sales.csv").write_text("\n".join(["size,who,bought", *lines]))
    return tmp_path / "sales.csv"


def plan(epsilon, batches=4, records=1):
    budget = dc.Budget(epsilon, 1e-5)
    often = {"unit": "user", "batches_per_user": batches, "records_per_batch": records}
    return dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=budget, **often)


def alone(sales, epsilon, batches=4, records=1):
    """The same runs, one after the other."""
    data = load(sales, user="who")
    asked = (plan(epsilon, batches, records), data.contexts, data.labels)
    return [dc.evaluate(*asked, users=data.users, seed=seed).loss for seed in (0, 1)]


@pytest.mark.parametrize("often", [{}, {"batches_per_user": 3, "records_per_batch": 2}])
def test_a_run(call, document, sales, often):
    words = [word for name, value in often.items() for word in ("--set", f"{name}={value}")]
    flags = ["run", "--data", sales, "--user", "who", *words, *QUICK, "--quiet"]
    found = document(*flags)
    assert found["losses"] == pytest.approx(alone(sales, 8.0, *often.values()))
    assert found["plan"]["unit"] == "user"
    bound = BOUND if often else "at most 1 record in each of at most 4 batches"
    assert f"for one user, with {bound}" in call(*flags)[1]


def test_a_curve(document, sales):
    often = ["--batches-per-user", "3", "--records-per-batch", "2"]
    flags = ["curve", "--data", sales, "--user", "who", *often, *QUICK, "--quiet"]
    found = document(*flags)
    assert found["table"][0]["loss"] == pytest.approx(np.mean(alone(sales, 8.0, 3, 2)))
    assert any(BOUND in note and "30 users" in note for note in found["notes"])
    cut = document(*flags, "--rows", 100)
    assert cut["rounds"] == 100


def test_a_curve_in_python(sales):
    found = dc.privacy_curve(sales, users="who", epsilons=[8.0], seeds=2)
    assert found.losses[0] == pytest.approx(alone(sales, 8.0))
    assert found.plan.participation.batches == 4
    data = load(sales, user="who")
    again = dc.privacy_curve(
        data.contexts, data.labels, users=data.users, epsilons=[8.0], seeds=2, plan=plan(1.0)
    )
    assert (again.losses == found.losses).all()


def test_a_campaign(call, document, sales, tmp_path):
    pytest.importorskip("pyarrow")
    from discreet.lab.campaign.result_files import read

    out = tmp_path / "out"
    often = ["--batches-per-user", "3", "--records-per-batch", "2"]
    machine = ["--device", "numpy", "--jobs", "1", "--out", out]
    flags = ["campaign", "run", "--preset", "default", "--data", sales, "--user", "who"]
    document(*flags, *often, *QUICK, *machine)
    found = sorted(read(out).to_pylist(), key=lambda row: row["seed"])
    assert [row["loss"] for row in found] == pytest.approx(alone(sales, 8.0, 3, 2), abs=0.02)
    status = document("campaign", "status", out)
    assert status["grid"]["participation"] == {"batches": 3, "records": 2}
    assert BOUND in call("campaign", "status", out)[1]
    # A folder is of one column of ids and of one bound.
    assert "participation must be" in call(*flags, *QUICK, *machine)[2]
    assert call(*flags[:-2], *QUICK, *machine)[0] == 2
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["reading"] == {"user": "who"}
    from discreet.lab.report.tables import rerun_command

    assert "--user who --batches-per-user 3 --records-per-batch 2" in rerun_command(manifest)


REFUSED = {
    "no column": (["run", "--set", "unit=user"], "Add --user COLUMN"),
    "no file": (["run", "--user", "who", "--data", "fried"], "user must be left out"),
    "curve": (["curve", "--batches-per-user", "3"], "Add --user COLUMN"),
    "campaign": (["campaign", "run", "--records-per-batch", "3", "--out", "o"], "--user COLUMN"),
    "campaign of a set": (
        ["campaign", "run", "--preset", "default", "--user", "who", "--data", "fried:60"],
        "'fried:60' is none",
    ),
    "no bound is known": (
        [
            *("campaign", "run", "--preset", "quick", "--mechanism", "structured"),
            *("--user", "who", "--records-per-batch", "2", "--algorithms", "LinUCB"),
            *("--oracles", "Logistic", "--epsilon", "1", "--ridges", "0.1"),
        ],
        "records_per_batch must be 1",
    ),
    "plan": (["plan", "--user", "who", "--actions", "2", "--dimension", "2"], "come with data"),
}


@pytest.mark.parametrize(("words", "said"), REFUSED.values(), ids=REFUSED)
def test_refusals(refuses, sales, here, words, said):
    data = [] if {"--data", "--actions"} & set(words) else ["--data", sales]
    out = ["--out", "o"] if words[0] == "campaign" and "--out" not in words else []
    refuses(*words, *data, *out, said=said)
    assert not (here / "o").exists()
