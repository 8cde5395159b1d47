"""Questions of an audit, their error rates, and that none is left out."""

from dataclasses import replace

import pytest

import discreet as dc
from discreet.audit import FULL, HOLDS, QUICK, Finding, answers, checks, error_rate
from discreet.audit.finding import FAILS, WEAK, exact_verdict, measured_verdict
from discreet.audit.neighbouring_runs import SCENARIOS, Play, enters_once, transcript
from discreet.audit.subjects import DEFAULT_PLAN, JOINT, MECHANISMS, subjects
from discreet.audit.suite import FALSE_ALARM, PARTS, Check


def test_every_oracle_mechanism_and_feedback_is_a_subject():
    names = {each.name for each in subjects(MECHANISMS, [1.0])}
    assert set(MECHANISMS) > {DEFAULT_PLAN}
    for mechanism in set(MECHANISMS) - {DEFAULT_PLAN, JOINT}:
        assert {f"{mechanism}, bandit", f"{mechanism}, full information"} <= names
    for mechanism in ("ridge-structured", "ridge-paper", "ridge-pooled", "ridge-stretched"):
        assert f"{mechanism}, full information, one label" in names
    assert f"{JOINT}, bandit" in names
    assert len(names) == 22


def test_the_default_plan_is_a_subject_as_it_is():
    """Its oracle is read as a pool, so another default would need another reader."""
    (subject,) = subjects([DEFAULT_PLAN], [2.0])
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(2), budget=dc.Budget(2.0, 1e-5))
    assert subject.calibrated == plan.mechanism
    assert type(plan.oracle) is dc.PooledRidge
    assert (plan.feedback, plan.losses) == (subject.feedback, subject.losses)
    assert {each.mechanism for each in SCENARIOS} == {"ridge-structured", DEFAULT_PLAN}
    for scenario in SCENARIOS:
        if scenario.mechanism == DEFAULT_PLAN:
            assert Play(scenario, 2.0).plan.policy == plan.policy
            assert Play(scenario, 2.0).plan.mechanism == plan.mechanism


@pytest.mark.parametrize("effort", [QUICK, FULL])
def test_every_subject_is_asked_every_kind_of_question(effort):
    listed = checks(effort)
    for part in PARTS:
        assert any(check.part == part for check in listed)
    for subject in subjects(MECHANISMS, effort.epsilons):
        mine = [check.part for check in listed if check.subject == subject]
        assert set(mine) == {"exact", "noise", "black box"}
    assert sum(check.part == "transcript" for check in listed) == 2 * len(SCENARIOS) * len(
        effort.runs
    )


def test_the_error_budget_is_shared_by_all_statements():
    for effort in (QUICK, FULL):
        listed = checks(effort)
        total = sum(check.statements for check in listed)
        assert total * error_rate(listed) == pytest.approx(FALSE_ALARM)
        for check in listed:
            computed = check.part == "exact" or check.name in ("entropy_alone", "enters_once")
            assert (check.statements == 0) == computed


def made(verdict):
    return Finding("exact", "somebody", "a question", verdict, "so")


def test_answers_keep_their_order_and_are_told_as_they_come():
    listed = [Check("exact", made, verdict) for verdict in (HOLDS, FAILS, WEAK)]
    reported = []
    found = answers(listed, jobs=1, progress=lambda done, finding: reported.append((done, finding)))
    assert [each.verdict for each in found] == [HOLDS, FAILS, WEAK]
    assert [done for done, _ in reported] == [1, 2, 3]
    assert found[1].failed
    assert not found[0].failed


def a_question(_, alpha):  # noqa: ARG001
    raise ZeroDivisionError("at the worst moment")


def test_an_error_is_no_answer():
    (subject,) = subjects([DEFAULT_PLAN], [2.0])
    (finding,) = answers([Check("noise", a_question, subject, statements=1)], jobs=1)
    assert finding.failed
    assert (finding.subject, finding.question) == (subject.name, "a question")
    assert "ZeroDivisionError" in finding.said


def test_several_processes_give_the_same_computed_answers():
    listed = checks(replace(QUICK, runs=()), ["logistic-gaussian"], ["exact"])
    assert answers(listed, jobs=2) == answers(listed, jobs=1)


def test_verdicts():
    assert exact_verdict(1.0, 1.0) == HOLDS
    assert exact_verdict(1.0001, 1.0) == FAILS
    assert exact_verdict(float("nan"), 1.0) == FAILS
    assert measured_verdict(1.01, 1.0) == FAILS
    assert measured_verdict(0.2, 1.0, enough=0.5) == WEAK
    assert measured_verdict(0.6, 1.0, enough=0.5) == HOLDS


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: f"{each.mechanism}: {each.name}")
def test_a_record_enters_once(scenario):
    assert enters_once(scenario, 8.0).verdict == HOLDS


@pytest.mark.parametrize("number", [2, 5, 7], ids=["never fitted", "crash", "default crash"])
def test_transcripts_stay_within_the_claim(number):
    """40 runs of each world at ε = 8 and 1e-6: a short form of what an audit does."""
    finding = transcript(SCENARIOS[number], 1e-6, 8.0, 40)
    assert finding.verdict == HOLDS
    assert finding.measured <= finding.claimed
    assert (finding.exact == 0.0) == (number == 2)
