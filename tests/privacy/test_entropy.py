"""Privacy noise is a function of the operating system's entropy and of nothing else.

Two ways to be sure: what the module may import, call and keep is written down here; and with a
known stream in place of entropy every draw repeats, for all clocks, processes and generators.
"""

import ast
import builtins
import hashlib
import os
import random
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from discreet.audit.entropy import Stream, drawn, wrong_with
from discreet.privacy import noise as noise_module
from discreet.privacy.noise import SecureNoise, SeededNoise

MODULES = {
    *("__future__", "collections.abc", "dataclasses", "decimal", "functools", "itertools", "math"),
    *("opendp", "opendp.domains", "opendp.measures", "opendp.metrics", "opendp.mod"),
    *("numpy", "os", "scipy.special", "typing", "zlib"),
    *("discreet.errors", "discreet.privacy.events", "discreet.types"),
}
ATTRIBUTES = {
    "os": {"urandom"},
    "zlib": set(),  # SeededNoise alone
    "math": {"ceil", "hypot", "prod", "sqrt"},
    "measurements": {"make_gaussian", "make_noisy_max"},
    "np": {
        *("asarray", "broadcast_to", "frombuffer", "squeeze", "unique", "zeros", "searchsorted"),
        *("float64", "int64", "uint64", "integer", "issubdtype", "ndarray", "ndim"),
        *("linalg", "log"),
    },
}
"""What may be used of the modules that could do more. OpenDP's samplers are measurements."""
BUILTINS = {
    *("abs", "all", "any", "bool", "dict", "enumerate", "float", "int", "isinstance", "len"),
    *("list", "max", "min", "property", "range", "str", "sum", "tuple", "zip"),
}
KEPT = {"_table", "_space"}
"""Functions whose result is kept: none of them draws."""


def surface(tree):
    """Everything beyond the allow-list in a module, without the class that is seeded on purpose."""
    tree.body = [node for node in tree.body if getattr(node, "name", "") != "SeededNoise"]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name not in MODULES]
        if isinstance(node, ast.ImportFrom) and node.module not in MODULES:
            found.append(node.module)
        if isinstance(node, ast.Attribute):
            allowed = ATTRIBUTES.get(getattr(node.value, "id", ""))
            if node.attr.startswith("__") or (allowed is not None and node.attr not in allowed):
                found.append(ast.unparse(node))
        if isinstance(node, ast.Name) and (
            hasattr(builtins, node.id) and node.id not in BUILTINS and node.id[:1].islower()
        ):
            found.append(node.id)
        if isinstance(node, ast.Name) and node.id.startswith("__"):
            found.append(node.id)
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found.append("global")
        if isinstance(node, ast.FunctionDef) and node.name not in KEPT:
            decorators = [ast.unparse(each) for each in node.decorator_list]
            found += [f"{node.name} is kept" for each in decorators if "cache" in each]
    return found


def test_the_noise_may_use_nothing_else():
    assert surface(ast.parse(Path(noise_module.__file__).read_text())) == []


@pytest.mark.parametrize(
    "code",
    [
        "import time",
        "from hashlib import sha256",
        "import numpy.random",
        "def f():\n    return os.getpid()",
        "def f():\n    return np.random.default_rng(0)",
        "def f():\n    return np.datetime64('now')",
        "def f():\n    return __import__('time').time_ns()",
        "def f(x):\n    return id(x)",
        "def f():\n    return hash('x')",
        "def f():\n    return open('/proc/uptime')",
        "def f(x):\n    return x.__reduce__()",
        "@lru_cache\ndef f(scale):\n    return _words(1)",
        "def f():\n    global last",
    ],
)
def test_the_allow_list_notices(code):
    assert surface(ast.parse(code))


@pytest.mark.parametrize("source", [SecureNoise(), SecureNoise(fast=True)], ids=["exact", "fast"])
def test_draws_are_a_function_of_entropy_alone(source):
    assert wrong_with(source) == []


def clock(drawn):
    seed = hashlib.sha256(str(time.time_ns()).encode()).digest()[:8]
    return drawn + int.from_bytes(seed, "little") * 2.0**-60


NORMALS = {
    "clock": clock,
    "process": lambda drawn: drawn + os.getpid(),
    "global": lambda drawn: drawn + np.random.normal() + random.random(),
    "copied": lambda drawn: np.broadcast_to(drawn[:1], drawn.shape).copy(),
    "coarse": np.float32,
}


@pytest.mark.parametrize("change", NORMALS.values(), ids=NORMALS)
def test_other_normals_are_noticed(change, monkeypatch):
    normal = SecureNoise.normal
    monkeypatch.setattr(SecureNoise, "normal", lambda *given: change(normal(*given)))
    assert wrong_with(SecureNoise())


class Rounded(SecureNoise):
    def gaussian(self, name, shape, scale):
        return np.rint(self.normal(name, shape) * scale).astype(np.int64)


class Clipped(SecureNoise):
    def gaussian(self, name, shape, scale):
        return np.clip(super().gaussian(name, shape, scale), -4 * scale, 4 * scale)


class Informed(SecureNoise):
    def choose(self, name, scores, scale):
        return super().choose(name, np.asarray(scores) * 0, scale * 2)


@pytest.mark.parametrize("source", [Rounded, Clipped, Informed])
def test_a_source_that_draws_otherwise_is_noticed(source):
    assert wrong_with(source())


def test_a_seeded_source_is_noticed():
    """It repeats with its seed, for any entropy."""
    assert drawn(SeededNoise(0), Stream(1), 1)["normal"].tolist() == (
        drawn(SeededNoise(0), Stream(2), 1)["normal"].tolist()
    )
    assert wrong_with(SeededNoise(0))


@pytest.mark.parametrize("seed", [0, 2**32 - 1, 2**32, 2**70])
def test_a_seed_of_any_length_is_that_of_numpy(seed):
    words = [seed, 3, zlib.crc32(b"gram")]
    expected = np.random.default_rng(words).standard_normal(4)
    np.testing.assert_array_equal(SeededNoise(seed, 3).normal("gram", (4,)), expected)
