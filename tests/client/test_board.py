"""Billboard: fetched once, verified always, evaluated as the core does."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from client.chains import KEY, SCHEMA, chain, histories, plan, released, resigned
from client.vectors import PEOPLE
from discreet.client import Billboard, documents
from tolerances import EXACT
from wording import refused

PLAN = plan(dc.ReplayBonusPO(), features=SCHEMA)
HISTORY = released(PLAN, 4)
CHAIN = chain(PLAN, HISTORY)


def publish(stub, contents, current=None):
    """Let the stub answer as a service that holds these documents."""
    numbers = [documents.verify(content, KEY)["number"] for content in contents]
    listed = [
        {"number": number, "digest": documents.digest(content)}
        for number, content in zip(numbers, contents, strict=True)
    ]
    newest = numbers[-1] if current is None else current
    stub.answers["GET", "/v1/releases"] = (200, {"current": newest, "releases": listed})
    for number, content in zip(numbers, contents, strict=True):
        stub.answers["GET", f"/v1/releases/{number}"] = (200, content)


@pytest.fixture
def stub(stub):
    publish(stub, CHAIN)
    return stub


def paths(stub):
    return [path for _, path, _, _ in stub.asked]


def test_probabilities_are_those_of_the_core():
    board = Billboard(CHAIN, KEY)
    expected = PLAN.policy.probabilities(HISTORY, SCHEMA.map(PEOPLE))
    np.testing.assert_allclose(board.probabilities(PEOPLE), expected, rtol=0, atol=EXACT)
    one = board.probabilities(PEOPLE[0])
    assert one.shape == (3,)
    np.testing.assert_allclose(one, expected[0], rtol=0, atol=EXACT)
    with refused(dc.InvalidInput, "'age'"):
        board.sample({**PEOPLE[0], "age": 101})
    with refused(dc.InvalidInput, "address"):
        board.refresh()


def test_what_is_in_force_can_be_recomputed():
    made = dc.Plan(n_actions=2, features=dc.UnitBall(1), budget=dc.Budget(1.0, 1e-5), first_batch=2)
    learner = dc.Learner(made)
    for length in (2, 3, 5):
        learner.observe(learner.decide(np.full((length, 1), 0.5)).id, np.ones(length))
    learner.release()
    signed = chain(made, learner.released)
    assert Billboard(signed, KEY).recompute().keys() == {1, 2, 3}
    second = learner.released.items[1]
    weights = second.predictor.weights + 1e-6
    wrong = replace(second, predictor=replace(second.predictor, weights=weights))
    forged = [*signed[:2], resigned(documents.release_document(signed[1], wrong))]
    with refused(dc.CorruptRelease, "predictor of release 2"):
        Billboard(forged, KEY).recompute()


@pytest.mark.parametrize("release", [2, 4])
def test_samples_follow_the_given_numbers_and_the_release(release):
    board, history = Billboard(CHAIN, KEY), released(PLAN, release)
    expected = PLAN.policy.probabilities(history, SCHEMA.map(PEOPLE))
    found = board.probabilities(PEOPLE, release=release)
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)
    u = np.random.default_rng(4).random((3, 2))
    expected = PLAN.policy.sample(history, SCHEMA.map(PEOPLE), u)
    assert board.sample(PEOPLE, u, release=release).tolist() == expected.tolist()
    assert board.sample(PEOPLE[1], u[1], release=release) == expected[1]
    with refused(dc.CorruptRelease, "document 5"):
        board.sample(PEOPLE, release=5)


def test_a_service_is_asked_for_what_is_new_only(stub):
    publish(stub, CHAIN[:3])
    board = Billboard(stub.url, KEY, key="dk_1_secret")
    assert board.number == 2
    assert {headers["Authorization"] for _, _, headers, _ in stub.asked} == {"Bearer dk_1_secret"}
    stub.asked.clear()
    publish(stub, CHAIN)
    assert board.refresh() == 4
    assert paths(stub) == ["/v1/releases", "/v1/releases/3", "/v1/releases/4"]
    assert board.documents == tuple(CHAIN)
    assert Billboard(board.documents, KEY).number == 4


def test_no_request_carries_a_context(stub):
    board = Billboard(stub.url, KEY)
    before = len(stub.asked)
    board.probabilities(PEOPLE)
    board.sample(PEOPLE)
    assert len(stub.asked) == before
    assert {(method, body) for method, _, _, body in stub.asked} == {("GET", b"")}


def test_a_rollback_puts_an_older_release_in_force(stub):
    publish(stub, CHAIN, current=2)
    board = Billboard(stub.url, KEY)
    assert board.number == 2
    assert len(board.released.items) == 2
    assert board.probabilities(PEOPLE, release=4).shape == (3, 3)


def test_a_restore_is_followed(stub):
    seen, number, releases = histories()["restore, all seen"]
    fresh, _, _ = histories()["restore, lost ones never seen"]
    publish(stub, seen[:6])
    board = Billboard(stub.url, KEY)
    publish(stub, fresh)
    assert board.refresh() == number
    assert len(board.released.items) == releases


def test_a_history_that_changes_is_refused_and_the_old_one_stays(stub):
    board = Billboard(stub.url, KEY)
    before = board.probabilities(PEOPLE)
    publish(stub, chain(PLAN, released(PLAN, 4, seed=1)))
    with refused(dc.CorruptRelease, "must never change"):
        board.refresh()
    assert board.documents == tuple(CHAIN)
    assert np.array_equal(board.probabilities(PEOPLE), before)


def test_a_document_that_its_list_does_not_name_is_verified_all_the_same(stub):
    altered = resigned(documents.verify(CHAIN[4], KEY), bytes(range(1, 33)))
    stub.answers["GET", "/v1/releases/4"] = (200, altered)
    with refused(dc.CorruptRelease, "signed by the expected key"):
        Billboard(stub.url, KEY)


@pytest.mark.parametrize(
    "listed", [[], {}, {"releases": 1, "current": 0}, {"releases": [{}], "current": 0}, "text"]
)
def test_a_list_that_is_none_is_refused(stub, listed):
    stub.answers["GET", "/v1/releases"] = (200, listed)
    with refused(dc.CorruptRelease, "list of releases"):
        Billboard(stub.url, KEY)
    publish(stub, CHAIN, current=9)
    with refused(dc.CorruptRelease, "document 9"):
        Billboard(stub.url, KEY)
