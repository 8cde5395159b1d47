"""Static guards: the code that touches private rows cannot speak about them.

Three ways to find that code: modules that are known to hold rows, functions that take or give
``Batch`` or ``Fit``, and all that a release of each oracle calls, traced. None of it logs, prints,
warns, formats a private value into an error or draws from a seeded generator, and the batch
itself has no printable, picklable or copyable form.
"""

import ast
import builtins
import copy
import logging
import pickle
import random
import sys
import warnings
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import discreet
from catalogue import ORACLES
from discreet.batch import Batch
from discreet.errors import PrivateData
from wording import refused

SOURCE = Path(discreet.__file__).parent
STORED = "batch_slots", "batch_status", "memory_store", "release_batch", "saved_state"
PRIVATE_PATH = sorted(
    [
        *SOURCE.rglob("oracles/**/*.py"),
        SOURCE / "privacy" / "noise.py",
        *(SOURCE / "batches" / f"{name}.py" for name in STORED),
        SOURCE / "service" / "storage" / "sealed_batch.py",
    ]
)
SILENT = {"logging", "warnings", "traceback", "sys", "inspect", "random"}
SPEAKING = {"print", "repr", "breakpoint", "warn"}
SEEDED = {"default_rng", "RandomState", "Generator", "seed", "SeedSequence", "SeededNoise"}
PRIVATE_TYPES = {"Batch", "Fit", "Moments", "LegalRows", "Sums", "PartSums"}
SIMULATED = ("audit/", "lab/theory/", "simulate/")
"""Packages whose batches are made up: no person's records are in them."""
PUBLIC_PARTS = {
    "n_actions": "the plan",
    "p": "the plan",
    "bits": "of a public matrix, by its shape",
    "shape": "shapes are public",
    "records": "the number of slots is public",
    "size": "the number of slots is public",
    "__name__": "the class of an error",
    "reason": "of a part without sums: its file, the place of a row, and a rule",
    "weights": "the weights of a FiniteClass are its public configuration",
    "LARGEST_BATCH": "a constant",
    "functions": "shape of a FiniteClass",
    "actions": "shape of a FiniteClass",
    "partition": "the ledger's name of a batch",
    "epsilon": "the budget",
    "delta": "the budget",
    "cost": "charged before any row is read",
    "word": "loss or reward, as the plan declares",
    "path": "the file of a saved state",
    "source": "the file of a saved state",
    "claimed": "the file of a saved state",
}
"""What a message in the private path may format, and why."""


def complaints(tree: ast.AST) -> list[str]:
    """Everything in a module through which a private value could leave."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in SILENT]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in SILENT:
            found.append(str(node.module))
        if isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name in SPEAKING | SEEDED:
                found.append(f"{name}()")
        if isinstance(node, ast.Raise) and node.exc is not None:
            found += [f"raise formats {each}" for each in formatted_names(node.exc)]
    return found


def formatted_names(raised: ast.AST) -> list[str]:
    """Names and attributes in a raise that are formatted into text and not known as public."""
    named = []
    for node in ast.walk(raised):
        values = []
        if isinstance(node, ast.FormattedValue):
            values.append(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            values.append(node.right)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "format":
            values += [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "str":
            values += node.args
        for value in values:
            leaves = [
                leaf.attr if isinstance(leaf, ast.Attribute) else leaf.id
                for leaf in ast.walk(value)
                if isinstance(leaf, (ast.Name, ast.Attribute))
            ]
            # An expression is public if it ends in a public part, as batch.records does.
            if not leaves or leaves[0] not in PUBLIC_PARTS:
                named.append(ast.unparse(value))
    return named


def parsed(path):
    """A module without the class that is seeded on purpose: no private release goes through it."""
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if getattr(node, "name", "") != "SeededNoise"]
    return tree


@pytest.mark.parametrize("path", PRIVATE_PATH, ids=lambda path: path.stem)
def test_the_private_path_is_silent(path):
    assert complaints(parsed(path)) == []


@cache
def functions(path):
    """Every function of a module by its first line."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    found = [node for node in ast.walk(parsed(path)) if isinstance(node, kinds)]
    return {_first_line(node): node for node in found}


def _first_line(node):
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def annotated(node):
    """The types in a function's signature."""
    arguments = node.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    hints = [each.annotation for each in listed] + [getattr(node, "returns", None)]
    words = [leaf for hint in hints if hint for leaf in ast.walk(hint)]
    return {getattr(leaf, "id", getattr(leaf, "value", None)) for leaf in words}


@cache
def typed():
    """(module, function) of every function whose signature has a private type."""
    return [
        (path.relative_to(SOURCE).as_posix(), node)
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.relative_to(SOURCE).as_posix().startswith(SIMULATED)
        for node in functions(path).values()
        if annotated(node) & PRIVATE_TYPES
    ]


def test_functions_of_private_types_are_silent():
    found = {(where, node.lineno): complaints(node) for where, node in typed()}
    assert {place: each for place, each in found.items() if each} == {}
    named = {(where, node.name) for where, node in typed()}
    assert ("oracles/mechanisms/ridge.py", "fit") in named
    assert ("batches/release_batch.py", "release_batch") in named
    assert ("oracles/mechanisms/legal_rows.py", "legal_rows") in named


PRIVATE = [name for name, case in ORACLES.items() if case.budget.private]


def ready(case):
    """A learner whose first batch is complete, with extreme records."""
    parts = {"first_batch": 4, "growth": 2.0, "releases": "on_request"}
    learner = discreet.Learner(replace(case.plan(), **parts))
    decided = learner.decide([[1e300, -1e300, 0.0], [0.0] * 3, [1.0] * 3, [-5.0, 1e-300, 1.0]])
    losses = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.5, 0.25, 1.0]])
    learner.observe(decided.id[:3], losses if case.feedback == "full" else losses[:, 0])
    learner.close()
    return learner


def traced(call):
    """(path, first line) of every function of ours that a call runs."""
    seen = set()

    def note(frame, event, _):
        if event == "call":
            code = frame.f_code
            seen.add((code.co_filename, code.co_firstlineno))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {(Path(name), line) for name, line in seen if Path(name).is_relative_to(SOURCE)}


@pytest.mark.parametrize("name", PRIVATE)
def test_whatever_a_release_runs_before_it_is_public_is_silent(name):
    """From the rows in the store to the fit, which carries its noise."""
    learner = ready(ORACLES[name])
    mechanism, noise = learner.plan.mechanism, discreet.SecureNoise()
    reached = traced(lambda: mechanism.fit(learner._store.batches[0].batch(None), noise))
    assert len(reached) > 12
    known = 0
    for path, line in reached:
        node = functions(path).get(line)
        if node is not None:  # comprehensions lie inside a function that is checked
            known += 1
            assert complaints(node) == [], f"{path.name}:{line}"
    assert known > 10


WIRES = [
    (np.random, "default_rng"),
    (np.random, "RandomState"),
    (np.random, "normal"),
    (np.random, "random"),
    (random, "random"),
    (random, "gauss"),
    (random, "seed"),
    (logging.Logger, "_log"),
    (warnings, "warn"),
    (builtins, "print"),
]


@pytest.mark.parametrize("name", PRIVATE)
def test_no_release_touches_a_tripwire(name, monkeypatch):
    learner = ready(ORACLES[name])
    ready(ORACLES[name]).release()  # libraries that are imported late are imported now

    def touched(*_, **__):
        raise AssertionError("a private release reached a generator, a log or a printer")

    for place, attribute in WIRES:
        monkeypatch.setattr(place, attribute, touched)
    learner.release()
    assert len(learner.released.items) == 1


@pytest.mark.parametrize(
    "code",
    [
        "import logging",
        "from warnings import warn",
        "def f(batch):\n    print(batch.losses)",
        "def f(batch):\n    raise ValueError(f'loss {batch.losses} is bad')",
        "def f(x):\n    raise ValueError('norm %s' % x)",
        "def f(x):\n    raise ValueError('norm {}'.format(x))",
        "def f(x):\n    raise ValueError('norm ' + str(x))",
        "def f(x):\n    raise ValueError(f'{np.linalg.norm(x):.3f}')",
        "import random",
        "def f(x):\n    return x + np.random.default_rng(0).normal()",
        "def f(noise):\n    return SeededNoise(0).normal('any', (3,))",
    ],
)
def test_the_guard_notices(code):
    assert complaints(ast.parse(code))


@pytest.fixture
def batch():
    return Batch(np.full((2, 3), 0.123), np.full((2, 2), 0.456), np.ones((2, 2), dtype=bool))


def test_a_batch_shows_nothing(batch):
    assert (batch.records, batch.n_actions) == (2, 2)
    for text in (repr(batch), str(batch), f"{batch}", f"{[batch]}", f"{batch!r}"):
        assert "0.123" not in text
        assert "0.456" not in text
        assert "Batch(private)" in text


def test_a_batch_cannot_be_pickled_or_copied(batch):
    ways = [partial(pickle.dumps, protocol=each) for each in range(pickle.HIGHEST_PROTOCOL + 1)]
    for duplicate in (*ways, copy.copy, copy.deepcopy, Batch.__getstate__):
        with refused(PrivateData, "Batch", "Learner.save"):
            duplicate(batch)
    with pytest.raises(PrivateData):
        copy.deepcopy({"rows": [batch]})
