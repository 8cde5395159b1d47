"""Labels of any kind as actions, losses of all actions, and advice on contexts."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dc
from discreet.simulate.labelled_data import findings, label_actions
from tolerances import EXACT
from wording import refused

ROWS = 300
rng = np.random.default_rng(7)
CONTEXTS = rng.normal(size=(ROWS, 2))
LABELS = (CONTEXTS[:, 0] > 0).astype(int) + (CONTEXTS[:, 1] > 0.5)


def plan(**parts):
    budget = dc.Budget(4.0, 1e-5)
    return dc.Plan(n_actions=3, features=dc.UnitBall(2), budget=budget, **parts)


@given(
    st.lists(st.integers(0, 3)).map(lambda some: [0, 1, 2, 3, *some]),
    st.sets(st.text("abcß ", min_size=1), min_size=4, max_size=4),
)
def test_words_are_actions_in_sorted_order(actions, words):
    ordered = sorted(words)
    found = label_actions([ordered[action] for action in actions], len(actions), 4)
    assert found.tolist() == actions


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "b", "c"], dtype=object)[LABELS],
        np.array(["9", "10", "11"])[LABELS],
        LABELS.astype(object),
        LABELS.astype(float),
        LABELS.astype(np.uint8).tolist(),
        np.array([b"a", b"b", b"c"])[LABELS],
    ],
    ids=["objects", "digits", "object numbers", "floats", "list", "bytes"],
)
def test_labels_of_any_kind_give_the_same_run(labels):
    plain = dc.evaluate(plan(), CONTEXTS, LABELS, seed=1)
    np.testing.assert_array_equal(
        dc.evaluate(plan(), CONTEXTS, labels, seed=1).losses, plain.losses
    )


def test_names_of_actions_map_by_name_and_not_by_order():
    names = ["none", "mail", "call"]
    found = label_actions(np.array(names)[LABELS], ROWS, 3, names)
    np.testing.assert_array_equal(found, LABELS)
    assert label_actions(["call"], 1, 3, names).tolist() == [2]  # not all must occur


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"labels": ["a", "b"] * 150}, "3 classes, one for each action; got 2: a, b. Encode"),
        ({"labels": [float("nan"), *["a"] * 299]}, "missing"),
        ({"labels": [[1, 2], [3]]}, "one class per context, 300 of them; got shape (0, 0)"),
        ({"losses": np.full((ROWS, 3), np.nan)}, "in [0, 1]; some are not"),
        ({"losses": [["a"] * 3] * ROWS}, "losses must be numbers"),
    ],
)
def test_labels_and_losses_that_fit_no_plan_say_why(words, said):
    with refused(dc.InvalidInput, said):
        dc.evaluate(plan(), CONTEXTS, **words)


@pytest.mark.parametrize("feedback", ["bandit", "full"])
def test_losses_of_zero_and_one_are_labels(feedback):
    wrong = (np.arange(3) != LABELS[:, None]).astype(float)
    by_label = dc.evaluate(plan(feedback=feedback), CONTEXTS, LABELS, seed=2)
    by_loss = dc.evaluate(plan(feedback=feedback), CONTEXTS, losses=wrong, seed=2)
    np.testing.assert_array_equal(by_loss.losses, by_label.losses)
    np.testing.assert_array_equal(by_loss.actions, by_label.actions)
    assert by_loss.best_fixed == pytest.approx(by_label.best_fixed, abs=EXACT)
    assert by_loss.uniform == pytest.approx(by_label.uniform, abs=EXACT)


def test_a_plan_for_one_label_takes_only_such_losses():
    supervised = plan(policy=dc.Greedy(), feedback="full", losses="one_label")
    wrong = (np.arange(3) != LABELS[:, None]).astype(float)
    dc.evaluate(supervised, CONTEXTS, losses=wrong)
    with pytest.raises(dc.InvalidInput, match="one_label"):
        dc.evaluate(supervised, CONTEXTS, losses=wrong / 2)


def test_best_fixed_and_uniform_are_of_the_rounds_that_were_played():
    result = dc.evaluate(plan(horizon=40), CONTEXTS, LABELS, seed=5)
    order = np.random.default_rng([5, 2**31]).permutation(ROWS)[:40]
    shares = np.bincount(LABELS[order], minlength=3) / 40
    assert len(result.actions) == 40
    assert result.best_fixed == pytest.approx(1 - shares.max(), abs=EXACT)
    assert result.uniform == pytest.approx(2 / 3, abs=EXACT)


RNG = np.random.default_rng(0)
FINE = RNG.uniform(-0.5, 0.5, size=(200, 3))


def topics(contexts, columns=()):
    return [topic for topic, _ in findings(contexts, columns)]


def test_each_mistake_is_named():
    assert topics(FINE * 10) == ["long-rows"]
    assert topics(FINE * [1, 1, 30]) == ["a-column-that-dominates", "long-rows"]
    assert topics(np.column_stack([np.arange(200), FINE]))[0] == "identifiers"
    amounts = RNG.permutation(5000)[:200]  # distinct, and neither counted nor in order
    assert "identifiers" not in topics(np.column_stack([amounts, FINE]))
    (_, words), *_ = findings(np.column_stack([FINE, RNG.permutation(200) + 1000.0]))
    assert "column 4 looks like" in words


def test_huge_numbers_do_not_warn_of_overflow_and_a_schema_needs_no_advice():
    schema = dc.Schema([dc.Number("age", 0, 900)])
    plan = dc.Plan(n_actions=2, features=schema, budget=dc.Budget.none())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "long-rows" in topics(np.full((60, 2), 1e300))
        dc.evaluate(plan, [{"age": age} for age in range(40)], [0, 1] * 20)


@pytest.mark.parametrize("play", ["evaluate", "privacy_curve"])
def test_evaluations_advise_once_at_the_caller_and_name_columns(play):
    frame = pd.DataFrame(FINE * 10, columns=["age", "visits", "size"])
    frame["customer"] = np.arange(200)
    frame["label"] = (FINE[:, 0] > 0).astype(int)
    plan = dc.Plan(n_actions=2, features=dc.UnitBall(4), budget=dc.Budget.none())
    how = {"evaluate": (plan, frame, "label"), "privacy_curve": (frame, "label")}
    with pytest.warns(dc.Advice) as caught:
        getattr(dc, play)(*how[play])
    assert len(caught) == 2
    assert "column 'customer' looks like an identifier" in str(caught[0].message)
    assert all(each.filename == __file__ for each in caught)


# --- rewards are the losses that they become, in the units of people

HIGH = 64.0
DRAWS = np.random.default_rng(3)
REWARDS = np.where(DRAWS.random((ROWS, 3)) < 0.3 + 0.4 * CONTEXTS[:, :1] * [0, 1, -1], 16.0, 0.0)
LOSSES = (HIGH - REWARDS) / HIGH


def rewarded(outcome=None, **rest):
    outcome = dc.Reward(0, HIGH) if outcome is None else outcome
    basis = {"n_actions": 3, "features": dc.UnitBall(2), "budget": dc.Budget(8.0, 1e-5)}
    return dc.Plan(outcome=outcome, **basis | rest)


def test_rewards_are_the_losses_that_they_become():
    by_reward = dc.evaluate(rewarded(), CONTEXTS, rewards=REWARDS)
    by_loss = dc.evaluate(rewarded(), CONTEXTS, losses=LOSSES)
    named = rewarded(n_actions=None, actions=["none", "mail", "call"])
    frame = pd.DataFrame(REWARDS[:, ::-1], columns=["call", "mail", "none"])
    by_name = dc.evaluate(named, CONTEXTS, rewards=frame)  # a column for each action
    np.testing.assert_array_equal(by_name.losses, by_loss.losses)
    np.testing.assert_array_equal(by_reward.actions, by_loss.actions)
    np.testing.assert_array_equal(by_reward.losses, by_loss.losses)
    assert by_reward.best_fixed == by_loss.best_fixed == LOSSES.mean(axis=0).min()


def test_values_outside_are_clipped_where_the_plan_says_so():
    far = np.where(REWARDS > 0, 1e4, REWARDS)
    clipped = dc.evaluate(rewarded(dc.Reward(0, HIGH, clip=True)), CONTEXTS, rewards=far)
    at_end = dc.evaluate(rewarded(), CONTEXTS, rewards=np.minimum(far, HIGH))
    np.testing.assert_array_equal(clipped.losses, at_end.losses)
    with refused(dc.InvalidInput, "reward must be a number in [0, 64]", "outside"):
        dc.evaluate(rewarded(), CONTEXTS, rewards=far)


def test_offers_have_a_reward_for_each_offered_action():
    sizes = DRAWS.integers(1, 4, size=ROWS)
    offers = [list(range(size)) for size in sizes]
    rewards, losses = (
        [each[row, :size].tolist() for row, size in enumerate(sizes)] for each in (REWARDS, LOSSES)
    )
    by_reward = dc.evaluate(rewarded(), CONTEXTS, rewards=rewards, offers=offers)
    by_loss = dc.evaluate(rewarded(), CONTEXTS, losses=losses, offers=offers)
    np.testing.assert_array_equal(by_reward.losses, by_loss.losses)
    with refused(dc.InvalidInput, "reward must be a number in [0, 64]", "outside"):
        dc.evaluate(rewarded(), CONTEXTS, rewards=[[HIGH + 1.0] * s for s in sizes], offers=offers)


def test_a_curve_of_rewards_is_that_of_losses_and_shows_rewards():
    how = {"plan": rewarded(), "epsilons": [1, np.inf], "seeds": 2, "horizon": 300}
    by_reward = dc.privacy_curve(CONTEXTS, rewards=REWARDS, **how)
    by_loss = dc.privacy_curve(CONTEXTS, losses=LOSSES, **how)
    np.testing.assert_array_equal(by_reward.losses, by_loss.losses)
    best = HIGH * (1 - by_reward.best_fixed)
    assert f"best fixed action {best:.2f}, uniform" in repr(by_reward)
    assert "mean reward over 300 rounds" in by_reward.plot().get_ylabel()


def test_a_curve_without_a_plan_has_no_range_for_rewards():
    with refused(dc.InvalidInput, "rewards", "Loss(0, 1)", "outcome=Reward(low, high)"):
        dc.privacy_curve(CONTEXTS, rewards=REWARDS)
