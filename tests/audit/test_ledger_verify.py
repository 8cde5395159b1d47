"""``discreet ledger verify``: files of every kind, a service, and what must not pass."""

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

import discreet as dc
from client.chains import KEY, sign, user_genesis
from discreet.batch import Batch
from discreet.batches.release_batch import release_batch
from discreet.client import documents
from discreet.privacy.ledger import Ledger
from discreet.releases.canonical import digest_of

COMMAND = ("ledger", "verify")


def planned(budget=None, **parts):
    budget = budget or dc.Budget(1.0, 1e-5)
    return dc.Plan(n_actions=2, features=dc.UnitBall(2), budget=budget, first_batch=2, **parts)


def played(oracle=None, noise=None, budget=None):
    plan = planned(budget, policy=dc.SquareCB(), oracle=oracle or dc.Ridge())
    learner = dc.Learner(plan, noise=noise)
    for number in (1, 2, 3):
        length = plan.schedule.length(number)
        decided = learner.decide(np.zeros((length, 2)))
        learner.observe(decided.id, np.ones(length))
        learner.release()
    return learner


@pytest.mark.parametrize(
    ("oracle", "budget"),
    [
        (dc.Ridge(), dc.Budget(1.0, 1e-5)),
        (dc.Ridge(mechanism="paper"), dc.Budget(2.0, 1e-5)),
        (dc.Logistic(), dc.Budget(1.0)),
        (dc.Logistic(noise="gaussian"), dc.Budget(4.0, 1e-5)),
        (dc.FiniteClass(np.zeros((2, 2, 3))), dc.Budget(0.5)),
    ],
)
def test_runs_of_every_oracle_are_valid(oracle, budget, tmp_path, document):
    learner = played(oracle, budget=budget)
    learner.released.save(tmp_path / "released.json")
    (tmp_path / "ledger.json").write_text(json.dumps(learner.ledger.to_json()))
    spent = learner.ledger.spent()
    learner.save(tmp_path / "state")
    kinds = {"released.json": "file of releases", "ledger.json": "ledger", "state": "saved learner"}
    for name, kind in kinds.items():
        found = document(tmp_path / name)
        assert (found["kind"], found["charges"]) == (kind, 3)
        assert found["recomputed"]["epsilon"] == pytest.approx(spent.epsilon, rel=2e-3)
        assert found["recomputed"]["delta"] == spent.delta
    assert (tmp_path / "state").exists()  # reading does not claim


def test_a_seeded_run_is_not_private(tmp_path, call):
    played(noise=dc.SeededNoise(0)).released.save(tmp_path / "released.json")
    code, out, _ = call(tmp_path / "released.json")
    assert code == 1
    assert "NOT PRIVATE" in out
    assert "exceeds the budget" in out


def halve(document):
    for charge in document["entries"][0]["charges"]:
        charge["event"]["multiplier"] = repr(float(charge["event"]["multiplier"]) / 2)


def merge(document):
    for charge in document["entries"][0]["charges"]:
        charge["partition"] = "batch 1"


def spent(**stated):
    return lambda document: document.update(spent=stated)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (halve, "exceeds the budget 1"),
        (merge, "exceeds the budget 1"),
        (spent(epsilon="0.5", delta="1e-05"), "the ε that was sent is 0.5"),
        (spent(epsilon="1.0", delta="0.0"), "δ is 0, recomputed 1e-05"),
    ],
)
def test_what_does_not_add_up_is_not_valid(change, word, tmp_path, call):
    changed, path = played().ledger.to_json(), tmp_path / "ledger.json"
    change(changed)
    path.write_text(json.dumps(changed))
    code, out, _ = call(path)
    assert code == 1
    assert word in out


def test_a_mistake_in_our_own_accounting_is_noticed(tmp_path, call, monkeypatch):
    """The second computation shares no code with the first."""
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps(played().ledger.to_json()))
    monkeypatch.setattr("discreet.privacy.ledger.epsilon", lambda *_: 0.9)
    code, out, _ = call(path)
    assert code == 1
    assert "the ledger's own ε is 0.9, recomputed 1" in out


@pytest.mark.parametrize(
    "content", [b"{}", b"[1]", b"not json", b'{"format": "discreet-released/1"}', b"PK\x03\x04"]
)
def test_what_is_no_ledger_is_not_valid(content, tmp_path, document):
    path = tmp_path / "file"
    path.write_bytes(content)
    found = document(path, code=1)
    assert found["valid"] is False
    assert found["error"]


@pytest.fixture
def service():
    """A server that answers with what a test chose, and remembers the key it was sent."""
    state = {"answer": b"", "code": 200, "keys": []}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            state["keys"].append(self.headers.get("Authorization"))
            self.send_response(state["code"])
            self.send_header("Content-Length", str(len(state["answer"])))
            self.end_headers()
            self.wfile.write(state["answer"])

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state["url"] = f"http://127.0.0.1:{server.server_port}/v1/ledger"
    yield state
    server.shutdown()
    server.server_close()


def test_a_service(service, call, monkeypatch):
    learner = played()
    spent = learner.ledger.spent()
    stated = learner.ledger.to_json()
    stated["spent"] = {"epsilon": repr(spent.epsilon), "delta": repr(spent.delta)}
    service["answer"] = json.dumps(stated).encode()
    monkeypatch.setenv("DISCREET_API_KEY", "dk_1_secret")
    code, out, _ = call(service["url"])
    assert code == 0
    assert out.startswith("service: 3 charges")
    assert service["keys"] == ["Bearer dk_1_secret"]


def test_a_service_that_refuses_or_sends_something_else(service, call, monkeypatch):
    monkeypatch.delenv("DISCREET_API_KEY", raising=False)
    service["answer"] = b"<html>"
    code, out, _ = call(service["url"])
    assert (code, "must be a JSON object" in out) == (1, True)
    service["code"] = 401
    code, _, err = call(service["url"])
    assert (code, "(401)" in err) == (2, True)
    assert service["keys"] == [None, None]


def chain_of(learner, *, batches=None):
    """The signed documents of a run; with a number of batches as if it were one of users."""
    genesis = documents.genesis(learner.plan, "shop", KEY)
    if batches is not None:
        genesis = user_genesis(learner.plan, batches)
    root = previous = digest_of(genesis["plan"])
    contents = [sign(genesis)]
    for item in learner.released.items:
        made = replace(item, plan_digest=root, previous=previous)
        contents.append(sign(documents.release_document(contents[-1], made)))
        previous = made.digest
    return contents


def written(tmp_path, contents):
    (tmp_path / "documents.jsonl").write_bytes(b"\n".join(contents) + b"\n")
    return tmp_path / "documents.jsonl"


@pytest.mark.parametrize(
    ("batches", "code", "composed"), [(None, 0, 1), (1, 0, 1), (2, 1, 2), (3, 1, 3), (9, 1, 3)]
)
def test_a_chain_pays_for_the_dearest_batches(tmp_path, document, batches, code, composed):
    """Three releases, each of which costs the whole budget: one user may be in one of them."""
    learner = played()
    path = written(tmp_path, chain_of(learner, batches=batches))
    found = document(path, code=code)
    assert (found["valid"], found["charges"]) == (code == 0, 3)
    assert found["budget"]["epsilon"] == 1.0
    whole, event = Ledger(dc.Budget(9.0, 1e-5)), learner.released.items[0].event
    for _ in range(composed):
        whole = whole.charge("one batch", event)
    assert found["recomputed"]["epsilon"] == pytest.approx(whole.spent().epsilon, rel=2e-3)


def restored_from(contents, newest):
    """A restore after ``newest`` documents were published, from a backup with these."""
    last = documents.digest(newest[-1])
    return sign(
        documents.restore_document(
            contents[-1], epoch=2, number=len(newest), previous=last, burned=[]
        )
    )


def test_releases_that_a_restore_cut_off_are_charged(tmp_path, call, document):
    contents = chain_of(played(), batches=1)
    path = written(tmp_path, [*contents, restored_from(contents[:2], contents)])
    assert document(path)["charges"] == 3
    path = written(tmp_path, [*contents[:2], restored_from(contents[:2], contents)])
    code, out, _ = call(path)
    assert code == 1
    assert "2 are missing" in out


def test_a_file_of_releases_cannot_tell_what_users_spent(tmp_path, call):
    """Its plan promises something for users, and does not say how often one contributes."""
    released = played().released
    plan, items = {**released.plan, "unit": "user"}, []
    root = previous = digest_of(plan)
    for item in released.items:
        items.append(replace(item, plan_digest=root, previous=previous))
        previous = items[-1].digest
    replace(released, plan=plan, items=tuple(items)).save(tmp_path / "released.json")
    code, _, message = call(tmp_path / "released.json")
    assert code == 2
    assert "must say how often one user contributes" in message


def test_releases_of_users_tell_what_a_person_spent(tmp_path, document):
    """Files and chains are priced by the dearest batches of a person where the plan bounds them."""
    plan = planned(unit="user", batches_per_user=2, records_per_batch=3)
    released = plan.nothing_released()
    ledger = Ledger(plan.budget, unit="user", participation=plan.participation)
    for number in (1, 2, 3):
        size = plan.schedule.length(number)
        rows = Batch(np.zeros((size, 3)), np.zeros((size, 2)), np.zeros((size, 2), dtype=bool))
        made, ledger = release_batch(plan, dc.SecureNoise(), rows, released, ledger)
        released = released.add(made)
    released.save(tmp_path / "released.json")
    contents = [sign(documents.genesis(plan, "shop", KEY))]
    for item in released.items:
        contents.append(sign(documents.release_document(contents[-1], item)))
    for path in (tmp_path / "released.json", written(tmp_path, contents)):
        found = document(path)
        assert found["charges"] == 3
        assert found["recomputed"]["epsilon"] == pytest.approx(1.0, rel=2e-3)
        assert found["recomputed"]["partition"] == "the 2 dearest of 3 batches"
