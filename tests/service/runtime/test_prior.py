"""A service that begins with a public prior: its first release follows from it."""

import json
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.cli.main import main
from discreet.client.recomputation import recompute
from discreet.errors import DiscreetError, StateClaimed
from discreet.plan.config import to_config
from discreet.plan.plan import Plan
from discreet.service.runtime import lifecycle
from discreet.service.settings import Settings
from discreet.service.storage import document_table
from service.conftest import PLAN, toml, windows_end

RNG = np.random.default_rng(3)
X = RNG.uniform(-0.5, 0.5, size=(300, 2)) * [1.0, 0.02]
SHOWN = RNG.integers(3, size=len(X))
LOST = ((X[:, 0] > 0) != SHOWN).astype(float)


def prior():
    return dc.prior_from_logs(Plan.from_config(PLAN), X, SHOWN, LOST, weight=0.5, source="a trial")


@pytest.fixture
def named(tmp_path):
    """What an experiment file says of a prior."""
    (tmp_path / "trial.prior.json").write_text(json.dumps(to_config(prior())))
    return {"prior": "trial.prior.json"}


async def fill(service):
    while (decision := await service.decisions.decide("caller", [0.3, -0.01])).stored:
        await service.decisions.observe(decision.decision, 0.5)
    await windows_end(service)


def test_the_first_release_follows_from_the_prior(
    settings, named, play, released, tmp_path, capsys
):
    made = settings(plan=named)

    async def scenario(service):
        for number in (1, 2):
            await fill(service)
            assert (await released(service)).latest.number == number
        return await service.state.read(lambda c: document_table.after(c, -1))

    contents = play(made, scenario)
    (tmp_path / "documents.jsonl").write_bytes(b"\n".join(contents) + b"\n")
    from discreet.client.billboard import read_released

    reported = read_released(str(tmp_path / "documents.jsonl"))
    first = reported.items[0].statistics
    assert np.array_equal(first.matrix, prior().following)  # stretched as the prior tells
    assert not np.array_equal(first.matrix, np.eye(2))
    assert list(recompute(reported)) == [1, 2]
    reported.save(tmp_path / "released.json")
    assert main(["release", "verify", str(tmp_path / "released.json")]) == 0
    assert "recomputed every predictor" in capsys.readouterr().out


def test_the_prior_decides_the_first_batch(settings, named, play):
    """Under the predicted probabilities, fewer than 20 of 30 have a probability below 1e-9."""
    plan = replace(Plan.from_config(PLAN), prior=prior())
    row = plan.features.map([0.3, -0.01])
    chances = plan.played_policy.probabilities(plan.nothing_released(), row)[0]
    assert chances[1] > 0.97

    async def scenario(service):
        made = [await service.decisions.decide("caller", [0.3, -0.01]) for _ in range(30)]
        assert sum(each.action == 1 for each in made) >= 20

    play(settings(plan=named), scenario)


def test_a_release_that_ignores_the_prior_is_refused(settings, named, play, monkeypatch):
    from discreet.client import chain

    made = settings(plan=named)

    async def scenario(service):
        await fill(service)
        monkeypatch.setattr(chain, "prior_of", lambda _: None)  # what the fit goes on from
        assert not await service.upkeep.once()
        assert (await service.status())["refused"] == "statistics"
        monkeypatch.undo()
        assert await service.upkeep.once()

    play(made, scenario)


@pytest.mark.usefixtures("named")
def test_a_prior_never_changes(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(toml().replace("[plan]", '[plan]\nprior = "trial.prior.json"'))
    lifecycle.begin(Settings.read(path))
    other = to_config(prior()) | {"weight": "0.25"}
    (tmp_path / "trial.prior.json").write_text(json.dumps(other))
    from discreet.service.http.server import preflight

    with pytest.raises(StateClaimed, match=r"plan\.prior\.weight must stay"):
        preflight(Settings.read(path))


@pytest.mark.parametrize("content", [None, "{", "[]", '{"kind": "Prior"}'])
def test_a_file_that_is_no_prior_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "trial.prior.json").write_text(content)
    path = tmp_path / "experiment.toml"
    path.write_text(toml().replace("[plan]", '[plan]\nprior = "trial.prior.json"'))
    with pytest.raises(DiscreetError, match="must"):
        Settings.read(path)
