"""What rivals keep: sensitivities that pairs attain, and attacks that catch halved noise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.audit import rival_audits
from discreet.audit.finding import FAILS, HOLDS
from discreet.features.unit_ball import UnitBall
from discreet.lab.rivals import AdaPrivateTS, TreeLinUCB, runner
from discreet.lab.rivals.rival_contract import RivalProblem


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_adassp_keeps_its_claim_and_half_its_noise_does_not(epsilon, monkeypatch):
    subject = rival_audits.RivalSubject(rival_audits.ADASSP, epsilon)
    assert rival_audits.adassp_move(subject).verdict == HOLDS
    made = rival_audits.adassp(subject.budget)
    half = {name: 0.5 * getattr(made, name) for name in ("gram", "response", "eigenvalue")}
    monkeypatch.setattr(rival_audits, "adassp", lambda _: replace(made, **half))
    assert rival_audits.adassp_move(subject).verdict != HOLDS


def features(context):
    return UnitBall(2).map(np.array([context]))[0]


GAUSSIAN = [name for name in rival_audits.RIVALS if name != "rival-coded"]
LOCAL = rival_audits.RivalSubject("rival-local", 1.0)
angle = st.floats(0.0, 2.0 * math.pi)


@pytest.mark.parametrize("name", GAUSSIAN)
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_every_rival_keeps_its_claim_exactly(name, epsilon):
    found = rival_audits.exact_move(rival_audits.RivalSubject(name, epsilon))
    assert found.verdict == HOLDS, found.said
    if "published" not in name:
        assert found.exact == pytest.approx(found.claimed, rel=1e-3)


@given(angle, angle, st.floats(0, 1), st.floats(0, 1), st.integers(0, 1), st.floats(0, 1))
def test_no_pair_lies_further_apart_than_the_worst(one, two, first, second, action, length):
    subject = LOCAL
    rows = [features((math.cos(each), math.sin(each))) for each in (one, two)]
    short = features((length * math.cos(one), length * math.sin(one)))
    for row in (rows[0], short):
        moved = subject.statistics(row, first, 0) - subject.statistics(rows[1], second, action)
        assert np.linalg.norm(moved) <= subject.shift * (1 + 1e-9)


def test_a_person_pays_for_every_level_of_the_tree():
    budget = dc.Budget(1.0, 1e-5)
    short, long = (
        TreeLinUCB().scales(RivalProblem(2, 3, rounds), budget).gram for rounds in (1, 1023)
    )
    assert long == pytest.approx(math.sqrt(10) * short)


@pytest.mark.parametrize("name", ["rival-tree", "rival-local", "rival-batched", "rival-adaprivate"])
def test_halved_noise_is_caught(name, monkeypatch):
    subject = rival_audits.RivalSubject(name, 2.0)
    assert rival_audits.black_box_rival(subject, 1e-6).verdict == HOLDS
    whole = runner.noisy_sums

    def halved(gram, response, noise, scale, p):
        return whole(gram, response, 0.5 * noise, scale, p)

    monkeypatch.setattr(rival_audits, "noisy_sums", halved)
    assert rival_audits.black_box_rival(subject, 1e-6).verdict == FAILS


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_a_clear_gram_shows_context_and_action_and_a_protected_one_does_not(epsilon, monkeypatch):
    monkeypatch.setitem(rival_audits.RIVALS, "clear", AdaPrivateTS(gram="clear"))
    assert rival_audits.read_record(rival_audits.RivalSubject("clear", epsilon)).verdict == FAILS
    assert (
        rival_audits.read_record(rival_audits.RivalSubject("rival-adaprivate", epsilon)).verdict
        == HOLDS
    )


def test_shufflers_keep_the_budget():
    shuffled = rival_audits.RivalSubject("rival-shuffled", 2.0)
    assert shuffled.claimed.epsilon > 3.0  # each report keeps less than the batch
    assert rival_audits.amplification(shuffled).verdict == HOLDS
    assert rival_audits.crowds(rival_audits.RivalSubject("rival-coded", 2.0)).verdict == HOLDS
