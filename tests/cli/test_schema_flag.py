"""``--schema`` and ``[features] kind = "Schema"``: columns of a file are matched by name."""

from __future__ import annotations

import json

import pytest

import discreet as dc
from discreet.data import load
from discreet.data.dataset import schema_contexts
from discreet.lab.report.tables import rerun_command
from tolerances import EXACT

SCHEMA = dc.Schema(
    [
        dc.Number("age", 0, 100),
        dc.Flag("member"),
        dc.Category("zone", ["1", "2"], other=True),
        dc.Category("device", ["phone", "desk"], stand_in="desk"),
        dc.Date("seen", ["weekday"]),
    ]
)
EXPERIMENT = (
    'data = "sales.csv"\ntarget = "bought"\nseeds = 1\nbudget = {epsilon = 4.0, delta = 1e-5}\n'
)


@pytest.fixture
def sales(here):
    """The class is in the middle, the order is not the schema's, and one column is not in it."""
    lines = [
        f"{'phone' if n % 2 else ''},{n % 3},{n % 90},{'yes' if n % 2 else 'no'},"
        f"{'true' if n % 5 else 'false'},2024-01-{n % 28 + 1:02d},{n}"
        for n in range(120)
    ]
    header = "device,zone,age,bought,member,seen,id"
    (here / "sales.csv").write_text("\n".join([header, *lines]))
    SCHEMA.to_toml(here / "schema.toml")
    return here


def test_columns_become_contexts_by_name(sales):
    data = load(sales / "sales.csv", target="bought", encoded=False)
    first, second = schema_contexts(SCHEMA, data)[:2]
    assert first == {"age": 0, "member": False, "zone": "0", "device": None, "seen": "2024-01-01"}
    assert second["device"] == "phone"
    assert second["member"] is True


def test_the_table_of_an_experiment_and_the_flag_are_the_same_run(document, sales):
    where = ["--data", "sales.csv", "--target", "bought", "--schema", "schema.toml"]
    by_flag = document("run", *where, "--epsilon", 4, "--seeds", 1)
    features = SCHEMA.to_toml().replace("[[fields]]", "[[features.fields]]")
    table = '[features]\nkind = "Schema"\n' + features
    (sales / "table.toml").write_text(EXPERIMENT + table)
    (sales / "file.toml").write_text(EXPERIMENT + 'schema = "schema.toml"\n')
    data = load("sales.csv", target="bought", encoded=False)
    plan = dc.Plan(n_actions=2, features=SCHEMA, budget=dc.Budget(4.0, 1e-5))
    expected = dc.evaluate(plan, schema_contexts(SCHEMA, data), data.labels, seed=0)
    for found in (by_flag, document("run", "table.toml"), document("run", "file.toml")):
        assert found["plan_digest"] == plan.digest
        assert found["losses"] == pytest.approx([expected.loss], abs=EXACT)
    assert document("plan", "file.toml")["plan_digest"]


def test_a_campaign_remembers_how_its_files_were_read(sales, call, refuses):
    usual = ["campaign", "run", "--data", "sales.csv", "--out", "results", "--preset", "default"]
    small = ["--seeds", "1", "--epsilon", "4", "--device", "numpy", "--jobs", "1"]
    asked = ["--target", "bought", "--schema", "schema.toml"]
    assert call(*usual, *small, *asked)[0] == 0
    manifest = json.loads((sales / "results" / "manifest.json").read_text())
    assert manifest["reading"]["target"] == "bought"
    about = manifest["datasets"]["sales"]
    assert (about["actions"], about["features"]) == (2, SCHEMA.p - 1)
    told = rerun_command(manifest)
    assert "--schema SCHEMA.toml --target bought" in told
    refuses(*usual, *small, "--target", "bought", said="schema, target and user must be")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["run", "--data", "fried", "--schema", "schema.toml"], "file with named columns"),
        (["run", "--data", "sales.csv", "--target", "zone", "--schema", "schema.toml"], "'zone'"),
        (["run", "--data", "sales.csv", "--schema", "none.toml"], "none.toml"),
    ],
)
@pytest.mark.usefixtures("sales")
def test_what_a_schema_cannot_do_is_said(flags, said, refuses):
    refuses(*flags, said=said)
