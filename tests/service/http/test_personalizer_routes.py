"""Clients of Azure Personalizer against a service: their requests, statuses and errors."""

import json

import pytest
import tomlkit

from discreet.service.runtime import lifecycle
from discreet.service.settings import Settings
from service.conftest import running
from service.dashboard.visitor import Visitor
from service.hosting import Folder, hosting

CONTEXT = [{"timeOfDay": "morning"}, {"user": {"age": 31}}, {"device": {"mobile": True}}]
ACTIONS = [
    {"id": "NewsArticle", "features": [{"type": "News", "length": 3}]},
    {"id": "SportsArticle", "features": [{"type": "Sports", "length": 1}]},
    {"id": "EntertainmentArticle", "features": [{"type": "Entertainment", "length": 9}]},
]
FIRST, LATER = "75269AD0-BFEE-4598-8196-C57383D38E10", "later%2F1"
RANK = "/personalizer/v1.0/rank"
JSON = "application/json; charset=utf-8"
# What version 0.1.0 of the package azure-cognitiveservices-personalizer sent: path, Content-Type,
# body, and the status that it expects.
SESSION = [
    (RANK, JSON, {"contextFeatures": CONTEXT, "actions": ACTIONS, "eventId": FIRST,
                  "deferActivation": False}, 201),
    (f"/personalizer/v1.0/events/{FIRST}/reward", JSON, {"value": 1.0}, 204),
    (RANK, JSON, {"contextFeatures": CONTEXT, "actions": ACTIONS, "eventId": "later/1",
                  "excludedActions": ["SportsArticle"], "deferActivation": True}, 201),
    (f"/personalizer/v1.0/events/{LATER}/activate", None, None, 204),
    (f"/personalizer/v1.0/events/{LATER}/reward", JSON, {"value": 0.5}, 204),
    (RANK, JSON, {"contextFeatures": CONTEXT, "actions": ACTIONS, "deferActivation": False}, 201),
]  # fmt: skip
NUMBER = {"kind": "Number", "clip": True}
PLAN = {
    "n_actions": None,
    "outcome": {"kind": "Reward", "low": 0, "high": 1},
    "features": {
        "kind": "Schema",
        "fields": [
            {"kind": "Category", "name": "timeOfDay", "values": ["morning", "evening"]},
            {**NUMBER, "name": "user.age", "low": 0, "high": 100},
            {"kind": "Flag", "name": "device.mobile", "indicator": True},
        ],
    },
    "actions": {
        "items": [],
        "schema": {
            "kind": "Schema",
            "fields": [
                {"kind": "Category", "name": "type", "values": ["News", "Sports"], "other": True},
                {**NUMBER, "name": "length", "low": 0, "high": 10},
            ],
        },
    },
}
NAMES = {**PLAN, "actions": [each["id"] for each in ACTIONS]}


@pytest.fixture
def database():
    return "discreet.db"


class Caller(Visitor):
    """Requests with the key of a Personalizer resource."""

    def __init__(self, service, key):
        super().__init__(service)
        self.key = key

    async def post(self, path, body=None, key=None):
        headers = {"ocp_apim_subscription_key": key or self.key}
        if body is not None:
            headers["content_type"] = JSON
        return await self.ask("POST", f"/personalizer/v1.0{path}", raw=body, **headers)

    async def rank(self, **changes):
        body = {"contextFeatures": CONTEXT, "actions": ACTIONS} | changes
        return await self.post("/rank", {name: body[name] for name in body if body[name] != ()})

    async def reward(self, event, value):
        reply = await self.post(f"/events/{event}/reward", {"value": value})
        assert (reply.status, reply.text) == (204, "")
        return reply.headers["discreet-result"]


def test_a_recorded_session(tmp_path, server):
    plan = {name: PLAN[name] for name in PLAN if name != "n_actions"} | {
        "budget": {"epsilon": 1.0, "delta": 1e-6}
    }
    file = tmp_path / "experiment.toml"
    file.write_text(tomlkit.dumps({"experiment": "test", "window": "10m", "plan": plan}))
    key = lifecycle.begin(Settings.read(file))
    running = server(tmp_path)
    rankings = []
    for path, kind, body, expected in SESSION:
        headers = {"Accept": "application/json", "Ocp-Apim-Subscription-Key": key}
        if kind:
            headers["Content-Type"] = kind
        status, answer, headers = running.call("POST", path, body, headers=headers)
        assert status == expected, answer
        if status == 204:
            assert answer == b""
            assert not {"content-length", "content-type"} & headers.keys()
            assert headers["discreet-result"] in ("stored", "activated")
        else:
            rankings.append(answer)
            assert {*answer} == {"ranking", "eventId", "rewardActionId"}
            chances = [each["probability"] for each in answer["ranking"]]
            assert sum(chances) == pytest.approx(1.0)
    assert [each["eventId"] for each in rankings[:2]] == [FIRST, "later/1"]
    assert rankings[1]["ranking"][1] == {"id": "SportsArticle", "probability": 0.0}
    assert rankings[0]["rewardActionId"] == rankings[0]["ranking"][0]["id"]


@pytest.mark.parametrize("plan", [PLAN, NAMES], ids=["items", "names"])
@pytest.mark.parametrize("journal", ["decide", "observe"])
async def test_an_event_is_one_slot_and_its_first_reward_stays(settings, released, plan, journal):
    made = settings(plan=plan, journal=journal)
    async with running(made) as service:
        caller = Caller(service, settings.key())
        first = await caller.rank(eventId="a")
        assert first.status == 201
        assert (await caller.rank(eventId="a")).body == first.body
        other = await caller.rank(eventId="a", excludedActions=["NewsArticle"])
        assert (other.status, other.body["error"]["code"]) == (400, "BadRequest")
        assert await caller.reward("a", 1.0) == "stored"
        assert await caller.reward("a", 1.0) == "stored"
        assert await caller.reward("a", 0.25) == "repeated"
        assert await caller.reward("nothing", 0.25) == "unknown"
        ranked = [await caller.rank(deferActivation=each) for each in (True, False)]
        events = [each.body["eventId"] for each in ranked]
        assert (await caller.post(f"/events/{events[0]}/activate")).status == 204
        await caller.rank()
        await service.state.refresh()
        assert [each.state for each in service.state.live] == ["sealed"]  # four slots
        unstored = await caller.rank(eventId="gap")
        assert unstored.status == 201
        assert await caller.reward("gap", 1.0) == "not stored"
        release = await released(service)
        assert len(release.items) == 1
        assert await caller.reward("a", 1.0) == "over"
        assert await caller.reward(events[1], 1.0) == "over"
        again = await caller.rank(eventId="a")
        assert again.status == 400
        assert again.body["error"]["innerError"]["code"] == "idempotency_key_used"


async def test_requests_that_are_refused(settings):
    async with running(settings(plan=PLAN)) as service:
        caller = Caller(service, settings.key())
        for changes in (
            {"actions": ()},
            {"actions": [ACTIONS[0], ACTIONS[0]]},
            {"excludedActions": [each["id"] for each in ACTIONS]},
            {"contextFeatures": []},
            {"eventId": "x" * 257},
        ):
            reply = await caller.rank(**changes)
            assert (reply.status, reply.body["error"]["code"]) == (400, "BadRequest"), changes
            assert reply.body["error"]["message"]
        for value in (2.0, -1, "1", None):
            reply = await caller.post("/events/a/reward", {"value": value})
            assert (reply.status, reply.body["error"]["code"]) == (400, "BadRequest"), value
        reply = await caller.post("/rank", {"actions": ACTIONS}, key="dk_none")
        assert (reply.status, reply.body["error"]["code"]) == (401, "401")
        only = (await service.create_key(["observe"], ""))["key"]
        assert (await caller.post("/rank", {"actions": ACTIONS}, key=only)).status == 403
        path = "/personalizer/v1.1-preview.1/multislot/events/a/reward"
        reply = await caller.ask("POST", path, raw={}, ocp_apim_subscription_key=settings.key())
        assert reply.status == 404
        assert "slot" in json.loads(reply.text)["error"]["message"]
        assert service.state.live == []  # nothing took a slot


async def test_probabilities_are_those_of_policy_and_control(settings):
    """Answers to both parts are alike: the probability is the one before the part is known."""
    control = {"share": 0.5, "action": "NewsArticle"}
    made = settings(plan={**NAMES, "control": control, "first_batch": 64})
    async with running(made) as service:
        caller = Caller(service, settings.key())
        shares = {"NewsArticle": 0.5 + 0.5 / 3, "SportsArticle": 0.5 / 3}
        shares["EntertainmentArticle"] = shares["SportsArticle"]
        for _ in range(8):
            reply = await caller.rank()
            for each in reply.body["ranking"]:
                assert each["probability"] == pytest.approx(shares[each["id"]])
        await service.set_mode("shadow")
        reply = await caller.rank()
        assert reply.body["ranking"][0] == {"id": "NewsArticle", "probability": 1.0}


async def test_one_experiment_of_a_server(tmp_path):
    folder = Folder(tmp_path / "server", names=("a",))
    async with hosting(folder) as (asking, _hosted):
        for before in ("", "/v1/experiments/a"):
            given = {"raw": {"actions": ACTIONS}, "ocp_apim_subscription_key": folder.keys["a"]}
            reply = await asking.ask("POST", f"{before}{RANK}", **given)
            assert reply.status == 400  # a plan with numbers: the request reached it
            assert "Schema" in json.loads(reply.text)["error"]["message"]
