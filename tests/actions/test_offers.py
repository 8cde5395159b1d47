"""What a learner does with offers and changes of actions; and nothing with a wrong one."""

import numpy as np
import pytest

import discreet as dc
from discreet.actions.available_actions import available_actions
from discreet.actions.decisions import Decisions
from discreet.actions.offers import read_offers, request_offers
from discreet.service.runtime.policy_versions import Choice, Offer
from small_plans import small_plan
from store_state import state_of

ITEMS = {f"i{number}": [0.1 * number, 0.3 - 0.1 * number] for number in range(6)}
CONTEXT = np.array([0.2, -0.4])
FREE = {"budget": dc.Budget.none(), "first_batch": 2}


def joint_plan(**rest):
    return small_plan(**FREE | {"actions": dc.Catalogue(dc.UnitBall(2), ITEMS)} | rest)


def block_plan(**rest):
    return small_plan(**FREE | {"actions": ["a", "b", "c"]} | rest)


def taught(plan, rounds=40, **words):
    learner = dc.Learner(plan, draws=np.random.default_rng(0))
    for number in range(rounds):
        decision = learner.decide(CONTEXT, **words)
        lost = decision.action in ("a", "i1", "i2")
        learner.observe(decision.id, loss=float(lost) / (number % 2 + 1))
    return learner


def test_propensities_are_computed_once_and_on_demand():
    calls = []

    def probabilities():
        calls.append(1)
        return np.array([[0.25, 0.75], [0.5, 0.5]])

    index, names = np.array([1, 0]), np.array(["b", "a"])
    rest = probabilities, index, lambda _: []
    many = Decisions(np.array([0, 1]), names, np.array([True, True]), index, *rest)
    assert not calls
    for _ in range(2):
        np.testing.assert_array_equal(many.propensity, [0.75, 0.5])
    assert len(calls) == 1
    one = Decisions(0, "b", True, 1, *rest)
    assert one.propensity == 0.75
    assert type(one.propensity) is float


def test_an_offer_is_obeyed_and_its_propensities_add_up():
    learner = taught(joint_plan())
    for offer in (["i1"], ["i3", "i1"], ["i5", "i0", "i4"]):
        decision = learner.decide(CONTEXT, actions=offer)
        assert decision.action in offer
        chances = decision._chances()[0]
        assert chances.shape == (len(offer),)
        assert np.isclose(chances.sum(), 1.0)
        assert decision.propensity == chances[offer.index(decision.action)]
        assert sorted(decision.ranking) == sorted(offer)
        assert decision.ranking[0] == decision.action


def learner_of_pairs():
    return taught(joint_plan(budget=dc.Budget.none()), rounds=6)


def later_actions(offer, *, single=True):
    """What 40 people receive after somebody with this offer has asked for a ranking."""
    learner = learner_of_pairs()
    if single:
        orders = [learner.decide(CONTEXT, actions=offer).ranking]
    else:
        orders = learner.decide(np.tile(CONTEXT, (2, 1)), actions=[offer, list(ITEMS)]).ranking
    later = [learner.decide(CONTEXT) for _ in range(40)]
    return [each.action for each in later], [each.ranking for each in later], orders[1:]


def test_a_ranking_moves_no_draw_of_anybody_else():
    """The size of an offer is private: later actions and rankings must not depend on it."""
    short, long = later_actions(["i1", "i2"]), later_actions(list(ITEMS))
    assert short[:2] == long[:2]
    assert len({tuple(order) for order in short[1]}) > 10  # rankings are drawn, not repeated
    short, long = (later_actions(offer, single=False) for offer in (["i1", "i2"], list(ITEMS)))
    assert short == long  # nor those of another person in the same call
    alike = learner_of_pairs().decide(np.tile(CONTEXT, (40, 1))).ranking
    assert len({tuple(order) for order in alike}) > 2 * len(ITEMS)  # and each has its own


def test_asking_for_a_ranking_changes_no_later_action_or_ranking():
    actions = []
    for asks in (False, True):
        learner, seen = learner_of_pairs(), []
        for _ in range(30):
            decision = learner.decide(CONTEXT)
            seen.append(decision.action)
            _ = asks and decision.ranking
        actions.append([*seen, *decision.ranking])
    assert actions[0] == actions[1]


def test_requests_of_one_call_may_have_offers_of_their_own():
    learner = taught(joint_plan())
    offers = [["i1"], ["i2", "i3"], {"new": [0.1, 0.2], "i9": [0.0, 0.1]}, ["i4", "i5"]]
    decided = learner.decide(np.tile(CONTEXT, (4, 1)), actions=offers)
    for action, offer, number in zip(decided.action, offers, decided.action_index, strict=True):
        assert action in offer
        assert number == (-1 if isinstance(offer, dict) else list(ITEMS).index(action))
    for row, offer in enumerate(offers):
        again = learner.decide(CONTEXT, actions=offer)
        np.testing.assert_allclose(again._chances()[0], decided._chances()[row], atol=1e-12)


def test_an_item_brought_along_is_one_of_the_catalogue_with_these_features():
    learner = taught(joint_plan())
    same = learner.decide(CONTEXT, actions=["i2", "i3"])
    brought = learner.decide(CONTEXT, actions={"x": ITEMS["i2"], "y": ITEMS["i3"]})
    np.testing.assert_allclose(same._chances()[0], brought._chances()[0], rtol=0, atol=1e-9)


def test_what_is_kept_is_the_chosen_pair():
    plan = joint_plan()
    learner = dc.Learner(plan)
    decision = learner.decide(CONTEXT, actions=["i1", "i4"])
    batch = learner._store.batches[0]
    pair = plan.features.rows(
        plan.features.map(CONTEXT), plan.catalogue.rows[[decision.action_index]]
    )
    np.testing.assert_array_equal(batch.features[:1], pair)
    assert batch.losses.shape == (2, 1)


def test_what_is_offered_does_not_show_itself():
    """A traceback or a debugger prints reprs: none of them has features of people or items."""
    plan = joint_plan()
    available = available_actions(plan, ())
    features = plan.features.map(CONTEXT)
    offers = read_offers(plan, available, features, {"secret": [0.123, 0.2]}, single=True)
    shown = (
        repr(offers) + repr(offers.groups) + repr(available.with_items(["secret"], [features[0]]))
    )
    for private in ("secret", "0.123", "0.2"):
        assert private not in shown
    blocks = block_plan()
    every = request_offers(blocks, available_actions(blocks, ()), features, None, single=True)
    assert "0.2" not in repr(every)
    row = Choice(features[0], 0, "secret"), Offer(features[0], ["secret"], False)
    assert repr(row) == "(Choice(private), Offer(private))"


WRONG = {
    "unknown": (["i1", "zz"], "got text that is none of them"),
    "nothing": ([], "at least one"),
    "twice": (["i1", "i1"], "distinct"),
    "text": ("i1", "list of actions"),
    "other features": ({"n": [0.1]}, "item of the offer"),
    "known, with features": ({"i1": [0.1, 0.1]}, "come without features"),
    "no word": ([(7, [0.1, 0.1])], "word without blanks"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_offer_stores_nothing(wrong):
    learner = taught(joint_plan(), rounds=3)
    offer, words = WRONG[wrong]
    before = state_of(learner._store)
    with pytest.raises(dc.InvalidInput, match=words):
        learner.decide(CONTEXT, actions=offer)
    with pytest.raises(dc.InvalidInput, match="row 1"):
        learner.decide(np.tile(CONTEXT, (2, 1)), actions=[["i1", "i2"], offer])
    with pytest.raises(dc.InvalidInput, match="2 offers for 3 contexts"):
        learner.decide(np.tile(CONTEXT, (3, 1)), actions=[["i1"], ["i2"]])
    assert state_of(learner._store) == before


def test_blocks_take_offers_too():
    learner = taught(block_plan())
    chances = learner.decide(CONTEXT)._chances()[0]
    decision = learner.decide(CONTEXT, actions=["c", "b"])
    assert decision.action in ("b", "c")
    assert decision.action_index == "abc".index(decision.action)
    two = decision._chances()[0]
    assert (two[0] > two[1]) == (chances[2] > chances[1])
    with pytest.raises(dc.InvalidInput, match="actions of the plan"):
        learner.decide(CONTEXT, actions=["d"])
    with pytest.raises(dc.InvalidInput, match="actions of the plan"):
        learner.decide(CONTEXT, actions=[{"id": "d", "year": 1}])


def test_items_join_at_once_and_who_left_is_not_offered():
    learner = taught(joint_plan())
    learner.change_actions(add={"new": [0.3, 0.3]}, remove=["i0"])
    assert "new" in learner.actions
    assert "i0" not in learner.actions
    assert learner.decide(CONTEXT, actions=["new"]).action == "new"
    with pytest.raises(dc.InvalidInput, match="in use"):
        learner.decide(CONTEXT, actions=["i0"])


def test_blocks_join_with_the_next_batch_and_get_the_mean():
    learner = taught(block_plan(), rounds=9)  # batches of 2, 3, 5: nine decisions leave one open
    learner.change_actions(add=["d"])
    assert "d" not in learner.actions
    for _ in range(40):
        decision = learner.decide(CONTEXT)
        learner.observe(decision.id, loss=float(decision.action != "d"))
    assert "d" in learner.actions
    widths = [item.predictor.weights.shape[0] for item in learner.released.items]
    assert widths[0] == 3
    assert widths[-1] == 4
    assert widths == sorted(widths)
    assert learner.released.items[-1].statistics.gram.shape[0] == 4


def test_a_block_that_comes_back_has_its_weights():
    learner = taught(block_plan(), rounds=30)
    learner.change_actions(remove=["b"])
    assert {learner.decide(CONTEXT).action for _ in range(20)} <= {"a", "c"}
    learner.change_actions(add=["b"])
    assert "b" in learner.actions
    assert learner.released.blocks(99) == 3


@pytest.mark.parametrize("plan", [joint_plan, block_plan])
def test_changes_are_saved_and_read_again(plan, tmp_path):
    learner = taught(plan(), rounds=9)
    add = {"new": [0.1, 0.1]} if plan is joint_plan else ["d"]
    learner.change_actions(add=add, remove=[learner.actions[0]])
    for _ in range(12):
        learner.observe(learner.decide(CONTEXT).id, loss=0.5)
    known, before = learner.actions, state_of(learner._store)
    learner.released.save(tmp_path / "released.json")
    read = dc.Released.load(tmp_path / "released.json")
    assert [each.digest for each in read.changes] == [
        each.digest for each in learner.released.changes
    ]
    learner.save(tmp_path / "state")
    again = dc.Learner.load(tmp_path / "state")
    assert again.actions == known
    assert state_of(again._store) == before
    assert again.decide(CONTEXT).action in known


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({}, "add or remove must name"),
        ({"add": ["a"]}, "new actions"),
        ({"remove": ["z"]}, "in use"),
        ({"remove": ["a", "b", "c"]}, "leave an action"),
        ({"add": "d"}, "Give a list"),
    ],
)
def test_wrong_changes_of_blocks_change_nothing(change, rule):
    learner = taught(block_plan(), rounds=3)
    before = state_of(learner._store)
    with pytest.raises(dc.InvalidInput, match=rule):
        learner.change_actions(**change)
    assert state_of(learner._store) == before
    assert not learner.released.changes
    with pytest.raises(dc.InvalidInput, match="named actions"):
        dc.Learner(small_plan(**FREE)).change_actions(add=["d"])


@pytest.mark.parametrize("action", ["uniform", "i1"])
def test_a_control_plays_what_is_offered(action):
    plan = joint_plan(control=dc.Control(0.5, action), first_batch=16)
    learner = dc.Learner(plan)
    offers = [["i1", "i2"], ["i3", "i4", "i5"]] * 50
    decided = learner.decide(np.tile(CONTEXT, (100, 1)), actions=offers)
    assert all(chosen in offer for chosen, offer in zip(decided.action, offers, strict=True))
    control = learner._store.batches[0].control
    for row in np.flatnonzero(control):
        chances = decided._chances()[row]
        if action == "i1" and row % 2 == 0:
            assert decided.action[row] == "i1"
            assert decided.propensity[row] == 1.0
        else:
            np.testing.assert_allclose(chances, 1.0 / len(offers[row]))


def test_a_floor_of_the_plan_is_under_every_offered_action():
    learner = taught(joint_plan(policy=dc.Greedy(), oracle=dc.Ridge(), floor=0.1))
    for offer in (["i1", "i2"], list(ITEMS)):
        assert learner.decide(CONTEXT, actions=offer)._chances()[0].min() >= 0.1 - 1e-12
    assert dc.Plan.from_config(learner.plan.to_config()).floor == 0.1
