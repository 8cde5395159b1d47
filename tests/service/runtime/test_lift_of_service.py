"""Lift of a service with a control share: both parts are charged and can be compared."""

import asyncio
import json
import math
from dataclasses import replace

import pytest

from discreet.cli.main import main
from discreet.client import Billboard, billboard
from discreet.client.recomputation import recompute
from discreet.privacy.ledger import DISJOINT_PARTS
from discreet.releases.lift import lift
from discreet.service.runtime import fit_process, lifecycle
from discreet.service.storage import document_table
from discreet.service.storage.locations import anchor_of
from service.conftest import dump, set_back, windows_end
from service.dashboard.visitor import Visitor

HERE = [0.3, -0.2]
CONTROL = {"control": {"share": 0.3, "action": 2}, "first_batch": 10}
USERS = {"unit": "user", "batches_per_user": 3, "records_per_batch": 2}
PARTS = ["batch 1 of epoch 1, policy", "batch 1 of epoch 1, control"]


@pytest.fixture
def database():
    return "discreet.db"


async def decide(service, count, **words):
    return [await service.decisions.decide("caller", HERE, **words) for _ in range(count)]


async def first_release(service, released, count=10):
    for each in await decide(service, count):
        await service.decisions.observe(each.decision, float(each.action == 0))
    return await released(service)


def test_both_parts_pay_once(settings, play, released):
    chosen = settings(plan=CONTROL)

    async def scenario(service):
        await first_release(service, released)
        ledger = await service.state.ledger()
        assert [each.partition for each in ledger.entries] == PARTS
        assert ledger.entries[0].event == ledger.entries[1].event == chosen.plan.event
        assert {each.assumption for each in ledger.entries} == {DISJOINT_PARTS}
        assert ledger.spent().epsilon == pytest.approx(1.0, abs=1e-5)

    play(chosen, scenario)
    with anchor_of(chosen).held() as book:
        (charge,) = [mark.charge for mark in book.confirmed if mark.charge]
    assert [each["partition"] for each in charge["charges"]] == PARTS


@pytest.mark.parametrize("unit", [{}, USERS], ids=["decision", "user"])
def test_a_lost_release_is_charged_to_both_parts(settings, play, released, unit):
    chosen, kept = settings(plan=CONTROL, **unit), {}

    async def scenario(service):
        for number in range(10):
            user = {"user": f"person {number}"} if unit else {}
            (each,) = await decide(service, 1, **user)
            await service.decisions.observe(each.decision, 0.5)
        kept.update(await asyncio.to_thread(dump, chosen))
        await released(service)

    play(chosen, scenario)
    set_back(chosen, kept)
    assert lifecycle.restore(chosen).charged == [1]

    async def again(service):
        ledger = await service.state.ledger()
        return [each.partition for each in ledger.entries], ledger.spent().epsilon

    partitions, cost = play(chosen, again)
    assert partitions == PARTS
    assert 0.3 < cost <= 1.0


@pytest.mark.parametrize("wrong", ["none", "less noise", "not a number"])
def test_wrong_sums_of_the_parts_are_refused(settings, play, released, monkeypatch, wrong):
    honest = fit_process.release_batch

    def forged(*given):
        release, ledger = honest(*given)
        reported = release.part_losses
        if wrong == "none":
            return replace(release, part_losses=None), ledger
        if wrong == "less noise":
            return replace(
                release, part_losses=replace(reported, variance=reported.variance / 4)
            ), ledger
        return replace(
            release, part_losses=replace(reported, sums=reported.sums * math.nan)
        ), ledger

    async def scenario(service):
        await decide(service, 10)
        await windows_end(service)
        with monkeypatch.context() as patch:
            patch.setattr(fit_process, "release_batch", forged)
            assert not await service.upkeep.once()
        status = await service.status()
        assert status["refused"] == "part losses"
        assert not (await service.state.ledger()).entries
        assert (await released(service)).latest.part_losses is not None

    play(settings(plan=CONTROL), scenario)


class Closed:
    """Whatever a lift has no need of."""

    def __getattr__(self, _):
        raise AssertionError("the lift was asked of something that holds rows")

    def close(self):
        """Closed already."""


def test_a_lift_is_read_from_releases_alone(settings, play, released):
    """It is what everybody computes from the documents, and it asks the database for nothing."""
    chosen = settings(plan=CONTROL)

    async def scenario(service):
        assert service.lift() is None
        await first_release(service, released)
        reported = service.lift().to_json()
        chain = await service.state.read(lambda c: document_table.after(c, -1))
        board = Billboard(chain, service.state.serving.chain.key)
        assert recompute(board.released)
        assert reported == lift(board.released).to_json()
        assert reported["format"] == "discreet-lift/1"
        assert [each["records"] for each in reported["batches"]] == [10]

        state = service.state
        state.database = state.writer = state.vault = state._reader = state._reading = Closed()
        assert service.lift().to_json() == reported

    play(chosen, scenario)


def test_the_lift_over_http(settings, play, released, monkeypatch, capsys):
    """By whoever may read releases: as JSON, and with the command that verifies the documents."""

    async def scenario(service):
        visitor, answers = Visitor(service), {}

        async def get(path):
            reply = await visitor.get(path)
            answers[path] = reply.text.encode()
            return reply.status, json.loads(reply.text)

        status, answer = await get("/v1/lift")
        assert (status, answer["error"]["code"]) == (404, "no_lift")
        await first_release(service, released)
        for path in ("/v1/lift", "/v1/releases", "/v1/releases/0", "/v1/releases/1"):
            assert (await get(path))[0] == 200
        return answers

    answers = play(settings(plan=CONTROL, public_releases=True), scenario)
    url = "http://localhost:8000"
    nothing = b'{"error": {"code": "not_found"}}'
    monkeypatch.setattr(
        billboard, "fetch", lambda at, path, _: answers[path] if at == url else nothing
    )
    assert main(["lift", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(answers["/v1/lift"])
    assert main(["lift", f"{url}/v1/lift"]) == 2
    assert "list of releases must have numbers" in capsys.readouterr().err
