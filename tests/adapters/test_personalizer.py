"""Requests of Azure Personalizer as contexts and offers, and experiments drafted from them."""

import json
import tomllib

import numpy as np
import pytest

import discreet as dc
from discreet.adapters.personalizer import (
    RankedItem,
    draft_experiment,
    error_answer,
    rank_answer,
    rank_context,
    rank_offer,
)
from discreet.cli.main import main
from discreet.errors import InvalidInput
from discreet.service.settings import Settings

CONTEXT = dc.Schema([dc.Number("user.age", 0, 100), dc.Flag("device.mobile", indicator=True)])
ITEM = dc.Schema([dc.Category("type", ["News", "Sports"])])
ITEMS = [RankedItem("n", [{"type": "News"}]), RankedItem("s", [{"type": "Sports", "more": 1}])]


def planned(**changes):
    words = {"actions": dc.Catalogue(ITEM), "features": CONTEXT} | changes
    return dc.Plan(budget=dc.Budget(1.0, delta=1e-6), **words)


def test_contexts_have_the_declared_features_and_no_others():
    given = [{"user": {"age": 31, "name": "x"}}, {"weather": "rain"}]
    assert rank_context(planned(), given) == {"user.age": 31, "device.mobile": None}
    assert rank_context(planned(), None) == {"user.age": None, "device.mobile": None}
    with pytest.raises(InvalidInput, match="Schema"):
        rank_context(planned(actions=["a", "b"], features=dc.UnitBall(2)), given)


def test_offers_bring_features_of_actions_that_the_plan_does_not_know():
    plan = planned()
    offer = rank_offer(plan, (), ITEMS, ())
    assert offer == [{"id": "n", "type": "News"}, {"id": "s", "type": "Sports"}]
    assert rank_offer(plan, {"n"}, ITEMS, ["s"]) == ["n"]
    assert rank_offer(planned(actions=["n", "s"]), {"n", "s"}, ITEMS, ()) == ["n", "s"]
    with pytest.raises(InvalidInput, match="actions"):
        rank_offer(planned(actions=None, n_actions=2), (), ITEMS, ())
    learner = dc.Learner(plan)
    context = rank_context(plan, [{"user": {"age": 31}}])
    assert learner.decide(context, actions=offer).action in ("n", "s")


def test_excluded_actions_keep_their_places():
    actions = [RankedItem(id, []) for id in "abcd"]
    chances = {"b": 0.75, "d": 0.25}
    answer = rank_answer(actions, {"a", "c"}, ["d", "b"], chances, "e")
    assert [each["id"] for each in answer["ranking"]] == ["a", "d", "c", "b"]
    assert [each["probability"] for each in answer["ranking"]] == [0.0, 0.25, 0.0, 0.75]
    assert (answer["eventId"], answer["rewardActionId"]) == ("e", "d")


def test_errors_have_the_status_and_the_form_of_personalizer():
    for status, sent, code in (
        *((422, 400, "BadRequest"), (404, 404, "ResourceNotFound")),
        *((401, 401, "401"), (503, 503, "InternalServerError")),
    ):
        found, document = error_answer(status, {"code": "x", "message": "m", "field": "f"})
        assert (found, document["error"]["code"]) == (sent, code)
        assert document["error"]["innerError"] == {"code": "x"}


def requests(rows=40, features=True, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rows):
        user = {"age": int(rng.integers(18, 80)), "device": {"mobile": bool(rng.random() < 0.5)}}
        actions = [
            {"id": name, "features": [{"type": name.title(), "length": int(rng.integers(1, 9))}]}
            for name in ("news", "sports")
        ]
        if not features:
            actions = [{"id": each["id"], "features": []} for each in actions]
        yield {"contextFeatures": [{"user": user}], "actions": actions}


def sample(tmp_path, lines):
    path = tmp_path / "requests.jsonl"
    texts = [each if isinstance(each, str) else json.dumps(each) for each in lines]
    path.write_text("\n\n".join(texts))
    return path


def test_an_experiment_is_drafted_and_decides(tmp_path, capsys):
    path = sample(tmp_path, requests())
    file = tmp_path / "experiment.toml"
    assert main(["schema", str(path), "--out", str(file)]) == 0
    assert "correct it" in capsys.readouterr().out
    plan = Settings.read(file).plan
    assert [field.name for field in plan.contexts.fields] == ["user.age", "user.device.mobile"]
    assert [field.name for field in plan.catalogue.schema.fields] == ["type", "length"]
    learner = dc.Learner(plan)
    for request in requests(5, seed=1):
        actions = [RankedItem(**each) for each in request["actions"]]
        context = rank_context(plan, request["contextFeatures"])
        learner.decide(context, actions=rank_offer(plan, (), actions, ()))
    assert main(["schema", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert tomllib.loads(answer["experiment"])["plan"]["actions"]["items"] == []
    assert {*answer["reasons"]["actions"]} == {"type", "length"}


def test_actions_without_features_are_named(tmp_path):
    file = tmp_path / "experiment.toml"
    file.write_text(draft_experiment(sample(tmp_path, requests(features=False))).experiment())
    assert Settings.read(file).plan.actions == ("news", "sports")


@pytest.mark.parametrize("line", ["{", "[]", '{"actions": []}', '{"actions": [{}]}'])
def test_a_line_that_is_no_request(tmp_path, line):
    path = sample(tmp_path, [*requests(1), line])
    with pytest.raises(InvalidInput, match=r"^line 3: "):
        draft_experiment(path)
