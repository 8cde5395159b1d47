"""The command line: answers, errors, exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from html import unescape
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
SMALL = ["--data", "fried", "--rows", "300", "--seeds", "2"]


@pytest.fixture
def document(document):
    """``run`` is quiet here; test_flags.py tests its warnings."""
    return lambda *words, **code: document(*words, *["--quiet"] * (words[0] == "run"), **code)


@pytest.fixture
def released(tmp_path):
    """A file of three releases with names and rewards, made with secure noise."""
    plan = small_plan(horizon=90, actions=["none", "mail"], outcome=dc.Reward(0, 50))
    learner = dc.Learner(plan)
    for length in plan.schedule.lengths():
        decisions = learner.decide(np.full((length, 2), 0.25))
        learner.observe(decisions.id, reward=np.ones(length))
    path = tmp_path / "released.json"
    learner.released.save(path)
    return path


def experiment(tmp_path, text):
    path = tmp_path / "experiment.toml"
    path.write_text(text, encoding="utf-8")
    return path


# --- help and version --------------------------------------------------------------------------


def test_help_is_light():
    code = (
        "import sys\nfrom discreet.cli.main import build_parser\nbuild_parser()[0].format_help()\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_version(call, document):
    assert call("version") == call("--version")
    assert call("version")[1].startswith(f"discreet {dc.__version__} (Python 3.")
    assert document("version")["discreet"] == dc.__version__
    assert document("version")["libraries"]["numpy"] == np.__version__


# --- run ---------------------------------------------------------------------------------------


def test_run_agrees_with_evaluate(document):
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


def test_a_run_ends_at_the_horizon(document, tmp_path):
    file = experiment(tmp_path, "horizon = 50\n" + TOML + BUDGET)
    data = load("fried", rows=100)
    played = dc.evaluate(
        small_plan(features=dc.UnitBall(10), horizon=50), data.contexts, data.labels
    )
    answer = document("run", file)
    assert answer["losses"] == pytest.approx([played.loss], abs=EXACT)
    assert (answer["rounds"][-1], len(played.losses)) == (50, 50)


def test_run_in_words(call, document, tmp_path):
    code, out, _ = call("run", *SMALL, "--out", tmp_path / "result.json")
    assert code == 0
    assert json.loads((tmp_path / "result.json").read_text()) == document("run", *SMALL)
    assert "noise scale of ε = 1, δ = 1e-05; seeded noise, not private" in out
    assert "AdaptivePO(learning_rate=None, bonus=0.01, scale=0.6) with PooledRidge(" in out
    assert "over 2 seeds; the best possible is 0." in out
    assert "for comparison: the best fixed action 0." in out
    assert "no noise" in call("run", *SMALL, "--epsilon", "inf")[1]


def test_flags_override_an_experiment_file(document, tmp_path):
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


def test_plan_lists_batches_and_their_cost(call, document):
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
    assert "is right 55 times in 100" in answer["attacker"]["sentence"]
    assert f"Attacker   {answer['attacker']['sentence']}" in call("plan", *shape)[1]


def test_plan_takes_a_count_or_names(call, refuses, document):
    rest = ["--dimension", "4", "--horizon", "100"]
    plan = document("plan", "--actions", "none,mail,call", *rest)["plan"]
    assert (plan["actions"], plan["n_actions"]) == (["none", "mail", "call"], 3)
    counted = document("plan", "--actions", "3", *rest)["plan"]
    assert counted | {"actions": plan["actions"]} == plan
    out = call("plan", "--actions", "none,mail,call", *rest)[1]
    assert "3 actions (none, mail, call), 5 features" in out
    refuses("plan", "--actions", "none,none", *rest, words="two or more distinct words")


# --- release -----------------------------------------------------------------------------------


def test_release_show(call, document, released):
    answer = document("release", "show", released)
    assert [item["records"] for item in answer["releases"]] == [16, 24, 36]
    assert all(item["event"]["kind"] == "Gaussian" for item in answer["releases"])
    assert all(1 - 1e-5 < item["epsilon"] <= 1 for item in answer["releases"])
    assert "mean_loss" not in answer["releases"][0]
    out = call("release", "show", released)[1]
    assert "3 releases from 76 rounds; 2 actions (none, mail)" in out
    assert "mean reward" in out
    assert answer["releases"][-1]["digest"][:12] in out


def test_release_show_marks_what_is_not_private(call, tmp_path):
    seeded = dc.Learner(small_plan(first_batch=1), noise=dc.SeededNoise(0))
    seeded.observe(seeded.decide(np.zeros(2)).id, 1.0)
    seeded.release()
    seeded.released.save(tmp_path / "seeded.json")
    out = call("release", "show", tmp_path / "seeded.json")[1]
    assert "NOT PRIVATE: seeded noise" in out
    assert "∞" in out


def test_release_export_writes_the_newest_predictor(refuses, document, released, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    out, newest = tmp_path / "model.onnx", dc.Released.load(released).latest
    found = document("release", "export", released, "--onnx", out)
    assert (found["release"], found["digest"]) == (newest.number, newest.digest)
    session = onnxruntime.InferenceSession(out.read_bytes())
    losses, _ = session.run(None, {"contexts": np.array([[0.5, 0.1]])})
    assert losses.shape == (1, 2)
    away = tmp_path / "no" / "model.onnx"
    refuses("release", "export", released, "--onnx", away, words="output must be writable")


# --- errors ------------------------------------------------------------------------------------

WRONG = [
    (["run", "--data", "fried", "--target", "y"], "target must be left out"),
    (["run", *SMALL, "--set", "scales=1"], "--set"),
    (["run", *SMALL, "--policy", "FastCB", "--oracle", "Ridge"], "Logistic"),
    (["run", *SMALL, "--quiet", "--out", "no/such/place.json"], "no/such/place.json"),
    (["release", "show", "nowhere.json"], "nowhere.json"),
    (["demo", "--rows", "1"], "rows"),
]


@pytest.mark.parametrize(("arguments", "word"), WRONG, ids=lambda item: " ".join(item)[:60])
def test_errors_are_one_line(arguments, word, refuses, document, here):
    err = refuses(*arguments, words=word)
    assert document(*arguments, code=2) == {"error": err.removeprefix("error: ").rstrip("\n")}
    assert list(here.iterdir()) == []


TOML = 'data = "fried"\nrows = 100\nseeds = 1\n'
BUDGET = "[budget]\nepsilon = 1.0\ndelta = 1e-5\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (TOML + '[policy]\nkind = "SquareCB"\nscale = [1, 2]\n' + BUDGET, "a list"),
        ('data = "fried"\nrows = "many"\n' + BUDGET, "rows"),
        ("data = \n", "line 1"),
    ],
)
def test_a_toml_file_that_cannot_be_used(text, word, refuses, tmp_path):
    refuses("run", experiment(tmp_path, text), words=word)


def test_an_error_of_the_system_is_one_line_and_a_defect_is_not_hidden(refuses, monkeypatch):
    version = Mock(side_effect=OSError(28, "No space left on device", "somewhere"))
    monkeypatch.setattr("platform.python_version", version)
    refuses("version", words="error: No space left on device: somewhere. ")
    version.side_effect = ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        main(["version"])


# --- exit codes --------------------------------------------------------------------------------


def test_ctrl_c_is_quiet(tmp_path):
    pytest.importorskip("matplotlib")
    command = [*PROGRAM, "demo", "--seeds", "1000", "--out", str(tmp_path / "demo")]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"playing fried" in started.stderr.readline()
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=PATIENCE)
    assert (started.returncode, out, err) == (130, b"", b"")


def test_a_closed_pipe_is_no_error():
    command = [*PROGRAM, "plan", "--actions", "2", "--dimension", "3", "--json"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    started.stdout.close()
    assert started.stderr.read() == b""
    assert started.wait(timeout=PATIENCE) == 141
    started.stderr.close()


def test_a_terminal_without_greek():
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


def test_demo_plays_everything_and_writes_it(demonstrated):
    out, printed = demonstrated
    names = {"index.html", "losses.png", "losses.svg", "results.json", "released.json"}
    assert {path.name for path in out.iterdir()} == names
    assert all(str(out / name) in printed for name in names)
    runs = json.loads((out / "results.json").read_text())["runs"]
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


def test_the_page_of_a_demo(demonstrated):
    """The best bandit of each column is bold, and no text of a result file becomes markup."""
    from discreet.lab.report.demo import demo_page
    from lab.report.folders import References

    out = demonstrated[0]
    results, text = json.loads((out / "results.json").read_text()), (out / "index.html").read_text()
    assert References(text).found == []
    for words in (results["note"], results["settings_note"], *results["private"]["assumptions"]):
        assert words in unescape(text)
    columns = {}
    for run in results["runs"]:
        if run["algorithm"] != "Supervised":
            columns.setdefault((run["data"], run["epsilon"]), []).append(run["loss"])
    bold = re.findall(r"<td><b>([\d.]+)</b>", text)
    assert sorted(bold) == sorted(f"{min(losses):.3f}" for losses in columns.values())
    planted = demo_page(results | {"note": "<script>alert(1)</script>"})
    assert References(planted).found == []
    figure = "".join(ET.fromstring((out / "losses.svg").read_text()).itertext())
    assert {each["name"] for each in results["algorithms"]} <= {*figure.split()}
    assert "fried: mean loss so far" in figure


def test_demo_ends_with_a_private_run(demonstrated, call):
    out, printed = demonstrated
    assert "Its ledger: ε = 1, δ = 1e-05 for one decision" in printed
    released = dc.Released.load(out / "released.json")
    kinds = {type(item.event).__name__ for item in released.items}
    assert kinds == {"Gaussian"}  # not NonPrivate: this noise cannot be repeated
    assert call("release", "verify", out / "released.json")[0] == 0
