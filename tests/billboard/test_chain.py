"""Chains of documents: which hold, which are refused, and what a restore does."""

import pytest

import discreet as dc
from billboard.chains import KEY, broken, chain, histories, plan, released, resigned
from discreet.billboard import documents
from discreet.billboard.board import Billboard
from discreet.billboard.chain import Chain
from wording import refused

GOOD, BROKEN = histories(), broken()


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


def test_a_restore_brings_back_the_releases_it_kept():
    seen, _, _ = GOOD["restore, all seen"]
    fresh, _, _ = GOOD["restore, lost ones never seen"]
    one, other = (Chain(KEY).extended(each).released for each in (seen, fresh))
    assert [item.digest for item in one.items] == [item.digest for item in other.items]
    before = Chain(KEY).extended(seen[:6]).released
    assert before.items[3].digest != one.items[3].digest


def test_releases_inside_good_documents_must_follow_each_other():
    of = plan(dc.SquareCB())
    contents = chain(of, released(of, 2))
    document = documents.verify(contents[2], KEY)
    document["release"]["previous"] = of.digest
    with refused(dc.CorruptRelease, "release 2"):
        _ = Chain(KEY).extended([*contents[:2], resigned(document)]).released


@pytest.mark.parametrize("field", ["unit", "schema"])
def test_a_genesis_must_agree_with_its_plan(field):
    document = documents.verify(
        chain(plan(dc.SquareCB()), released(plan(dc.SquareCB()), 0))[0], KEY
    )
    with refused(dc.CorruptRelease, "unit and the schema"):
        Chain(KEY).extended([resigned({**document, field: "other"})])
