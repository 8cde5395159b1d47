"""Chains of documents: which hold, which are refused, and what a restore does."""

import gc
import tracemalloc

import numpy as np
import pytest

import discreet as dc
from client.chains import KEY, broken, chain, histories, plan, released, resigned
from client.offered_chains import broken_changes
from discreet.client import Billboard, documents
from discreet.client.chain import Chain
from discreet.releases.quality import quality
from discreet.service.runtime.policy_versions import PolicyVersions
from wording import refused

GOOD, BROKEN = histories(), broken() | broken_changes()


@pytest.mark.parametrize("name", GOOD)
def test_a_chain_that_holds(name):
    contents, number, releases = GOOD[name]
    held = Chain(KEY).extended(contents)
    assert held.number == number
    assert [item.number for item in held.released.items] == list(range(1, releases + 1))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_chain_is_refused_in_words(name):
    with refused(dc.CorruptRelease):
        Billboard(BROKEN[name], KEY)


def test_the_releases_are_those_of_the_learner(tmp_path):
    of = plan(dc.LinUCB())
    history = released(of, 3, grams="block")
    held = Chain(KEY).extended(chain(of, history)).released
    history.save(tmp_path / "released.json")
    held.save(tmp_path / "held.json")
    assert (tmp_path / "held.json").read_bytes() == (tmp_path / "released.json").read_bytes()


@pytest.mark.parametrize("field", ["unit", "schema"])
def test_a_genesis_must_agree_with_its_plan(field):
    document = documents.verify(
        chain(plan(dc.SquareCB()), released(plan(dc.SquareCB()), 0))[0], KEY
    )
    with refused(dc.CorruptRelease, "unit and the schema"):
        Chain(KEY).extended([resigned({**document, field: "other"})])


@pytest.mark.parametrize("rule", [dc.ReplayBonusPO(), dc.AdaptivePO()])
def test_a_chain_for_deciding_says_the_same_and_goes_on(rule):
    of = plan(rule)
    contents = chain(of, released(of, 4, signal=(0.25, 0.125)))
    whole = Chain(KEY).extended(contents)
    light = Chain(KEY)
    for content in contents:  # as a service reads them
        light = light.extended([content]).for_deciding()
    assert light.number == whole.number
    rows = of.features.map(np.random.default_rng(0).normal(size=(20, 3)) / 3)
    wanted = of.policy.probabilities(whole.released, rows)
    np.testing.assert_array_equal(of.policy.probabilities(light.deciding, rows), wanted)
    assert quality(light.deciding) == quality(whole.released)
    digests = [[item.digest for item in each.releases] for each in (light, whole)]
    assert digests[0] == digests[1]
    assert all(item.statistics.gram.shape == (3, 1, 1) for item in light.releases)
    for part in (light.deciding, *light.releases):  # it can be neither saved nor published
        names = {name for name in dir(part) if not name.startswith("_")}
        assert not names & {"to_json", "save", "add", "event", "plan_digest", "previous"}
    with refused(dc.InvalidInput, "whole releases"):
        _ = light.released
    with pytest.raises(AttributeError):
        documents.release_document(chain(of, released(of, 0))[0], light.releases[0])


@pytest.mark.parametrize(
    ("clear", "text"),
    [
        (0.0, "decisions follow the newest release, mostly"),
        (0.5, "decisions follow all releases in 50 % of all cases"),
        (1.0, "decisions follow all releases, and rarely"),
    ],
)
def test_releases_say_which_rule_decides_and_why(clear, text):
    of = plan(dc.AdaptivePO())
    history = released(of, 3, signal=(clear, 0.25))
    assert text in history.rule_text
    light = Chain(KEY).extended(chain(of, history)).for_deciding()
    assert light.deciding.rule_text == history.rule_text
    assert released(of, 2, pooled=True).rule_text is None


def test_a_service_that_never_fits_holds_little_of_each_release():
    """4 KiB each for four actions and nine features, of a document of 5; half a KiB is what lets a
    single row be decided in plain numbers."""
    of = plan(dc.ReplayBonusPO(), features=dc.UnitBall(8), n_actions=4)
    contents = chain(of, released(of, 60, pooled=True))
    serving = PolicyVersions(of, KEY)
    held = []
    tracemalloc.start()
    try:
        for content in contents:
            serving.adopt(serving.extended([content]))
            gc.collect()  # other tests in this process move the time of the next collection
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    grown = (held[-1] - held[20]) / 40
    assert grown < 4608
