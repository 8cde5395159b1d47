"""The vectors for other languages: current, right for Python, right for JavaScript."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from client import vectors
from client.chains import BALL, KEY, SCHEMA
from discreet.client import Billboard
from discreet.client.documents import EVALUATED
from discreet.features.schema import KINDS
from discreet.releases.release import LINKS
from tolerances import EXACT

VECTORS = json.loads(vectors.FILE.read_text())
CLIENT = Path(os.environ.get("DISCREET_TESTS_CLIENTS") or vectors.FILE.parents[1]) / "js"
"""The sources, or the copy with a fault of tests/sabotage."""
CASES = {case["name"]: case for case in VECTORS["cases"]}


def assert_same(one, other):
    """Equal, numbers up to rounding: a library may add in another order elsewhere."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_same(one[name], other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=EXACT, abs=EXACT)
    else:
        assert one == other


def test_the_file_is_what_the_core_says():
    assert_same(json.loads(vectors.written(vectors.vectors())), VECTORS)


def test_every_policy_and_every_link_is_covered():
    plans = [json.loads(case["documents"][0])["plan"] for case in VECTORS["cases"]]
    assert {each["policy"]["kind"] for each in plans} == set(EVALUATED)
    assert {each["features"]["kind"] for each in plans} == {"UnitBall", "Schema"}
    releases = [json.loads(text) for case in VECTORS["cases"] for text in case["documents"][1:]]
    links = {each["release"]["predictor"]["link"] for each in releases}
    assert links == set(LINKS)


@pytest.mark.parametrize("name", CASES)
def test_python_agrees(name):
    case = CASES[name]
    board = Billboard([text.encode() for text in case["documents"]], KEY)
    found = board.probabilities(case["contexts"])
    np.testing.assert_allclose(found, case["probabilities"], rtol=0, atol=EXACT)
    for context, actions in zip(case["contexts"], case["actions"], strict=True):
        assert [board.sample(context, u) for u in VECTORS["draws"]] == actions


@pytest.mark.parametrize("case", VECTORS["offers"], ids=lambda case: case["name"])
def test_python_refuses_the_same_offers(case):
    board = Billboard([text.encode() for text in case["documents"]], KEY)
    context = case["offers"][0]["context"]
    assert list(board.actions) == case["known"]
    for offer in case["refused"]:
        with pytest.raises(dc.InvalidInput):
            board.sample(context, actions=offer)


def test_every_policy_is_offered_items_and_changed_blocks():
    plans = [json.loads(case["documents"][0])["plan"] for case in VECTORS["offers"]]
    for joint in (True, False):
        kinds = {p["policy"]["kind"] for p in plans if (p["features"]["kind"] == "Joint") == joint}
        assert kinds == set(EVALUATED)
    interactions = {str(type(p["features"].get("interactions"))) for p in plans}
    assert len(interactions) == 4  # a word, a width, pairs; and none for blocks
    assert {"floor" in each for each in plans} == {True, False}


@pytest.mark.parametrize(("features", "kind"), [(BALL, "UnitBall"), (SCHEMA, "Schema")])
def test_python_refuses_the_same_contexts(features, kind):
    for context in VECTORS["features"][kind][2]:
        with pytest.raises(dc.InvalidInput):
            features.map(context)


@pytest.mark.parametrize("case", VECTORS["schemas"], ids=lambda case: case["name"])
def test_python_maps_the_same_columns_and_refuses_the_same(case):
    features = vectors.schema_of(case)
    for context, expected in zip(case["contexts"], case["expected"], strict=True):
        np.testing.assert_allclose(features.map(context)[0], expected, rtol=0, atol=EXACT)
    for context in case["refused"]:
        with pytest.raises(dc.InvalidInput):
            features.map(context)


def test_every_kind_of_column_is_covered():
    fields = [each for case in VECTORS["schemas"] for each in case["features"]["fields"]]
    kinds = {each["kind"] for each in fields}
    assert kinds == set(KINDS)
    for kind in kinds:
        for option in ("stand_in", "indicator"):
            assert any(field["kind"] == kind and option in field for field in fields), (
                kind,
                option,
            )


def node(folder):
    """The tests of the JavaScript client in a folder."""
    return subprocess.run(
        ["node", "--test"], cwd=folder, capture_output=True, text=True, encoding="utf-8"
    )


needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="node 20 or later must be installed for clients/js"
)


@needs_node
def test_javascript_agrees():
    done = node(CLIENT)
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout


MUTANTS = {
    "return secure.verify(": "return true || secure.verify(",
    "previous === last.digest": "true",
    "epoch > last.document.epoch": "true",
    "links.at(-1).digest === kept.digest": "true",
    "M === null && k === null": "true",
    "max_batches === null": "true",
    "rest[name] === first[name]": "true",
    "canonical(signed) === text": "true",
    "fits(links, rest.release)": "true",
    "previous === links.findLast((link) => link.inner).inner": "true",
    "removed.every((name) => used.has(name))": "true",
    "Math.ceil(+growth": "Math.round(+growth",
    "-5 * plan.half_life - 1": "0",
    "const records = item.share * item.records": "const records = item.records",
    "second < rules.clear": "first < rules.clear",
    "error(b.places[i])) ** 2": "error(i)) ** 2",
    "Math.floor(first * length)": "Math.round(first * length)",
    "(h ^ (h >>> 13), 0xc2b2ae35)": "(h ^ (h >>> 12), 0xc2b2ae35)",
    "[number, low, high].map(Math.log)": "[number, low, high]",
    "weights[place] ?? (item.mean ??= mean())": "weights[place] ?? weights[0]",
    "if (first < even) return": "if (first < 0) return",
}
"""Lines whose change the vectors must notice: each part of a verification, and of an evaluation."""


@needs_node
@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=[pytest.mark.long] * (at > 0)) for at, line in enumerate(MUTANTS)],
)
def test_the_javascript_tests_see_what_is_broken(line, tmp_path):
    for name in ("discreet.js", "discreet.test.js", "package.json", "vectors.json"):
        shutil.copy(CLIENT / name, tmp_path)
    source = (tmp_path / "discreet.js").read_text()
    assert source.count(line) == 1
    (tmp_path / "discreet.js").write_text(source.replace(line, MUTANTS[line]))
    assert node(tmp_path).returncode != 0


def test_the_javascript_client_is_small_and_needs_nothing():
    source = (CLIENT / "discreet.js").read_text()
    assert len(source.splitlines()) < 735
    assert "import " not in source
    described = json.loads((CLIENT / "package.json").read_text())
    assert described["version"] == dc.__version__
    assert not {"dependencies", "devDependencies"} & described.keys()


def test_the_javascript_package_holds_what_it_exports():
    described = json.loads((CLIENT / "package.json").read_text())
    exported = {path for each in described["exports"].values() for path in each.values()}
    packed = {path.name for pattern in described["files"] for path in CLIENT.glob(pattern)}
    assert {path.removeprefix("./") for path in exported} == packed
    imported = {
        name
        for path in packed
        for name in re.findall(r'from "\./(\w+\.js)"', (CLIENT / path).read_text())
    }
    assert imported <= packed
