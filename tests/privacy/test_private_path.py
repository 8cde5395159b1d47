"""Static guards: the modules that touch private rows cannot speak about them.

They hold no logging, printing or warning, no message that formats an array, and the batch
itself has no printable, picklable or copyable form.
"""

from __future__ import annotations

import ast
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.errors import PrivateData
from discreet.types import Batch

SOURCE = Path(discreet.__file__).parent
PRIVATE_PATH = sorted(
    [*SOURCE.glob("oracles/*.py"), SOURCE / "privacy" / "noise.py", SOURCE / "store.py"]
)
SILENT = {"logging", "warnings", "traceback", "sys", "inspect"}
SPEAKING = {"print", "repr", "breakpoint", "warn"}
PUBLIC_PARTS = {
    "n_actions": "the plan",
    "p": "the plan",
    "shape": "shapes are public",
    "records": "the number of slots is public",
    "weights": "the weights of a FiniteClass are its public configuration",
    "LARGEST_BATCH": "a constant",
    "functions": "shape of a FiniteClass",
    "actions": "shape of a FiniteClass",
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
            if name in SPEAKING:
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


@pytest.mark.parametrize("path", PRIVATE_PATH, ids=lambda path: path.stem)
def test_the_private_path_is_silent(path):
    assert complaints(ast.parse(path.read_text())) == []


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
    ],
)
def test_the_guard_notices(code):
    assert complaints(ast.parse(code))


def test_the_guard_covers_every_oracle():
    names = {path.name for path in PRIVATE_PATH}
    assert {"ridge.py", "logistic.py", "finite.py", "moments.py", "newton.py"} <= names
    assert {"perturb.py", "noise.py", "store.py"} <= names


@pytest.fixture
def batch():
    return Batch(np.full((2, 3), 0.123), np.full((2, 2), 0.456), np.ones((2, 2), dtype=bool))


def test_a_batch_shows_nothing(batch):
    for text in (repr(batch), str(batch), f"{batch}", f"{[batch]}", f"{batch!r}"):
        assert "0.123" not in text
        assert "0.456" not in text
        assert "Batch(private)" in text


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_batch_cannot_be_pickled(batch, protocol):
    with pytest.raises(PrivateData):
        pickle.dumps(batch, protocol=protocol)


def test_a_batch_cannot_be_copied(batch):
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(PrivateData):
            duplicate(batch)
    with pytest.raises(PrivateData):
        copy.deepcopy({"rows": [batch]})
    with pytest.raises(PrivateData):
        batch.__getstate__()
