"""The command line: what it answers, how it refuses, how it ends."""

import json
import os
import signal
import subprocess
import sys
from unittest.mock import Mock

import numpy as np
import pytest

import discreet as dc
from discreet.cli.main import main
from discreet.data import load
from program import PROGRAM
from small_plans import small_plan
from tolerances import EXACT
from waiting import PATIENCE

HEAVY = (
    *("scipy", "opendp", "dp_accounting", "matplotlib", "sklearn", "torch"),
    *("discreet.audit", "discreet.client", "discreet.lab.campaign"),
    *("discreet.lab.report", "discreet.lab.theory", "discreet.service", "discreet.lab.traffic"),
)
LEAF_COMMANDS = [
    each.split() for each in ("demo", "run", "plan", "release show", "release verify", "version")
]
SMALL = ["--data", "fried", "--rows", "300", "--seeds", "2"]


@pytest.fixture
def document(document):
    """``run`` is quiet here; tests/cli/test_advice.py has its warnings."""
    return lambda *words, **code: document(*words, *["--quiet"] * (words[0] == "run"), **code)


@pytest.fixture
def released(tmp_path):
    """A file of three releases, made with secure noise."""
    plan = small_plan(horizon=90)
    learner = dc.Learner(plan)
    for length in plan.schedule.lengths():
        decisions = learner.decide(np.full((length, 2), 0.25))
        learner.observe(decisions.id, np.ones(length))
    path = tmp_path / "released.json"
    learner.released.save(path)
    return path


def experiment(tmp_path, text):
    path = tmp_path / "experiment.toml"
    path.write_text(text, encoding="utf-8")
    return path


# --- how it is found out what there is ---------------------------------------------------------


def test_help_is_light():
    code = (
        "import sys\nfrom discreet.cli.main import build_parser\nbuild_parser()[0].format_help()\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("command", LEAF_COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert "--json" in out
    assert max(map(len, out.splitlines())) <= 100
    assert "example" in out or command == ["version"]


def test_version(call, document):
    assert call("version") == call("--version")
    assert call("version")[1].startswith(f"discreet {dc.__version__} (Python 3.")
    assert document("version")["discreet"] == dc.__version__
    assert document("version")["libraries"]["numpy"] == np.__version__


# --- run ---------------------------------------------------------------------------------------


def test_run_says_what_evaluate_says(document):
    answer = document("run", *SMALL, "--policy", "SquareCB", "--set", "scale=16", "--epsilon", "4")
    data = load("fried", rows=300)
    parts = {"features": dc.UnitBall(10), "policy": dc.SquareCB(scale=16.0)}
    plan = small_plan(budget=dc.Budget(4.0, 1e-5), **parts)
    played = [dc.evaluate(plan, data.contexts, data.labels, seed=seed) for seed in (0, 1)]
    losses = [each.loss for each in played]
    assert answer["plan"] == plan.to_config()
    assert answer["plan_digest"] == plan.digest
    assert answer["losses"] == pytest.approx(losses, abs=EXACT)
    assert answer["mean_loss"] == pytest.approx(np.mean(losses), abs=EXACT)
    assert answer["standard_error"] == pytest.approx(abs(losses[0] - losses[1]) / 2, abs=EXACT)
    assert answer["rounds"] == [16, 40, 76, 130, 211, 300]
    curve = np.mean([each.curve for each in played], axis=0)[np.asarray(answer["rounds"]) - 1]
    assert answer["curve"] == pytest.approx(curve, abs=EXACT)
    assert "protects no one" in answer["noise"]


@pytest.mark.parametrize(("horizon", "rounds"), [(50, 50), (1000, 100)])
def test_run_and_evaluate_end_at_the_horizon(horizon, rounds, call, document, tmp_path):
    file = experiment(tmp_path, f"horizon = {horizon}\n" + TOML + BUDGET)
    data = load("fried", rows=100)
    plan = small_plan(features=dc.UnitBall(10), horizon=horizon)
    played = dc.evaluate(plan, data.contexts, data.labels, seed=0)
    assert len(played.losses) == len(played.curve) == rounds
    assert len(played.released.items) == {50: 2, 100: 3}[rounds]
    answer = document("run", file)
    assert answer["plan_digest"] == plan.digest
    assert answer["losses"] == pytest.approx([played.loss], abs=EXACT)
    assert answer["rounds"][-1] == rounds
    assert f"fried: {rounds} rounds" in call("run", file)[1]


def test_run_in_words(call):
    code, out, _ = call("run", *SMALL)
    assert code == 0
    assert "noise scale of ε = 1, δ = 1e-05; seeded noise, not private" in out
    assert "AdaptivePO(learning_rate=None, bonus=0.01, scale=0.6) with PooledRidge(" in out
    assert "over 2 seeds; the best possible is 0." in out
    assert "for comparison: the best fixed action 0." in out
    assert "no noise" in call("run", *SMALL, "--epsilon", "inf")[1]


def test_run_and_plan_take_the_class_from_a_column(document, tmp_path):
    file = tmp_path / "sales.csv"
    lines = [f"{'no' if n % 3 else 'yes'},{n % 3},{n % 2}" for n in range(60)]
    file.write_text("\n".join(["bought,size,other", *lines]))
    by_flag = document("run", "--data", file, "--target", "bought", "--seeds", 1)
    assert by_flag["data"]["n_actions"] == 2
    assert by_flag["best_fixed"] == pytest.approx(1 / 3, abs=EXACT)
    (tmp_path / "e.toml").write_text(
        'data = "sales.csv"\ntarget = 1\nseeds = 1\nbudget = {epsilon = 1.0, delta = 1e-5}\n'
    )
    assert document("run", tmp_path / "e.toml")["losses"] == by_flag["losses"]
    assert document("plan", "--data", file, "--target", 2)["plan"]["n_actions"] == 3


def test_run_writes_its_result(call, document, tmp_path):
    out = tmp_path / "result.json"
    assert call("run", *SMALL, "--out", out)[0] == 0
    assert json.loads(out.read_text()) == document("run", *SMALL)


def test_run_from_toml_which_flags_correct(document, tmp_path):
    path = experiment(
        tmp_path,
        'data = "linear"\nrows = 200\nseeds = 2\nfirst_batch = 4\n'
        '[policy]\nkind = "SquareCB"\nscale = 2\n'
        '[oracle]\nkind = "Ridge"\nmechanism = "paper"\n[budget]\nepsilon = 2\ndelta = 1e-6\n',
    )
    plan = document("run", path)["plan"]
    assert (plan["policy"]["scale"], plan["oracle"]["mechanism"]) == ("2.0", "paper")
    assert (plan["budget"]["epsilon"], plan["budget"]["delta"]) == ("2.0", "1e-06")
    assert (plan["n_actions"], plan["features"]["dimension"], plan["first_batch"]) == (3, 3, 4)
    changed = document("run", path, "--epsilon", "8", "--set", "scale=3", "--seeds", "1")
    assert changed["plan"]["budget"] == {"kind": "Budget", "epsilon": "8.0", "delta": "1e-06"}
    assert changed["plan"]["policy"] == plan["policy"] | {"scale": "3.0"}
    assert changed["seeds"] == [0]
    assert document("run", path, "--set", "growth=2")["plan"]["growth"] == "2.0"
    other = document("run", path, "--policy", "LinUCB", "--set", "missing_loss=none")["plan"]
    assert other["policy"]["kind"] == "LinUCB"


# --- plan --------------------------------------------------------------------------------------


def test_plan_lists_batches_and_their_cost(document):
    shape = ["--actions", "2", "--dimension", "10", "--horizon", "1000"]
    answer = document("plan", *shape, "--epsilon", "1")
    lengths = [batch["records"] for batch in answer["batches"]]
    assert lengths == [16, 24, 36, 54, 81, 122, 183, 275, 209]
    assert [batch["fitted"] for batch in answer["batches"]] == [True] * 8 + [False]
    costs = [batch["release"]["epsilon"] for batch in answer["batches"][:-1]]
    # Calibration ends within 1e-5 of the budget and never beyond it.
    assert all(1 - 1e-5 < cost <= 1 for cost in costs)
    assert answer["guarantee"]["epsilon"] == max(costs)
    assert answer["guarantee"]["relation"].startswith(
        "replace one record; which slots are answered"
    )
    assert any("disjoint" in sentence for sentence in answer["guarantee"]["assumptions"])


def test_plan_takes_a_count_or_names(call, refuses, document):
    rest = ["--dimension", "4", "--horizon", "100"]
    plan = document("plan", "--actions", "none,mail,call", *rest)["plan"]
    assert (plan["actions"], plan["n_actions"]) == (["none", "mail", "call"], 3)
    counted = document("plan", "--actions", "3", *rest)["plan"]
    assert counted | {"actions": plan["actions"]} == plan
    said = call("plan", "--actions", "none,mail,call", *rest)[1]
    assert "3 actions (none, mail, call), 5 features" in said
    refuses("plan", "--actions", "none,none", *rest, said="two or more distinct words")


def test_plan_knows_from_where_on_predictions_help(document):
    flags = ["--actions", "4", "--dimension", "10", "--horizon", "100000"]
    answer = document("plan", *flags)
    norm = answer["noise"]["expected_norm"]
    sigma = answer["noise"]["scales"]["gram"]
    assert norm == pytest.approx(sigma * np.sqrt(2 * 11), rel=EXACT)
    first = answer["helpful_from_batch"]
    noise = [batch["prediction_noise"] for batch in answer["batches"]]
    assert noise[first - 2] > 0.5 >= noise[first - 1]
    assert noise[-1] is None  # the last batch is never fitted
    assert document("plan", *flags, "--epsilon", "8")["helpful_from_batch"] < first


@pytest.mark.parametrize(("epsilon", "often"), [("1", 55), ("inf", 100)])
def test_plan_says_how_often_the_best_attacker_is_right(call, document, epsilon, often):
    flags = ["plan", "--actions", "2", "--dimension", "3", "--epsilon", epsilon]
    found = document(*flags)["attacker"]
    assert round(100 * found["success"]) == often
    assert found["exact"]
    assert f"is right {often} times in 100" in found["sentence"]
    assert f"Attacker   {found['sentence']}" in call(*flags)[1]


def test_plan_tells_pure_from_approximate_and_names_assumptions(document):
    flags = ["plan", "--actions", "2", "--dimension", "3", "--oracle", "Logistic"]
    pure = document(*flags, "--delta", "0")["guarantee"]
    assert (pure["epsilon"], pure["delta"]) == (1.0, 0.0)
    paper = document(*flags, "--set", "mechanism=paper")["guarantee"]
    assert {"exact minimiser", "real arithmetic"} <= set(paper["assumptions"])


# --- release -----------------------------------------------------------------------------------


def test_release_show(call, document, released):
    answer = document("release", "show", released)
    assert [item["records"] for item in answer["releases"]] == [16, 24, 36]
    assert all(item["event"]["kind"] == "Gaussian" for item in answer["releases"])
    assert all(1 - 1e-5 < item["epsilon"] <= 1 for item in answer["releases"])
    out = call("release", "show", released)[1]
    assert "3 releases from 76 rounds" in out
    assert answer["releases"][-1]["digest"][:12] in out


def test_release_show_speaks_of_rewards_and_names(call, document, tmp_path):
    named = {"actions": ["none", "mail"], "outcome": dc.Reward(0, 50)}
    learner = dc.Learner(small_plan(budget=dc.Budget.none(), **named))
    made = learner.decide(np.zeros((16, 2)))
    learner.observe(made.id, reward=[10.0] * 8 + [20.0] * 8)
    learner.release()
    path = tmp_path / "released.json"
    learner.released.save(path)
    found = document("release", "show", path)["releases"][0]
    assert found["mean_reward"] == pytest.approx(15.0, abs=1e-3)
    assert found["mean_reward_error"] == 0.0
    assert "mean_loss" not in found
    out = call("release", "show", path)[1]
    assert "2 actions (none, mail)" in out
    assert "mean reward" in out
    assert "15.00 ± 0.00" in out


def test_release_show_says_what_is_not_private(call, tmp_path):
    seeded = dc.Learner(small_plan(first_batch=1), noise=dc.SeededNoise(0))
    seeded.observe(seeded.decide(np.zeros(2)).id, 1.0)
    seeded.release()
    seeded.released.save(tmp_path / "seeded.json")
    out = call("release", "show", tmp_path / "seeded.json")[1]
    assert "NOT PRIVATE: seeded noise" in out
    assert "∞" in out


# --- refusing ----------------------------------------------------------------------------------

WRONG = [
    (["run", "--bogus"], "--bogus"),
    (["run", "--data", "fried", "--target", "y"], "target must be left out"),
    (["run", *SMALL, "--policy", "SquarCB", "--set", "scale=1"], "Did you mean 'SquareCB'?"),
    (["run", *SMALL, "--set", "scales=1"], "--set"),
    (["run", *SMALL, "--policy", "FastCB", "--oracle", "Ridge"], "Logistic"),
    (["run", *SMALL, "--delta", "1"], "delta"),
    (["run", "--data", "fried", "--seeds", "0"], "seeds"),
    (["run", *SMALL, "--quiet", "--out", "no/such/place.json"], "no/such/place.json"),
    (["plan", "--actions", "2", "--dimension", "3", "--horizon", "0"], "horizon"),
    (["release", "show", "nowhere.json"], "nowhere.json"),
    (["demo", "--rows", "1"], "rows"),
]


@pytest.mark.parametrize(("arguments", "word"), WRONG, ids=lambda item: " ".join(item)[:60])
def test_errors_are_one_line(arguments, word, refuses, document, here):
    err = refuses(*arguments, said=word)
    assert document(*arguments, code=2) == {"error": err.removeprefix("error: ").rstrip("\n")}
    assert list(here.iterdir()) == []


TOML = 'data = "fried"\nrows = 100\nseeds = 1\n'
BUDGET = "[budget]\nepsilon = 1.0\ndelta = 1e-5\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (TOML + '[policy]\nkind = "SquareCB"\nscal = 1\n' + BUDGET, "Did you mean 'scale'?"),
        (TOML + '[policy]\nkind = "SquareCB"\nscale = [1, 2]\n' + BUDGET, "a list"),
        ("data = 3\n" + BUDGET, "data"),
        ('data = "fried"\nrows = "many"\n' + BUDGET, "rows"),
        ("data = \n", "line 1"),
    ],
)
def test_a_toml_file_that_cannot_be_used(text, word, refuses, tmp_path):
    refuses("run", experiment(tmp_path, text), said=word)


def test_an_error_of_the_system_is_one_line_and_a_defect_is_not_hidden(refuses, monkeypatch):
    version = Mock(side_effect=OSError(28, "No space left on device", "somewhere"))
    monkeypatch.setattr("platform.python_version", version)
    refuses("version", said="error: No space left on device: somewhere. ")
    version.side_effect = ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        main(["version"])


# --- ending ------------------------------------------------------------------------------------


def test_ctrl_c_is_quiet(tmp_path):
    pytest.importorskip("matplotlib")
    command = [*PROGRAM, "demo", "--seeds", "1000", "--out", str(tmp_path / "demo")]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"playing fried" in started.stderr.readline()
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=PATIENCE)
    assert (started.returncode, out, err) == (130, b"", b"")


def test_a_reader_that_leaves_is_no_error():
    command = [*PROGRAM, "plan", "--actions", "2", "--dimension", "3", "--json"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    started.stdout.close()
    assert started.stderr.read() == b""
    assert started.wait(timeout=PATIENCE) == 141
    started.stderr.close()


def test_a_terminal_without_greek_is_served():
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [*PROGRAM, "plan", "--actions", "2", "--dimension", "3"]
    done = subprocess.run(command, capture_output=True, env=env, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert b"? = 1" in done.stdout


# --- demo --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory):
    """A small demo in a process of its own: its folder and what it printed."""
    pytest.importorskip("matplotlib")
    out = tmp_path_factory.mktemp("demo") / "page"
    command = [*PROGRAM, "demo", "--rows", "2000", "--seeds", "1", "--out", str(out)]
    env = {**os.environ, "PYTHONUTF8": "1"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_demo_writes_what_it_says(demonstrated):
    out, said = demonstrated
    names = {"index.html", "losses.png", "losses.svg", "results.json", "released.json"}
    assert {path.name for path in out.iterdir()} == names
    for name in names:
        assert str(out / name) in said


def test_demo_plays_everything(demonstrated):
    runs = json.loads((demonstrated[0] / "results.json").read_text())["runs"]
    played = {(run["algorithm"], run["epsilon"]) for run in runs if run["data"] == "fried"}
    algorithms = {name for name, _ in played}
    assert len(algorithms) == 9
    assert {"Default", "VanillaPO", "ReplayBonusPO", "FastCB", "Supervised"} <= algorithms
    assert played == {(name, epsilon) for name in algorithms for epsilon in (1.0, 4.0, "inf")}
    free, four, one = (
        np.mean([run["loss"] for run in runs if run["epsilon"] == epsilon])
        for epsilon in ("inf", 4.0, 1.0)
    )
    assert free < min(four, one)


def test_demo_ends_with_a_private_run(demonstrated, call):
    out, said = demonstrated
    assert "Its ledger: ε = 1, δ = 1e-05 for one decision" in said
    released = dc.Released.load(out / "released.json")
    kinds = {type(item.event).__name__ for item in released.items}
    assert kinds == {"Gaussian"}  # not NonPrivate: nobody can repeat this noise
    assert call("release", "verify", out / "released.json")[0] == 0
