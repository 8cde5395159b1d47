"""The rule of docs/testing.md: randomness has seeds, and what is real is listed there."""

import ast
import re
import sys
import types
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as some
from scipy.stats import binom, chi2

import discreet as dc
from seeded_sources import SOURCES
from small_plans import small_plan

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "testing.md"
REAL = {
    *("subprocess", "socket", "socketserver", "http", "urllib", "time", "threading"),
    *("multiprocessing", "signal", "asyncio", "concurrent"),
}
GLOBAL = {"seed", "rand", "randn", "randint", "random", "normal", "uniform", "choice", "shuffle"}
SCALE = 2.0**30


def draws(noise):
    return [
        noise.gaussian("any", (2,), SCALE).tolist(),
        noise.normal("any", (2,)).tolist(),
        noise.ball("any", (2, 3)).tolist(),
        [int(noise.choose("any", np.zeros(9, dtype=np.int64), 1.0)) for _ in range(30)],
        np.random.default_rng().random(2).tolist(),
        dc.Learner(small_plan(unit="user"))._store.people._key,
    ]


@pytest.mark.parametrize("fast", [True, False])
def test_a_name_decides_every_draw(fast):
    noise, found = dc.SecureNoise(fast=fast), []
    for name, secret in (("one", False), ("one", False), ("two", False), ("one", True)):
        with SOURCES.begun(name, secret):
            found.append(draws(noise))
    assert found[0] == found[1]
    for other in found[2:]:  # real draws agree with probability below 2^-40
        assert not any(here == there for here, there in zip(found[0], other, strict=True))


def test_modules_that_are_loaded_do_not_change_the_examples_of_hypothesis(tmp_path, monkeypatch):
    def examples():
        found = []

        @hypothesis.given(some.integers())
        def keep(number):
            found.append(number)

        keep()
        return found

    before, file = examples(), tmp_path / "loaded_later.py"
    file.write_text(f"NUMBERS = [{', '.join(map(str, range(10**6, 10**6 + 200)))}]")
    module = types.ModuleType("loaded_later")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "loaded_later", module)
    assert len(before) > 50
    assert examples() == before


@pytest.fixture(scope="module")
def made():
    return np.random.default_rng().random()


def test_a_fixture_has_a_seed_of_its_own(made, request):
    """Whichever test asks first, and whatever was drawn before."""
    with SOURCES.begun(f"{request.node.parent.nodeid} made 0"):
        assert made == np.random.default_rng().random()


@pytest.mark.parametrize("scale", [0.7, 5.0, 2.0**12, 2.0**40])
def test_the_stand_in_has_the_law_of_a_discrete_gaussian(scale):
    drawn = dc.SecureNoise().gaussian("any", (4000,), scale)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], 4000)
    k = np.arange(-100, 101)
    weights = np.exp(-(k**2) / (2 * scale**2))
    variance = (k**2 * weights).sum() / weights.sum() if scale < 10 else scale**2
    assert low <= (drawn.astype(float) ** 2).sum() / variance <= high


def test_the_stand_in_chooses_by_the_exponential_law():
    noise, scores = dc.SecureNoise(), np.array([0, 1, 3], dtype=np.int64)
    counts = np.bincount([int(noise.choose("any", scores, 2.0)) for _ in range(2000)], minlength=3)
    law = np.exp(-scores / 2.0) / np.exp(-scores / 2.0).sum()
    low, high = binom.ppf([[1e-6], [1 - 1e-6]], 2000, law)
    assert ((low <= counts) & (counts <= high)).all()


def listed():
    """Files and folders that the table of docs/testing.md names."""
    text = PAGE.read_text().partition("\n## Where real")[2]
    return {
        name
        for line in text.splitlines()
        if line.startswith("|")
        for name in re.findall(r"`(tests/[\w/.]+)`", line.split("|")[1])
    }


def reasons(path):
    """Why a file must be listed: modules that it imports, and marks of real entropy."""
    found, text = set(), path.read_text()
    for node in ast.walk(ast.parse(text)):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found |= {name.partition(".")[0] for name in names} & REAL
    return found | {word for word in ("mark.entropy", "secret=") if word in text}


HERE = {f"tests/{name}" for name in ("conftest.py", "seeded_sources.py", Path(__file__).name)}


def test_what_is_real_is_listed():
    names, missing = listed(), {}
    folders = tuple(name for name in names if name.endswith("/"))
    assert len(names) > 20
    for path in sorted(TESTS.rglob("*.py")):
        name = f"tests/{path.relative_to(TESTS).as_posix()}"
        if (found := reasons(path)) and name not in names | HERE and not name.startswith(folders):
            missing[name] = sorted(found)
    assert missing == {}, "list them in docs/testing.md, with how they stay deterministic"
    assert [name for name in names if not (TESTS.parent / name).exists()] == []


def test_no_test_uses_a_generator_of_the_whole_process():
    """Such a generator goes on where another test left it."""
    wrong = {}
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of = ast.unparse(node.func.value)
                if of in ("np.random", "numpy.random", "random") and node.func.attr in GLOBAL:
                    wrong.setdefault(path.relative_to(TESTS).as_posix(), []).append(node.lineno)
    # There such a generator is the fault that must be noticed.
    assert set(wrong) <= {"privacy/test_entropy.py", "service/attack/sabotage.py"}, wrong
