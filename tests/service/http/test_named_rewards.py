"""An experiment with named actions and rewards, over HTTP and on its pages."""

import numpy as np
import pytest

from discreet.cli.main import main
from discreet.client import Billboard, Client
from discreet.client.documents import public_key
from discreet.data import load
from discreet.errors import ServiceError
from discreet.releases.quality import quality
from discreet.service.runtime import lifecycle
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from service.conftest import running as started
from service.dashboard.visitor import Visitor

HERE = [0.3, -0.2]
NAMES = ["none", "mail", 'call <b>"&']
REWARD = {"kind": "Reward", "low": -10, "high": 50}
PLAN = {"n_actions": None, "actions": NAMES, "outcome": REWARD}
FILE = """
experiment = "test"
window = 60
default_action = "mail"
[plan]
actions = ["none", "mail", "call"]
outcome = { kind = "Reward", low = -10, high = 50 }
first_batch = 64
features = { kind = "UnitBall", dimension = 2 }
budget = { epsilon = 1.0, delta = 1e-6 }
"""


@pytest.fixture
def database():
    return "discreet.db"


@pytest.fixture
def running(tmp_path, server):
    """A started service with names and rewards, and its admin key."""
    (tmp_path / "experiment.toml").write_text(FILE)
    key = lifecycle.begin(Settings.read(tmp_path / "experiment.toml"))
    return server(tmp_path), key


def test_names_and_rewards_over_http(running, tmp_path, capsys):
    service, key = running

    def post(path, **body):
        status, answer, _ = service.call("POST", f"/v1/{path}", body, key)
        return status, answer.get("error", answer)

    made = post("decide", context=HERE)[1]
    assert made["action"] in ("none", "mail", "call")
    decision = made["decision"]
    for wrong in ({"loss": 0.5}, {"loss": 0.5, "reward": 1}, {}, {"reward": 50.5}, {"reward": "1"}):
        status, problem = post("observe", decision=decision, **wrong)
        assert (status, problem["code"]) == (422, "invalid"), wrong
        assert ("send 'reward' instead" in problem["message"]) == ("loss" in wrong)
    assert post("observe", decision=decision, reward=12.5) == (200, {"stored": True})
    assert post("observe", decision=decision, reward=12.0)[0] == 409
    ticket = post("tickets")[1]["ticket"]
    whole = {"decision": ticket, "context": HERE, "reward": 3}
    for action, expected in (("Mail", 422), (1, 422), ("mail", 200)):
        assert post("observe", **whole, action=action)[0] == expected

    schema = service.call("GET", "/v1/schema", key=key)[1]
    assert schema["actions"] == ["none", "mail", "call"]
    assert schema["outcome"] == {"kind": "Reward", "low": "-10.0", "high": "50.0", "clip": False}
    shapes = service.call("GET", "/openapi.json", key=key)[1]["components"]["schemas"]
    assert "loss" not in shapes["Observe"]["properties"]
    limits = shapes["Observe"]["properties"]["reward"]
    assert (limits["minimum"], limits["maximum"]) == (-10, 50)
    assert shapes["DecisionReply"]["properties"]["action"] == {"type": "string"}  # they may change

    url = f"http://127.0.0.1:{service.port}"
    with Client(url, key) as client:
        first, second = client.decide(HERE), client.decide(HERE)
        client.observe(first, reward=0.0)
        assert client.observe_many(rewards=[(second, 50)]) == [{"status": 200, "stored": True}]
        with pytest.raises(ServiceError, match="send 'reward' instead"):
            client.observe(first, 0.5)
    board = Billboard(url, public_key(Vault(tmp_path / "vault").signing), key=key)
    assert set(board.sample([HERE] * 50)) <= set(board.actions) == {"none", "mail", "call"}

    data = load("linear", rows=12)
    np.savez(tmp_path / "play.npz", X=data.contexts[:, :2], y=data.labels)
    arguments = ["--url", url, "--key", key, "--data", str(tmp_path / "play.npz")]
    assert main(["simulate-traffic", *arguments]) == 0
    assert "(by chance 10.000" in capsys.readouterr().out  # a third at 50, two thirds at −10


async def test_a_release_has_the_mean_reward(settings, released):
    budget = {"epsilon": float("inf"), "delta": 0.0}
    made = settings(plan=PLAN | {"budget": budget}, allow_idealised=True, default_action="mail")
    assert made.default_action == 1
    async with started(made) as service:
        visitor = Visitor(service)
        assert (await visitor.log_in(settings.key())).status == 303
        decisions = [await service.decisions.decide("caller", HERE) for _ in range(4)]
        assert {each.action for each in decisions} <= set(NAMES)
        for each, reward in zip(decisions, (50, 40, 50, 20), strict=True):
            await service.decisions.observe(each.decision, reward)
        assert "waits for rewards" in (await service.status())["text"]
        assert "waiting for rewards" in (await visitor.get("/ui")).text
        found = quality(await released(service))
        assert found[0].mean == pytest.approx(40.0, abs=1e-3)
        releases = (await visitor.get("/ui/releases")).text
        assert '<th class="right">Mean reward</th>' in releases
        assert "40.00 ± 0.00" in releases
        genesis = (await visitor.get("/ui/releases/0")).text
        assert "3 actions (none, mail, call &lt;b&gt;" in genesis
        assert "reward in [-10, 50], refused outside" in genesis
        explorer = (await visitor.get("/ui/explorer")).text
        assert ">mail</span>" in explorer
        assert "<b>&" not in explorer
        assert "action 0" not in explorer
        await service.set_mode("shadow")
        assert "the default action, mail." in (await service.status())["text"]
        assert (await service.decisions.decide("caller", HERE)).action == "mail"


async def test_rewards_outside_the_range_are_clipped_by_the_plan(settings, released):
    budget = {"epsilon": float("inf"), "delta": 0.0}
    plan = PLAN | {"budget": budget, "outcome": REWARD | {"clip": True}}
    async with started(settings(plan=plan, allow_idealised=True)) as service:
        for reward in (1e9, -1e9, 50, -10):
            made = await service.decisions.decide("caller", HERE)
            await service.decisions.observe(made.decision, reward)
        assert quality(await released(service))[0].mean == pytest.approx(20, abs=1e-3)
