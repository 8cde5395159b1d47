"""A private log as the first batches: charged once, forgotten, and known by its length alone."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from batches.clocked_learners import watched
from discreet.batches.log_import import logged_rows
from discreet.errors import InvalidInput, NotReady
from discreet.plan.plan import Plan
from small_plans import small_plan

RNG = np.random.default_rng(1)
X = RNG.uniform(-0.5, 0.5, size=(1_200, 3))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
PLAYED = RNG.integers(3, size=len(X))
LOSSES = (PLAYED != Y) * 1.0
PLAN = Plan(n_actions=3, features=dc.UnitBall(3), budget=dc.Budget(8.0, 1e-5), imported=1_000)
LOG = slice(0, 1_000)
LENGTHS = [62, 188, 750]
"""Batches of the log: they grow by half, and the last takes what is left."""


def learner(plan=PLAN):
    return dc.Learner(plan, noise=dc.SecureNoise(fast=True))


def begun(plan=PLAN, **words):
    made = learner(plan)
    made.import_log(X[LOG], PLAYED[LOG], LOSSES[LOG], **words)
    return made


def test_the_log_is_released_at_once_and_the_first_decisions_use_it():
    warm = begun()
    assert [item.records for item in warm.released.items] == LENGTHS
    made = warm.decide(X[1_000:])
    assert made.id[0] == 1_000  # ids go on after the rows of the log
    chances = PLAN.policy.probabilities(warm.released, PLAN.features.map(X[1_000:]))
    np.testing.assert_allclose(
        made.propensity,
        np.take_along_axis(chances, np.asarray(made.action)[:, None], axis=-1)[:, 0],
    )
    assert [each.size for each in warm.status().batches[:3]] == [16, 24, 36]


@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_what_the_log_says_is_learned(feedback):
    """Without noise: how good decisions are under noise is a matter of luck."""
    warm = learner(replace(PLAN, feedback=feedback, budget=dc.Budget.none()))
    log = (PLAYED[LOG], LOSSES[LOG])
    if feedback == "full":
        log = (None, (np.arange(3) != Y[LOG, None]) * 1.0)
    warm.import_log(X[LOG], *log)
    assert np.mean(warm.decide(X[1_000:]).action != Y[1_000:]) < 0.3


def test_it_costs_what_a_batch_costs_and_the_budget_holds():
    warm = begun()
    charged = [charge.partition for charge in warm.ledger.entries]
    assert charged == [f"batch {number}" for number in range(1, len(LENGTHS) + 1)]
    spent = warm.ledger.spent()
    made = warm.decide(X[:16])
    warm.observe(made.id, (np.asarray(made.action) != Y[:16]) * 1.0)
    warm.decide(X[0])
    assert len(warm.released.items) == len(LENGTHS) + 1
    assert warm.ledger.spent() == spent
    assert spent.epsilon <= 8.0


def test_the_plan_knows_only_how_many_rows_there_are():
    """Logs with other rows differ in nothing but the releases."""
    one, other = begun(), learner()
    other.import_log(-X[LOG], 2 - PLAYED[LOG], 1.0 - LOSSES[LOG])
    assert one.ledger.to_json() == other.ledger.to_json()
    assert str(one.status()) == str(other.status())
    plan = small_plan(features=dc.UnitBall(1))
    assert repr(logged_rows(plan, [[0.25]], [1], [0.5], None)) == "LoggedRows(private)"


@pytest.mark.parametrize("words", [{"releases": "on_request"}, {"close_every": "1h"}])
def test_the_log_is_released_whatever_the_releases_of_decisions_wait_for(words):
    assert [item.records for item in begun(replace(PLAN, **words)).released.items] == LENGTHS
    made = dc.Learner(replace(PLAN, **words), waiting="gap", noise=dc.SecureNoise(fast=True))
    made.import_log(X[LOG], PLAYED[LOG], LOSSES[LOG])
    assert made.decide(X[1_000]).id == 1_000


def test_a_lift_does_not_see_the_log():
    plan = replace(PLAN, control=dc.Control(share=0.25))
    warm = begun(plan)
    with pytest.raises(InvalidInput, match="release"):
        dc.lift(warm.released)
    made = warm.decide(X[:16])
    warm.observe(made.id, LOSSES[:16])
    warm.decide(X[0])
    assert [line.number for line in dc.lift(warm.released).batches] == [len(LENGTHS) + 1]


def test_a_horizon_counts_decisions():
    warm = begun(replace(PLAN, horizon=50))
    assert warm.decide(X[:60]).stored.sum() == 40  # 16 + 24; the last batch is never fitted
    assert replace(PLAN, horizon=50).schedule.lengths() == [*LENGTHS, 16, 24, 10]


def rows_of_fits(plan, contexts, played, losses, **words):
    """For each fit of a log, its rows as they come: features, and losses that were observed."""

    def rows(batch):
        observed_losses = np.where(batch.observed, batch.losses, 0.0).sum(axis=-1)
        return [
            (*x, y) for x, y in zip(batch.features.tolist(), observed_losses.tolist(), strict=True)
        ]

    made = learner(plan)
    seen = watched(made, rows)
    made.import_log(contexts, played, losses, **words)
    return seen


@pytest.mark.parametrize("people", [False, True])
def test_rows_are_cut_into_batches_by_position_and_never_by_content(people):
    """Privacy: one row whose content decided its batch would move others between batches."""
    plan, words = PLAN, {}
    if people:
        plan, words = USERS, {"user": [f"person {row}" for row in range(1_000)]}
    contexts, played, losses = X[LOG].copy(), PLAYED[LOG].copy(), LOSSES[LOG].copy()
    # In no order by any column, so that sorting by one, or grouping by action, would show.
    mapped = plan.features.map(contexts).tolist()
    expected = [(*x, y) for x, y in zip(mapped, losses.tolist(), strict=True)]
    starts = np.cumsum([0, *LENGTHS])
    found = rows_of_fits(plan, contexts, played, losses, **words)
    assert [len(rows) for rows in found] == LENGTHS
    for rows, start in zip(found, starts, strict=False):
        assert rows == expected[start : start + len(rows)]
    # One person's other content changes their own row, and no other row of any batch.
    contexts[500], played[500], losses[500] = [0.5, -0.5, 0.5], (played[500] + 1) % 3, 0.25
    other = rows_of_fits(plan, contexts, played, losses, **words)
    differ = [
        start + place
        for start, here, there in zip(starts, found, other, strict=False)
        for place, (one, two) in enumerate(zip(here, there, strict=True))
        if one != two
    ]
    assert differ == [500]


USERS = replace(PLAN, unit="user", batches_per_user=2, records_per_batch=1)


@pytest.mark.parametrize("records", [1, 3])
def test_people_bring_ids_obey_k_and_use_one_batch(records):
    """A hundred people wrote the whole log, ten rows each: k of each count, all in one batch."""
    people = RNG.permutation(np.arange(1_000) % 100)
    warm = learner(replace(USERS, records_per_batch=records))
    seen = watched(warm, lambda batch: batch.observed.any(axis=-1).sum())
    warm.import_log(X[LOG], PLAYED[LOG], LOSSES[LOG], user=people)
    # Somebody whose rows lie on both sides of an edge has those that count on the first.
    assert 100 * records - 2 * len(LENGTHS) <= sum(seen) <= 100 * records
    registry = warm._store.people
    everybody = [str(person) for person in range(100)]
    assert registry.hand_out(everybody, 9).all()
    assert not registry.hand_out(everybody, 10).any()
    assert registry.hand_out(["new"], 10).all()


WRONG = [
    ({"contexts": X[:999]}, "losses must be"),
    ({"contexts": X[:5], "actions": PLAYED[:5], "losses": LOSSES[:5]}, "1,000 rows"),
    ({"contexts": X[LOG, :2]}, "context must be"),
    ({"actions": PLAYED[LOG] + 1}, "actions must be"),
    ({"actions": None}, "actions must be given"),
    ({"losses": np.where(LOSSES[LOG] > 0, np.nan, 0.0)}, "loss must be"),
    ({"losses": None, "reward": LOSSES[LOG]}, "got a reward"),
    ({"user": PLAYED[LOG]}, "user must be left out"),
]


@pytest.mark.parametrize(("wrong", "rule"), WRONG)
def test_a_wrong_log_stores_and_spends_nothing(wrong, rule):
    given = {"contexts": X[LOG], "actions": PLAYED[LOG], "losses": LOSSES[LOG], **wrong}
    made = learner()
    with pytest.raises(InvalidInput, match=rule):
        made.import_log(**given)
    assert made.ledger.entries == ()
    made.import_log(X[LOG], PLAYED[LOG], LOSSES[LOG])  # it can still be imported
    assert len(made.released.items) == len(LENGTHS)


def test_an_import_is_announced_comes_first_and_comes_once():
    with pytest.raises(NotReady, match="1,000 rows"):
        learner().decide(X[0])
    with pytest.raises(InvalidInput, match="imported=None"):
        learner(replace(PLAN, imported=None)).import_log(X[LOG], PLAYED[LOG], LOSSES[LOG])
    warm = begun()
    with pytest.raises(InvalidInput, match="imported once"):
        warm.import_log(X[LOG], PLAYED[LOG], LOSSES[LOG])
    with pytest.raises(InvalidInput, match="user must be given"):
        begun(USERS)
    for wrong in (0, 1.5, 2**40 + 1):
        with pytest.raises(InvalidInput, match="imported must be"):
            replace(PLAN, imported=wrong)


def test_an_evaluation_refuses_what_it_cannot_import():
    with pytest.raises(InvalidInput, match="imported"):
        dc.evaluate(PLAN, X, Y)
    with pytest.raises(InvalidInput, match="imported"):
        dc.privacy_curve(X, Y, plan=PLAN)
