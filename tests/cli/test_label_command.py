"""``discreet label``: what it says, what it refuses, and that a refusal writes nothing."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pytest

import discreet as dc
from client.chains import KEY, PRIVATE_KEY, sign
from discreet.client import documents
from discreet.client.label import label_document, verified
from discreet.errors import CorruptRelease
from discreet.privacy.attacker import attacker
from discreet.privacy.budget import Participation
from discreet.privacy.events import ExponentialMechanism, Gaussian, NonPrivate
from discreet.privacy.ledger import Ledger
from small_plans import small_plan
from wording import refused

pytest.importorskip("jinja2")

COMMAND = ["label"]
FACTS = """
operator = "City <Library>"
contact = "privacy@library.example"
audited_on = 2026-10-02

[[data]]
what = "open batches"
holder = "the library"
kept = "14 days"
"""


def learner(**changes):
    made = dc.Learner(small_plan(first_batch=2), **changes)
    decided = made.decide(np.zeros((2, 2)))
    made.observe(decided.id, np.ones(2))
    made.release()
    return made


def chain(made):
    contents = [sign(documents.genesis(made.plan, "shop", KEY))]
    for item in made.released.items:
        contents.append(sign(documents.release_document(contents[-1], item)))
    return b"\n".join(contents) + b"\n"


def users(path):
    often = {"unit": "user", "batches_per_user": 10, "records_per_batch": 2}
    plan = small_plan(budget=dc.Budget(4.0, 1e-6), **often)
    ledger = Ledger(plan.budget, unit="user", participation=plan.participation)
    for number in range(30):
        ledger = ledger.charge(f"batch {number}", plan.event)
    path.write_text(json.dumps(ledger.to_json()))
    return path


BOUND = {"part": "black box", "subject": "ridge", "verdict": "holds", "claimed": 2.0}
AUDIT = {
    "format": "discreet-audit/1",
    "version": "0.1.0",
    "command": "discreet audit --quick",
    "verdict": "holds",
    "summary": "All 3 claims hold.",
    "findings": [
        {**BOUND, "measured": 1.7},
        {**BOUND, "measured": 1.2, "subject": "other"},
        {**BOUND, "measured": None},
    ],
}


def words_of(page):
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def circles(page):
    """The kinds of people in the picture."""
    return re.findall(r'<circle[^>]* class="(\w+)"', page)


def test_a_file_of_releases_with_everything(here, call):
    learner().released.save("released.json")
    (here / "facts.toml").write_text(FACTS)
    (here / "audit.json").write_text(json.dumps(AUDIT))
    code, out, _ = call(
        "released.json", "--facts", "facts.toml", "--audit", "audit.json", "--out", "mine"
    )
    assert code == 0
    assert "is right 55 times in 100" in out
    assert "wrote mine.html and mine.json, not signed" in out
    page = (here / "mine.html").read_text()
    assert re.findall(r'<(?:\w+ [^>]*(?:src|href)="([^"]*)"|script)', page) == ["data:,"]
    for words in (
        *("ε = 1, δ = 1e-05", "protects one decision", "replace one record", "1 release so far"),
        *("is right 55 times in 100", "City <Library>", "privacy@library.example", "14 days"),
        *("2026-10-02", "All 3 claims hold.", "≥ 1.7", "Several records of one person"),
    ):
        assert words in words_of(page), words
    assert "≥ 1.2" not in words_of(page)  # of one attack, the closest
    document = json.loads((here / "mine.json").read_text())
    assert float(document["mu"]) == pytest.approx(0.268, abs=1e-3)
    assert float(document["zcdp"]) == pytest.approx(0.0359, abs=1e-4)
    assert document["audit"]["lower_bounds"][0]["proven"] == "1.7"
    assert document["audit"]["on"] == "2026-10-02"


def test_the_attacker_of_a_label_is_that_of_the_dearest_batch():
    """At the δ of the budget the Gaussian batch costs more, and the other one tells more."""
    ledger = Ledger(dc.Budget(9.0, 1e-5)).charge("batch 1", Gaussian(1.0, 1.0))
    pure = ExponentialMechanism(4.3, 1.0)
    label = label_document(ledger.charge("batch 2", pure), {}, made="2026-01-31")
    assert float(label["epsilon"]) > 4.3
    assert float(label["attacker"]["success"]) >= attacker(pure).success > 0.98


def test_a_label_of_users_without_facts_and_audit(here, call):
    """The page says what was not stated, and the picture counts what the sentence says."""
    assert call(users(here / "ledger.json"))[0] == 0
    page = (here / "label.html").read_text()
    text, kinds = words_of(page), circles(page)
    for words in ("No audit was given.", "Not stated by the operator.", "no contact was stated"):
        assert words in text
    for words in ("protects one person", Participation(10, 2).text, "under two names"):
        assert words in text
    assert "Several records of one person" not in text
    right = int(re.search(r"is right (\d+) times in 100", text)[1])
    assert len(kinds) == 100
    assert kinds.count("guess") == 50
    assert kinds.count("guess") + kinds.count("beyond") == right


def test_a_signed_label_verifies_and_an_altered_one_does_not(here, call):
    (here / "documents.jsonl").write_bytes(chain(learner()))
    (here / "signing.key").write_bytes(PRIVATE_KEY)
    code, out, _ = call("documents.jsonl", "--key", "signing.key")
    assert code == 0
    assert ", signed" in out
    content = (here / "label.json").read_bytes().rstrip(b"\n")
    document = verified(content, KEY)
    assert document["about"]["experiment"] == "shop"
    assert document["about"]["key"] == KEY
    for altered in (content.replace(b'"unit":"decision"', b'"unit":"user"'), b"{}", b"[]", b"no"):
        with refused(CorruptRelease, "label must be"):
            verified(altered, KEY)
    with refused(CorruptRelease, "signed by the expected key"):
        verified(content, KEY[::-1])


FORGED = chain(learner()).replace(b'"multiplier":"', b'"multiplier":"1', 1)
HALF = '[[data]]\nwhat = "rows"\nholder = "me"\n'


@pytest.mark.parametrize(
    ("name", "content", "flag", "words"),
    [
        ("documents.jsonl", FORGED.decode(), None, "signed by the expected key"),
        ("short.key", "short", "--key", "private key must be 32 bytes"),
        ("audit.json", '{"format": "other"}', "--audit", "discreet audit --json"),
        ("facts.toml", 'operater = "me"', "--facts", "Did you mean 'operator'?"),
        ("facts.toml", HALF, "--facts", "facts.data[0].kept must be given"),
        ("facts.toml", 'data = "everything"', "--facts", "facts.data must be a list"),
    ],
)
def test_what_is_wrong_gets_no_label(here, refuses, name, content, flag, words):
    (here / name).write_text(content)
    refuses(*([users(here / "ledger.json"), flag] if flag else []), name, words=words)
    assert not list(here.glob("label.*"))


def test_seeded_noise_exceeds_every_budget_and_no_source_is_replaced(here, refuses):
    learner(noise=dc.SeededNoise(0)).released.save(here / "released.json")
    refuses("released.json", words="exceeds the budget")
    path = users(here / "ledger.json")
    before = path.read_bytes()
    refuses(path, "--out", "ledger", words="out must be another name")
    assert path.read_bytes() == before
    assert not (here / "ledger.html").exists()


def test_an_experiment_without_privacy_says_so(here, call):
    ledger = Ledger(dc.Budget.none()).charge("batch 1", NonPrivate("no budget"))
    (here / "ledger.json").write_text(json.dumps(ledger.to_json()))
    assert call("ledger.json")[0] == 0
    page = (here / "label.html").read_text()
    assert "No privacy" in words_of(page)
    assert "is right 100 times in 100" in words_of(page)
    assert "wrong" not in circles(page)
