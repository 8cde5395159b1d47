"""Flags that commands share: target, schema, groups, users, rewards, and advice."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.cli.command_line import as_json
from discreet.data import load
from discreet.data.dataset import schema_contexts
from discreet.text import about
from tolerances import EXACT

QUICK = ["--epsilon", "8", "--seeds", "2", "--quiet"]


@pytest.fixture
def sales(here):
    """A file whose class is not the last column, in the current folder."""
    rng = np.random.default_rng(0)
    columns = zip(rng.uniform(-0.9, 0.9, 150), rng.integers(0, 30, 150), strict=True)
    lines = ["size,bought,who,region,age"]
    for n, (x, person) in enumerate(columns):
        region = "" if n < 25 else "ns"[n % 3 == 0]
        lines.append(f"{x:.3f},{'yes' if x > 0 else 'no'},p{person},{region},{n % 90}")
    (here / "sales.csv").write_text("\n".join(lines))
    return ["--data", "sales.csv", "--target", "bought"]


def contexts_of(user=None):
    """The set as the flags read it; the words of people and regions are encoded."""
    return load("sales.csv", target="bought", user=user)


# --- curve -------------------------------------------------------------------------------------


def test_a_curve_cuts_scales_and_writes_a_page(call, document, sales, here):
    raw = document("curve", *sales, *QUICK)
    cut = document("curve", *sales, *QUICK, "--rows", 60)
    assert cut["data"] == {"name": "sales", "rows": 60, "n_actions": 2}
    scaled = document("curve", *sales, *QUICK, "--features", "ranges")
    assert scaled["table"] != raw["table"]
    notes = [any("own ranges" in note for note in each["notes"]) for each in (raw, scaled)]
    assert notes == [False, True]
    code, text, _ = call("curve", *sales, *QUICK, "--out", "new/curve")
    page = (here / "new" / "curve" / "index.html").read_text()
    assert code == 0
    assert raw["verdict"] in text
    assert raw["verdict"] in page
    assert "--target bought" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_curve_refuses_scalings_of_campaigns(refuses):
    words = "features must be one of 'raw', 'ranges'"
    refuses("curve", "--data", "fried", "--features", "wide", words=words)


# --- groups ------------------------------------------------------------------------------------


def test_a_curve_by_group(call, document, sales, here):
    found = document("curve", *sales, "--group", "region", *QUICK)["groups"]
    rounds = {line["group"]: line["rounds"] for line in found}
    assert rounds == {"n": 84, "s": 41, "(missing)": 25}
    cut = document("curve", *sales, "--group", "region", "--rows", 120, *QUICK)
    drawn = np.random.default_rng(0).permutation(150)[:120]
    south = sum(row >= 25 and row % 3 == 0 for row in drawn)
    assert south != 31  # as many as there are in the first 120 rows
    assert {line["group"]: line["rounds"] for line in cut["groups"]}["s"] == south
    assert "(missing)" in call("curve", *sales, "--group", "region", *QUICK, "--out", "out")[1]
    page = (here / "out" / "index.html").read_text()
    assert "By group" in page
    assert page.count("<svg") == 2


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_run_by_group(document, refuses, sales, seeds):
    flags = ["run", *sales, *QUICK, "--seeds", seeds]
    found = document(*flags, "--group", "region")
    data, plan = contexts_of(), dc.Plan.from_config(found["plan"])
    words = np.asarray([each or "(missing)" for each in data.source.columns["region"]])
    runs = [
        dc.evaluate(plan, data.contexts, data.labels, groups=words, seed=seed).by_group()
        for seed in range(seeds)
    ]
    assert [line["loss"] for line in found["groups"]] == pytest.approx(
        np.mean([[line.loss for line in run] for run in runs], axis=0).tolist()
    )
    assert all(line["low"] <= line["loss"] <= line["high"] for line in found["groups"])
    refuses(*flags, "--group", "regio", words="Did you mean 'region'?")


# --- users -------------------------------------------------------------------------------------

OFTEN = ["--batches-per-user", "3", "--records-per-batch", "2"]
BOUND = "at most 2 records in each of at most 3 batches"


def losses_of_users(batches=4, records=1):
    """The runs of two seeds at ε = 8, one after the other."""
    data, budget = contexts_of("who"), dc.Budget(8.0, 1e-5)
    often = {"unit": "user", "batches_per_user": batches, "records_per_batch": records}
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(data.dimension), budget=budget, **often)
    return [
        dc.evaluate(plan, data.contexts, data.labels, users=data.users, seed=seed).loss
        for seed in (0, 1)
    ]


@pytest.mark.parametrize("often", [{}, {"batches_per_user": 3, "records_per_batch": 2}])
def test_a_run_of_users(call, document, sales, often):
    words = [word for name, value in often.items() for word in ("--set", f"{name}={value}")]
    flags = ["run", *sales, "--user", "who", *words, *QUICK]
    found = document(*flags)
    assert found["losses"] == pytest.approx(losses_of_users(*often.values()))
    assert found["plan"]["unit"] == "user"
    bound = BOUND if often else "at most 1 record in each of at most 4 batches"
    assert f"for one user, with {bound}" in call(*flags)[1]


def test_a_curve_of_users(document, sales):
    found = document("curve", *sales, "--user", "who", *OFTEN, *QUICK)
    assert found["table"][0]["loss"] == pytest.approx(np.mean(losses_of_users(3, 2)))
    assert any(BOUND in note and "30 users" in note for note in found["notes"])


@pytest.mark.usefixtures("sales")
def test_a_curve_in_python_reads_a_file_too(here):
    rows = [line.split(",") for line in (here / "sales.csv").read_text().splitlines()]
    last = [",".join([size, *others, bought]) for size, bought, *others in rows]
    (here / "last.csv").write_text("\n".join(last))
    found = dc.privacy_curve("last.csv", users="who", groups="region", epsilons=[8.0], seeds=2)
    assert found.losses[0] == pytest.approx(losses_of_users())
    assert {line.group for line in found.by_group()} == {"n", "s", "(missing)"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["run", "--set", "unit=user"], "Add --user COLUMN"),
        (["run", "--user", "who", "--data", "fried"], "user must be left out"),
        (["curve", "--batches-per-user", "3"], "Add --user COLUMN"),
        (["campaign", "run", "--records-per-batch", "3", "--out", "o"], "--user COLUMN"),
        (
            [
                *("campaign", "run", "--preset", "quick", "--mechanism", "structured"),
                *("--user", "who", "--records-per-batch", "2", "--algorithms", "LinUCB"),
                *("--oracles", "Logistic", "--epsilon", "1", "--ridges", "0.1", "--out", "o"),
            ],
            "records_per_batch must be 1",
        ),
        (["plan", "--user", "who", "--actions", "2", "--dimension", "2"], "come with data"),
    ],
)
def test_what_users_need(refuses, sales, here, flags, words):
    data = [] if {"--data", "--actions"} & set(flags) else sales
    refuses(*flags, *data, words=words)
    assert not (here / "o").exists()


# --- schemas -----------------------------------------------------------------------------------

SCHEMA = dc.Schema([dc.Number("age", 0, 100), dc.Category("region", ["n", "s"], stand_in="n")])


def test_a_schema_is_a_flag_a_key_or_a_table(document, sales, here):
    SCHEMA.to_toml(here / "schema.toml")
    by_flag = document("run", *sales, "--schema", "schema.toml", "--epsilon", 4, "--seeds", 1)
    text = 'data = "sales.csv"\ntarget = "bought"\nseeds = 1\n'
    text += "budget = {epsilon = 4.0, delta = 1e-5}\n"
    features = SCHEMA.to_toml().replace("[[fields]]", "[[features.fields]]")
    (here / "table.toml").write_text(f'{text}[features]\nkind = "Schema"\n{features}')
    (here / "file.toml").write_text(f'{text}schema = "schema.toml"\n')
    data = load("sales.csv", target="bought", encoded=False)
    assert schema_contexts(SCHEMA, data)[0] == {"age": 0, "region": None}
    plan = dc.Plan(n_actions=2, features=SCHEMA, budget=dc.Budget(4.0, 1e-5))
    expected = dc.evaluate(plan, schema_contexts(SCHEMA, data), data.labels, seed=0)
    for found in (by_flag, document("run", "table.toml"), document("run", "file.toml")):
        assert found["plan_digest"] == plan.digest
        assert found["losses"] == pytest.approx([expected.loss], abs=EXACT)


def test_a_schema_needs_named_columns(refuses, here):
    SCHEMA.to_toml(here / "schema.toml")
    refuses("run", "--data", "fried", "--schema", "schema.toml", words="file with named columns")


# --- campaigns ---------------------------------------------------------------------------------


def test_a_campaign_remembers_how_its_files_were_read(call, refuses, sales, here):
    pytest.importorskip("pyarrow")
    from discreet.lab.report.tables import rerun_command

    SCHEMA.to_toml(here / "schema.toml")
    flags = ["campaign", "run", "--preset", "default", *sales, "--device", "numpy", "--jobs", "1"]
    flags += ["--out", "out", "--seeds", "1", "--epsilon", "8"]
    schema, user = ["--schema", "schema.toml"], ["--user", "who"]
    assert call(*flags, *schema, *user, *OFTEN)[0] == 0
    assert BOUND in call("campaign", "status", "out")[1]
    refuses(*flags, *schema, *user, words="participation must be")
    refuses(*flags, *user, *OFTEN, words="schema, target and user must be")
    manifest = json.loads((here / "out" / "manifest.json").read_text())
    assert manifest["datasets"]["sales"]["features"] == SCHEMA.p - 1
    command = rerun_command(manifest)
    assert "--schema SCHEMA.toml --target bought --user who" in command
    assert "--batches-per-user 3 --records-per-batch 2" in command


# --- rewards -----------------------------------------------------------------------------------

PROBLEM = ["plan", "--actions", "3", "--dimension", "10", "--delta", "1e-6"]
MONEY = ["--reward-mean", "3", "--reward-spread", "15", "--reward-range", "0", "200"]


def sizes(plan, *numbers, **how):
    found = dc.sample_sizes(plan, *numbers, **how)
    return [json.loads(as_json(size._asdict())) for size in found.table]


def planned(outcome):
    budget = dc.Budget(3.0, 1e-6)
    return dc.Plan(n_actions=3, features=dc.UnitBall(10), budget=budget, outcome=outcome)


def test_a_plan_lists_the_sample_sizes_of_the_library(document):
    found = document(*PROBLEM, "--epsilon", 3, "--reward-mean", 0.01)["rewards"]
    assert found["range"] == [0.0, 1.0]
    assert found["spread"] == pytest.approx(math.sqrt(0.0099), rel=EXACT)
    epsilons = [1, 2, 3, 4, 8, math.inf]
    assert found["sample_sizes"] == sizes(planned(dc.Reward(0, 1)), 0.01, epsilons=epsilons)
    found = document(*PROBLEM, *MONEY, "--difference", 0.5)["rewards"]
    assert (found["mean"], found["spread"], found["difference"]) == (3.0, 15.0, 0.5)
    assert found["sample_sizes"] == sizes(planned(dc.Reward(0, 200)), 3.0, 15.0, 0.5)


def test_the_batch_from_which_predictions_help(call, document):
    flags = [*PROBLEM, "--epsilon", 8, "--reward-mean", 0.5, "--difference", 0.2]
    found = document(*flags)
    (own,) = [s for s in found["rewards"]["sample_sizes"] if s["epsilon"] == 8.0]
    batch = found["batches"][found["helpful_from_batch"] - 1]
    assert batch["rounds_before"] < own["personal"] <= batch["rounds_before"] + batch["records"]
    text = call(*flags)[1]
    assert "noise of a predicted reward" in text
    assert "← personal predictions tell the difference below" in text
    (line,) = [line for line in text.splitlines() if line.split()[-1:] == [about(own["personal"])]]
    assert line.split() == ["8", about(own["means"]), about(own["personal"])]


def test_a_curve_adds_the_sizes_for_its_set(call, document):
    curve = ["curve", "--data", "linear", "--rows", 60, "--seeds", 2, "--epsilon", 1, 8, "--quiet"]
    found = document(*curve, "--reward-mean", 0.02)["rewards"]["sample_sizes"]
    plan = dc.privacy_curve("linear:60", epsilons=[8], seeds=2).plan
    plan = replace(plan, budget=dc.Budget.none(), outcome=dc.Reward(0, 1), horizon=None)
    assert found == sizes(plan, 0.02, epsilons=[1, 8])
    assert "Decisions until a difference of 0.002" in call(*curve, "--reward-mean", 0.02)[1]


def test_the_forecast_in_sentences_follows_the_traffic(call, document, refuses):
    flags = [*PROBLEM, "--epsilon", 4, "--reward-mean", 0.1, "--difference", 0.01]
    slow, fast = (document(*flags, "--per-day", n)["sentences"] for n in (10, 10_000))
    for found in (slow, fast):
        assert "a difference of 1 percentage point between two actions can be seen" in found[0]
        assert found[1].startswith("At this ε and traffic, personal choices begin to help after")
        assert "The first release follows after 16 decisions" in found[2]
    assert "years" in slow[0]
    assert "years" not in fast[0]
    assert slow[0] in call(*flags, "--per-day", 10)[1]
    refuses(*flags, "--per-day", -1, words="decisions per day must be a positive finite number")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--reward-spread", 0.1], "reward_mean must be given where reward_spread is; got none"),
        (["--reward-mean", 7], "mean reward must be inside the declared range [0, 1]; got 7"),
        ([*MONEY[:4], "--reward-range", 5, 2], "range of the reward must be two finite numbers"),
    ],
)
def test_rewards_that_do_not_fit(refuses, flags, words):
    refuses(*PROBLEM, *flags, words=words)


# --- advice ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "curve"])
def test_advice_is_printed_once_and_never_in_the_answer(command, here, call):
    rows = np.random.default_rng(0).normal(size=(80, 2)) * 9
    lines = [f"{x:.3f},{y:.3f},{int(x > y)}" for x, y in rows]
    (here / "set.csv").write_text("\n".join(["x,y,class", *lines]) + "\n")
    words = [command, "--seeds", "3", "--epsilon", "8", "--data", "set.csv"]
    _, out, err = call(*words, "--json")
    json.loads(out)
    (line,) = err.splitlines()
    assert line.startswith("warning: ")
    assert "docs/warnings.md#long-rows" in line
    assert call(*words, "--quiet")[2] == ""


def test_a_plan_warns_unless_it_is_quiet(call):
    words = ["plan", "--actions", "3", "--dimension", "10", "--horizon", "500", "--epsilon", "1"]
    loud, quiet = call(*words)[1].splitlines(), call(*words, "--quiet")[1].splitlines()
    warnings = [line for line in loud if line not in quiet]
    assert warnings == [line for line in loud if line.startswith("Warning: ")] != []
