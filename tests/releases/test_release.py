"""Release and Released: canonical bytes, a hash chain, and nothing altered is accepted."""

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet import (
    Budget,
    CorruptRelease,
    InvalidInput,
    Learner,
    LinUCB,
    Plan,
    Release,
    Released,
    SecureNoise,
    UnitBall,
)
from discreet.privacy.events import Composed, ExponentialMechanism, Gaussian, NonPrivate
from discreet.releases.canonical import canonical, digest_of, encode_array
from discreet.releases.release import Gram, Predictor, publishable
from discreet.releases.statistics import Statistics
from wording import refused

DOUBLING = {"first_batch": 1, "growth": 2.0}
PLAN = Plan(
    n_actions=2,
    features=UnitBall(2),
    policy=LinUCB(width=1.0),
    budget=Budget(1.0, 1e-5),
    **DOUBLING,
)


def play(plan, decisions, seed=0):
    """A learner after so many decisions, with every loss observed."""
    rng = np.random.default_rng(seed)
    learner = Learner(plan, noise=SecureNoise(fast=True), draws=rng)
    for _ in range(decisions):
        decision = learner.decide(rng.normal(size=2))
        learner.observe(decision.id, float(rng.random()))
    return learner


@pytest.fixture(scope="module")
def released():
    return play(PLAN, 8).released  # three releases with Grams


@pytest.fixture
def document(released, tmp_path):
    released.save(tmp_path / "released.json")
    return json.loads((tmp_path / "released.json").read_bytes())


finite = st.floats(allow_nan=False, allow_infinity=False)
events = st.recursive(
    st.builds(NonPrivate, st.text())
    | st.builds(Gaussian, finite, finite, finite, st.lists(st.text()).map(tuple))
    | st.builds(ExponentialMechanism, finite, finite),
    lambda inner: st.lists(inner, min_size=2, max_size=3).map(lambda parts: Composed(tuple(parts))),
    max_leaves=4,
)


@st.composite
def releases(draw):
    actions, p = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    numbers = hnp.arrays(np.float64, (actions, p), elements=finite)
    squares = hnp.arrays(np.float64, (actions, p, p), elements=finite)
    gram = st.none() | st.builds(Gram, squares, dense=st.booleans(), step=finite)
    symmetric = squares.map(lambda each: np.triu(each) + np.triu(each, 1).swapaxes(-1, -2))
    square = st.none() | hnp.arrays(np.float64, (p, p), elements=finite)
    outcome_sums = st.none() | hnp.arrays(np.float64, (2,), elements=finite)
    slots = st.integers(1, 2**22)
    pool = st.none() | st.builds(
        Statistics, symmetric, numbers, slots, finite, square, square, outcome_sums
    )
    return Release(
        number=draw(st.integers(1, 60)),
        records=draw(st.integers(1, 2**59)),
        predictor=Predictor(draw(numbers), draw(st.sampled_from(("identity", "logistic", "clip")))),
        gram=draw(gram),
        event=draw(events),
        plan_digest=draw(st.text()),
        previous=draw(st.text()),
        statistics=draw(pool),
    )


@given(releases())
@settings(max_examples=50)
def test_what_is_read_is_written_again_in_the_same_bytes(release):
    text = canonical(release.to_json())
    read = Release.from_json(json.loads(text))
    assert canonical(read.to_json()) == text
    assert read.digest == release.digest
    # One value everywhere: the learner goes on with exactly what the file says.
    made = publishable(release)
    read = Release.from_json(json.loads(canonical(made.to_json())))
    np.testing.assert_array_equal(read.predictor.weights, made.predictor.weights)
    if made.gram is not None:
        np.testing.assert_array_equal(read.gram.values, made.gram.values)
        assert (read.gram.step, read.gram.dense) == (made.gram.step, made.gram.dense)
    assert (read.statistics is None) == (made.statistics is None)
    if made.statistics is not None:
        for name in ("gram", "response", "records", "variance"):
            here, there = getattr(read.statistics, name), getattr(made.statistics, name)
            np.testing.assert_array_equal(here, there)
    assert (read.number, read.records, read.event) == (made.number, made.records, made.event)


def test_the_schema_of_a_release():
    release = Release(
        2, 4, Predictor(np.array([[1.0], [0.5]]), "identity"), None, NonPrivate("why"), "aa", "bb"
    )
    assert release.to_json() == {
        "format": "discreet-release/1",
        "number": 2,
        "records": 4,
        "plan": "aa",
        "previous": "bb",
        "event": {"kind": "NonPrivate", "reason": "why"},
        "predictor": {
            "link": "identity",
            "weights": {"shape": [2, 1], "exponent": -52, "integers": [2**52, 2**51]},
        },
        "gram": None,
    }
    # A promise: see docs/stability.md.
    assert release.digest == "42e26255f11ef17da54aad6808027bc4b08710c109ac5f49cde120f278685636"


def test_save_and_load(released, tmp_path):
    released.save(tmp_path / "a.json")
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o644
    read = Released.load(tmp_path / "a.json")
    assert [item.digest for item in read.items] == [item.digest for item in released.items]
    assert read.n_actions == 2
    assert read.schedule == released.schedule
    assert Plan.from_config(read.plan) == PLAN
    read.save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_the_chain_begins_with_the_plan(released, document):
    assert released.items[0].previous == PLAN.digest == digest_of(document["plan"])
    for before, after in zip(released.items, released.items[1:], strict=False):
        assert after.previous == before.digest
    assert {item.plan_digest for item in released.items} == {PLAN.digest}
    assert document["head"] == released.items[-1].digest


def test_before_the_first_release_the_head_is_the_plan(tmp_path):
    Learner(PLAN).released.save(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_bytes())
    assert document["head"] == PLAN.digest
    assert Released.load(tmp_path / "a.json").latest is None
    document["plan"]["n_actions"] = 3
    with refused(CorruptRelease, "head"):
        Released.from_document(document)


def test_every_altered_byte_is_found(tmp_path):
    """Every position of a file once, with a seeded other byte: refused, or the same document.

    The only bytes without meaning are blanks between tokens; a canonical file has one, its last.
    """
    plan = Plan(n_actions=2, features=UnitBall(2), budget=Budget(1.0, 1e-5), **DOUBLING)
    released = play(plan, 5).released
    path = tmp_path / "released.json"
    released.save(path)
    original = path.read_bytes()
    choose, passed = random.Random(0), []
    for position in range(len(original)):
        altered = bytearray(original)
        altered[position] ^= choose.randrange(1, 256)
        path.write_bytes(altered)
        try:
            Released.load(path)
        except CorruptRelease:
            continue
        passed.append(position)
        assert json.loads(altered) == json.loads(original)
    assert len(original) > 1000
    assert set(passed) <= {len(original) - 1}


def first(document):
    return document["releases"][0]["release"]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["releases"].pop(0),
        lambda d: d["releases"].pop(),
        lambda d: d["releases"].reverse(),
        lambda d: d["releases"].append(d["releases"][-1]),
        lambda d: d.pop("head"),
        lambda d: d.pop("plan"),
        lambda d: d.update(more=1),
        lambda d: d.update(format="discreet-released/2"),
        lambda d: d.update(releases={}),
        lambda d: d["plan"].update(unit="person"),
        lambda d: d["plan"].update(n_actions="two"),
        lambda d: d["releases"][0].update(more=1),
        lambda d: first(d).update(more=1),
        lambda d: first(d).pop("gram"),
        lambda d: first(d).update(format="discreet-release/2"),
        lambda d: first(d).update(records=float("1e400")),  # "16384" as "1e384"
        lambda d: first(d)["predictor"].update(link="probit"),
        lambda d: first(d)["event"].update(multiplier="0.1"),
        lambda d: first(d)["predictor"]["weights"].update(shape=[7]),
        lambda d: first(d)["predictor"]["weights"].update(exponent=10**9),
        lambda d: first(d)["statistics"].update(gram=encode_array(np.ones((1, 5)))),
    ],
)
def test_an_altered_chain_is_refused(document, change):
    Released.from_document(document)  # good before
    change(document)
    with refused(CorruptRelease):
        Released.from_document(document)


def test_a_file_cut_short_is_refused(released, tmp_path):
    path = tmp_path / "released.json"
    released.save(path)
    whole = path.read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:length])
        with refused(CorruptRelease, "cut short or altered"):
            Released.load(path)


def test_compact_keeps_what_a_fit_needs_and_no_more():
    """All statistics, each in its own coordinates; of the Grams their sum."""
    first, second = (Statistics(n * np.eye(1)[None], np.ones((2, 1)), n, 1.0) for n in (1, 2))
    both = Released(2)
    for each in (first, second):
        gram = Gram(each.gram, dense=False, step=1.0)
        both = both.add(Release(1, 1, Predictor(np.ones((2, 1)), "clip"), gram, statistics=each))
    small = both._compact()
    assert small.statistics == both.statistics == (first, second)
    assert [item.gram for item in small.items] == [None, None]
    np.testing.assert_array_equal(small.radii(np.ones((1, 1))), both.radii(np.ones((1, 1))))


def test_releases_without_a_plan_are_not_saved(tmp_path):
    with refused(InvalidInput, "plan is unknown"):
        Released(2).save(tmp_path / "a.json")
    assert not list(tmp_path.iterdir())


def test_radii_need_grams_from_the_start():
    bare = Released(2).add(Release(1, 1, Predictor(np.zeros((2, 3)), "identity")))
    with refused(InvalidInput, "radii", "Gram"):
        bare.radii(np.ones((1, 3)))
