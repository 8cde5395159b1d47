"""What a user imports: the names, their weight, their version."""

import importlib
import importlib.metadata
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

HEAVY = (
    *("scipy", "opendp", "dp_accounting", "matplotlib", "torch", "sklearn", "pyarrow", "dask"),
    *("narwhals", "pandas", "polars"),
)
PROMISED = """
AdaCB AdaptivePO BonusPO Budget FastCB FiniteClass Greedy Learner Ledger LinUCB Logistic Plan RegCB
Release Released ReplayBonusPO Ridge Schema SecureNoise SeededNoise SquareCB Uniform UnitBall
VanillaPO evaluate stack
"""


def python(code):
    """The output of a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", discreet.__all__)
def test_every_public_name_exists_and_is_documented(name):
    assert inspect.getdoc(getattr(discreet, name))


def test_the_promised_names_are_public():
    assert set(PROMISED.split()) <= set(discreet.__all__)
    assert not {"POLICIES", "TYPE_CHECKING", "inspect"} & set(discreet.__all__)


PREPARED = (
    "import sys, numpy as np, discreet as dc\n"
    "sizes = {'n_actions': 2, 'features': dc.UnitBall(2)}\n"
)


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("", 0),
        ("dc.Learner(dc.Plan(**sizes, budget=dc.Budget.none())).decide(np.zeros(2))", 0),
        (
            # A private release; opendp.prelude would import what is installed, for a second.
            "plan = dc.Plan(**sizes, budget=dc.Budget(1.0, 1e-6), first_batch=1)\n"
            "learner = dc.Learner(plan, window=0)\n"
            "decided = [learner.decide(np.zeros(2)) for _ in range(3)]\n"
            "assert learner.released.items",
            3,
        ),
    ],
    ids=["import", "decision without privacy", "private release"],
)
def test_no_library_is_imported_that_is_not_needed(code, allowed):
    heavy = HEAVY[allowed:]
    shown = f"print([name for name in {heavy!r} if name in sys.modules])"
    assert python(f"{PREPARED}{code}\n{shown}") == "[]"


def test_plans_are_keyword_only():
    kinds = {each.kind for each in inspect.signature(discreet.Plan).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("call", [discreet.Learner, discreet.Learner.load, discreet.evaluate])
def test_options_are_keyword_only(call):
    options = [
        each
        for each in inspect.signature(call).parameters.values()
        if each.default is not inspect.Parameter.empty
        and each.name != "labels"  # data, which losses= may replace
    ]
    assert {each.kind for each in options} == {inspect.Parameter.KEYWORD_ONLY}


def test_every_module_has_a_docstring():
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        spec = importlib.util.find_spec(module.name)
        source = Path(spec.origin).read_text()
        assert source.lstrip().startswith('"""'), module.name
