"""Classes of users: known by name, in every place where the built-in ones are."""

import importlib
import importlib.metadata
import json
import re
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.cli.main import main
from discreet.client.documents import genesis
from discreet.plan import registry
from small_plans import small_plan
from wording import refused

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.md"
FILES = re.findall(r"```python\n(# my_\w+\.py\n.*?)```", PAGE.read_text(), re.DOTALL)
FILE = "\n".join(FILES)  # a policy and an oracle, in one module here


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with what docs/extending.md writes, as one module; nothing has imported it."""
    (tmp_path / "my_bandits.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_bandits", raising=False)
    yield tmp_path
    sys.modules.pop("my_bandits", None)


@pytest.fixture
def own(folder):  # noqa: ARG001
    return importlib.import_module("my_bandits")


def plan_of(own, **changes):
    given = {"n_actions": 3, "features": dc.UnitBall(2), "budget": dc.Budget(1.0, 1e-5)}
    parts = {"policy": own.EpsilonGreedy(0.3), "oracle": own.NoisyMeans(5.0), "first_batch": 1}
    return dc.Plan(**given | parts | {"growth": 2.0} | changes)


def played(learner, rounds=3):
    for _ in range(rounds):
        learner.observe(learner.decide(np.zeros(2)).id, 0.5)
    return learner


def forget():
    for each in (registry.POLICIES, registry.ORACLES):
        each.own.clear()


@pytest.fixture
def command(folder, capsys):  # noqa: ARG001
    """The command line of a process that has imported nothing of the user's yet."""

    def run(*words):
        forget()
        sys.modules.pop("my_bandits", None)
        code = main([*words])
        return code, *capsys.readouterr()

    return run


def test_own_classes_evaluate_save_and_load(own, folder):
    plan = plan_of(own)
    x, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 3
    assert 0.0 < dc.evaluate(plan, x, y).loss < 1.0
    played(dc.Learner(plan)).save(folder / "state")
    before = (folder / "state").read_bytes()
    forget()
    with refused(dc.InvalidInput, "plan.policy.kind", "EpsilonGreedy"):
        dc.Learner.load(folder / "state")
    assert (folder / "state").read_bytes() == before
    with refused(dc.InvalidInput, "policy", "discreet.register"):
        plan_of(own)
    dc.register(own.EpsilonGreedy)
    with refused(dc.InvalidInput, "oracle", "discreet.register"):
        plan_of(own)
    dc.register(own.NoisyMeans)
    loaded = dc.Learner.load(folder / "state")
    assert loaded.plan == plan
    assert len(played(loaded).released.items) == 2
    assert "NoisyMeans is not audited by discreet" in loaded.ledger.spent().assumptions


def test_save_refuses_what_would_come_back_as_something_else(folder):
    @dc.register
    @dataclass(frozen=True)
    class Stateful(dc.Policy):
        scale: float = 1.0

        def __post_init__(self):
            object.__setattr__(self, "scale", self.scale + 1.0)

        def probabilities(self, released, features):
            return np.full((len(features), released.n_actions), 1.0 / released.n_actions)

    learner = played(dc.Learner(small_plan(budget=dc.Budget.none(), policy=Stateful())))
    with refused(dc.InvalidInput, "same after saving and loading", "stays usable"):
        learner.save(folder / "state")
    assert not (folder / "state").exists()
    played(learner)


def test_names_cannot_be_taken_over(own):
    names = {"SquareCB": "built in", "Default": "built in", "EpsilonGreedy": "my_bandits"}
    for name, why in names.items():
        kind = dataclass(frozen=True)(type(name, (own.EpsilonGreedy,), {}))
        with refused(dc.InvalidInput, name, why):
            dc.register(kind)
    assert registry.POLICIES["SquareCB"] is dc.SquareCB
    assert registry.POLICIES["EpsilonGreedy"] is own.EpsilonGreedy


def test_a_class_that_is_defined_again_replaces_the_one_before(own):
    before = own.EpsilonGreedy
    again = importlib.reload(own)
    assert registry.POLICIES["EpsilonGreedy"] is again.EpsilonGreedy is not before
    with refused(dc.InvalidInput, "policy"):
        plan_of(again, policy=before())


@pytest.mark.parametrize("wrong", [3, "SquareCB", dict, dc.Budget, dc.Policy])
def test_only_policies_and_oracles_are_registered(wrong):
    with refused(dc.InvalidInput, "class must be"):
        dc.register(wrong)


DOCUMENT = {
    "n_actions": 2,
    "features": {"kind": "UnitBall", "dimension": 2},
    "budget": {"epsilon": 1.0, "delta": 1e-5},
    "policy": {"kind": "SquareCB"},
}


def entry_points(monkeypatch, **values):
    made = [
        importlib.metadata.EntryPoint(name, value, registry.GROUP) for name, value in values.items()
    ]
    real = importlib.metadata.entry_points

    def listed(**asked):
        if asked.get("group") != registry.GROUP:
            return real(**asked)
        return importlib.metadata.EntryPoints(made).select(**asked)

    monkeypatch.setattr(importlib.metadata, "entry_points", listed)


@pytest.mark.usefixtures("folder")
def test_entry_points_are_loaded_when_their_name_is_asked_for(monkeypatch):
    entry_points(monkeypatch, EpsilonGreedy="my_bandits:EpsilonGreedy")
    dc.Plan.from_config(DOCUMENT)
    assert "my_bandits" not in sys.modules
    plan = dc.Plan.from_config(DOCUMENT | {"policy": {"kind": "EpsilonGreedy", "share": 0.5}})
    assert type(plan.policy).__module__ == "my_bandits"


def test_a_document_names_no_code(folder, command):
    with refused(dc.InvalidInput, "plan.policy.kind"):
        dc.Plan.from_config(DOCUMENT | {"policy": {"kind": "my_bandits:EpsilonGreedy"}})
    with refused(dc.InvalidInput, "import"):
        dc.Plan.from_config(DOCUMENT | {"import": "my_bandits"})
    assert "my_bandits" not in sys.modules
    (folder / "campaign.toml").write_text(
        'data = ["fried:200"]\nout = "results"\nimport = ["my_bandits"]\n'
    )
    code, _, error = command("campaign", "run", "campaign.toml")
    assert code == 2
    assert "'import'" in error


SMALL = ("--data", "fried", "--rows", "100", "--seeds", "1", "--json")


def test_the_command_line_imports(command):
    words = ("run", *SMALL, "--policy", "EpsilonGreedy", "--oracle", "NoisyMeans")
    code, output, _ = command(*words, "--import", "my_bandits", "--set", "share=0.5")
    assert code == 0
    assert json.loads(output)["plan"]["policy"] == {"kind": "EpsilonGreedy", "share": "0.5"}
    code, output, _ = command(*words)
    assert code == 2
    assert "EpsilonGreedy" in json.loads(output)["error"]
    code, output, _ = command(*words, "--import", "no_such_module")
    assert code == 2
    assert "--import must name a module" in json.loads(output)["error"]


def test_campaigns_carry_own_classes_to_their_workers(folder, command):
    pytest.importorskip("pyarrow")
    from discreet.lab.campaign.result_files import read

    words = ("--preset", "quick", "--data", "fried:200", "--epsilon", "1", "--ridges", "0.1")
    words += ("--algorithms", "EpsilonGreedy", "NoisyMeans", "SquareCB", "--seeds", "1")
    words += ("--device", "numpy", "--jobs", "2", "--out", "results", "--json")
    code, output, error = command("campaign", "run", "--import", "my_bandits", *words)
    assert code == 0, output + error
    rows = read(folder / "results").to_pylist()
    found = {(row["algorithm"], row["oracle"]) for row in rows}
    both = set(product(["EpsilonGreedy", "SquareCB"], ["Ridge", "Logistic"]))
    assert found == both | {("NoisyMeans", "NoisyMeans")}
    own = {row["settings"] for row in rows if row["algorithm"] == "EpsilonGreedy"}
    assert {json.loads(each)["share"] for each in own} == {0.05, 0.2}
    code, output, _ = command("campaign", "status", "results", "--import", "my_bandits")
    assert code == 0
    assert f"{len(rows)} of {len(rows)} runs" in output
    code, _, error = command("campaign", "status", "results")
    assert code == 2
    assert "EpsilonGreedy" in error
    assert "--import MODULE" in error


def test_a_billboard_refuses_policies_that_its_clients_do_not_know(own):
    with refused(dc.InvalidInput, "plan.policy", "EpsilonGreedy"):
        genesis(plan_of(own), "test", "ab" * 32)


def test_a_service_refuses_them_before_it_begins(own):
    from discreet.service.settings import Settings

    planned = plan_of(own, oracle=dc.PooledRidge()).to_config()
    for name in ("format", "unit", "releases"):
        del planned[name]
    with refused(dc.InvalidInput, "plan.policy", "EpsilonGreedy"):
        Settings.from_config({"experiment": "test", "plan": planned}, Path())
    Settings.from_config(
        {"experiment": "test", "plan": planned | {"policy": {"kind": "SquareCB"}}}, Path()
    )
