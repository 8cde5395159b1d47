"""``discreet audit`` and ``discreet plan --records-per-person``, as people call them."""

import re

import pytest

from discreet.audit import suite
from discreet.audit.finding import FAILS, HOLDS, WEAK, Finding
from discreet.privacy.accounting import epsilon_in_different_batches, epsilon_in_one_batch
from discreet.privacy.events import ObjectivePerturbation

NUMBERS = {"said": "hits <1> & 2", "trials": 10_000, "alpha": 1e-7}
NUMBERS |= {"claimed": 2.0, "exact": 1.9, "measured": 1.5, "attainable": 1.6, "halved": 3.7}
NUMBERS |= {"level": 2.0}


@pytest.fixture
def answered(monkeypatch):
    """Findings that a test chose, in place of a minute of attacks."""

    def give(*verdicts):
        found = [
            Finding("black box", f"mechanism {number}", "which was it", verdict, **NUMBERS)
            for number, verdict in enumerate(verdicts)
        ]
        monkeypatch.setattr(suite, "answers", lambda *_: found)

    return give


@pytest.mark.parametrize(
    ("verdicts", "code", "word"),
    [
        ((HOLDS, HOLDS), 0, "All 2 claims hold"),
        ((HOLDS, WEAK), 0, "No claim fails, but 1 of 2 answers are weak"),
        ((WEAK, FAILS), 1, "1 of 2 claims FAIL"),
    ],
)
def test_exit_code_and_summary(answered, call, verdicts, code, word):
    answered(*verdicts)
    ended, out, _ = call("audit", "--quick")
    assert ended == code
    assert word in out
    for verdict in verdicts:
        assert re.search(rf"mechanism \d: .* {verdict}$", out, re.MULTILINE)
    assert "once in 10,000 runs" in out


def test_json_holds_every_finding(answered, document):
    answered(HOLDS, FAILS)
    found = document("audit", "--full", code=1)
    assert found["format"] == "discreet-audit/1"
    assert found["verdict"] == FAILS
    assert found["command"] == "discreet audit --full"
    assert [each["verdict"] for each in found["findings"]] == [HOLDS, FAILS]
    assert found["statements"] * found["alpha"] == pytest.approx(1e-4)


def test_the_page_is_whole_and_asks_for_nothing(answered, call, tmp_path):
    pytest.importorskip("jinja2")
    answered(HOLDS, WEAK, FAILS)
    path = tmp_path / "audit.html"
    call("audit", "--html", str(path))
    page = path.read_text()
    assert page.startswith("<!doctype html>")
    assert not re.search(r"(src|href)=\"(?!#|data:)", page)
    assert "hits &lt;1&gt; &amp; 2" in page
    assert "$" not in page
    for word in ("mechanism 0", "✓ holds", "! weak", "✗ FAILS", "1 of 3 claims FAIL", "<svg"):
        assert word in page


def test_a_part_of_an_audit(monkeypatch, document):
    listed_checks = []
    monkeypatch.setattr(suite, "answers", lambda listed, *_: listed_checks.extend(listed) or [])
    found = document("audit", "--part", "black-box", "noise")
    assert {check.part for check in listed_checks} == {"noise", "black box"}
    assert found["command"] == "discreet audit --quick --part black-box noise"


def test_a_real_audit_of_one_mechanism(document, monkeypatch):
    """--mechanism and --epsilon are read. Draws are seeded, but for those of separate
    processes, whose false-alarm rate is 1e-9 together."""
    monkeypatch.setattr(suite, "FALSE_ALARM", 1e-9)
    given = ("--mechanism", "logistic-gaussian", "--epsilon", "4", "--jobs", "1")
    found = document("audit", *given)
    assert found["command"] == "discreet audit --quick --mechanism logistic-gaussian --epsilon 4"
    assert {each["subject"] for each in found["findings"]} == {
        "logistic-gaussian, bandit",
        "logistic-gaussian, full information",
    }
    assert {each["level"] for each in found["findings"]} == {4.0}


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--mechanism", "ridge"], "Did you mean 'ridge-paper'"),
        (["--part", "black"], "Did you mean 'black-box'"),
        (["--mechanism", "finite", "--part", "transcript"], "part must be one that"),
        (["--epsilon", "0"], "epsilon must be a number in [0.25, 16]"),
        (["--jobs", "-1"], "jobs must be at least 0"),
    ],
)
def test_what_cannot_be_is_refused(call, arguments, word):
    ended, _, err = call("audit", *arguments)
    assert ended == 2
    assert word in err


# Several records of one person.

PLAN = ("plan", "--actions", "3", "--dimension", "4", "--horizon", "100")


def test_plan_says_what_several_records_mean(call, document):
    ended, out, _ = call(*PLAN, "--epsilon", "1", "--records-per-person", "5")
    assert ended == 0
    assert "A person   with 5 records: ε = 2.442 if they lie in different batches, 6.167" in out
    assert "person" not in document(*PLAN)
    assert call(*PLAN, "--records-per-person", "0")[0] == 2
    person = document(*PLAN, "--epsilon", "1", "--records-per-person", "2")["person"]
    assert person["records"] == 2
    assert person["epsilon_in_different_batches"] == pytest.approx(1.465, abs=1e-3)
    assert person["epsilon_in_one_batch"] == pytest.approx(2.155, abs=1e-3)


def test_pure_budgets_multiply(document):
    pure = ("--oracle", "Logistic", "--epsilon", "0.5", "--delta", "0", "--policy", "SquareCB")
    person = document(*PLAN, *pure, "--records-per-person", "4")["person"]
    assert person["epsilon_in_different_batches"] == pytest.approx(2.0)
    assert person["epsilon_in_one_batch"] == pytest.approx(2.0)
    assert person["delta"] == 0.0


def test_groups_of_an_objective_go_one_by_one():
    event = ObjectivePerturbation("gaussian", kappa=0.05, shift=0.23)
    one = epsilon_in_one_batch(event, 1e-5, 1)
    costs = [epsilon_in_one_batch(event, 1e-5, k) for k in (1, 2, 3)]
    assert costs[0] == pytest.approx(epsilon_in_different_batches(event, 1e-5, 1), rel=1e-6) == one
    assert costs[1] > 2 * one
    assert costs[2] > 3 * one
    assert epsilon_in_one_batch(event, 1e-5, 10**6) == float("inf")
