"""Checks of a fit against plan, chain and ledger."""

import asyncio
import json
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from discreet.privacy.events import event_json
from discreet.privacy.ledger import Ledger
from discreet.releases.canonical import canonical
from discreet.releases.release import Predictor
from discreet.service.runtime import fit_process, lifecycle
from discreet.service.settings import Settings
from discreet.service.storage import document_table
from discreet.service.storage.locations import open_database
from service.conftest import toml, windows_end

HERE = [0.3, -0.2]


async def fill(service, **person):
    while (decision := await service.decisions.decide("caller", HERE, **person)).stored:
        await service.decisions.observe(decision.decision, 0.5)
    await windows_end(service)


def counts(service):
    """How many documents, charges and answers there are."""
    tables = ("documents", "charges", "answers")
    return service.state.writer.run(
        lambda c: [c.execute(f"SELECT count(*) FROM {each}").fetchone()[0] for each in tables]
    )


async def assert_refused(service, reason, capsys):
    """Nothing is written or deleted, and it is told once, in public words."""
    before = await asyncio.to_thread(counts, service)
    assert before[2] > 0
    for _ in range(2):
        assert not await service.upkeep.once()
    assert await asyncio.to_thread(counts, service) == before
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    logged = [(each["event"], each["kind"]) for each in lines if "kind" in each]
    assert logged == [("release refused", reason)]
    assert {each["event"] for each in lines} <= {"started", "release begun", "release refused"}
    status = await service.status()
    assert (status["refused"], status["ready"]) == (reason, True)  # decisions go on
    person = {"user": "later"} if service.settings.unit == "user" else {}
    assert not (await service.decisions.decide("caller", HERE, **person)).stored
    assert f"refused for its {reason}" in status["text"]


async def assert_mended(service, released):
    assert (await released(service)).latest.number == 1
    assert await asyncio.to_thread(counts, service) == [2, 1, 0]
    status = await service.status()
    assert (status["refused"], status["ready"]) == (None, True)


def weaker(release):
    return replace(release, event=replace(release.event, multiplier=release.event.multiplier / 37))


def weighing(release, weights):
    return replace(release, predictor=Predictor(weights, release.predictor.link))


def summing(release, **changes):
    return replace(release, statistics=replace(release.statistics, **changes))


WRONG = {
    "plan of another": ("plan", lambda release: replace(release, plan_digest="0" * 64)),
    "number too high": ("number", lambda release: replace(release, number=2)),
    "number again": ("number", lambda release: replace(release, number=0)),
    "previous": ("previous", lambda release: replace(release, previous="0" * 64)),
    "records": ("records", lambda release: replace(release, records=release.records + 1)),
    "less noise": ("event", weaker),
    "words in the event": (
        "event",
        lambda release: replace(release, event=replace(release.event, assumes=("they said 0.5",))),
    ),
    "another shape": (
        "weights",
        lambda release: weighing(release, release.predictor.weights[:, :-1]),
    ),
    "no number": ("weights", lambda release: weighing(release, release.predictor.weights * np.nan)),
    "no Gram": ("gram", lambda release: replace(release, gram=None)),
    "no statistics": ("statistics", lambda release: replace(release, statistics=None)),
    "another variance": ("statistics", lambda release: summing(release, variance=0.5)),
    "records of the statistics": ("statistics", lambda release: summing(release, records=5)),
    "sums of fewer actions": (
        "statistics",
        lambda release: summing(release, response=release.statistics.response[:2]),
    ),
    "nothing told": ("statistics", lambda release: summing(release, outcome_sums=None)),
    "a matrix of its own": ("statistics", lambda release: summing(release, matrix=2 * np.eye(3))),
    "no next matrix": ("statistics", lambda release: summing(release, following=None)),
    "a next matrix that no release may use": (
        "statistics",
        lambda release: summing(release, following=np.eye(3) / 3.0),  # no short number
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_release_is_dropped(settings, play, released, capsys, wrong):
    reason, change = WRONG[wrong]
    honest = fit_process.fit

    async def scenario(service):
        await fill(service)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(fit_process, "fit", lambda *requested: change(honest(*requested)))
            await assert_refused(service, reason, capsys)
        await assert_mended(service, released)

    policy = {"policy": {"kind": "LinUCB"}, "oracle": {"kind": "Ridge"}} if reason == "gram" else {}
    play(settings(plan=policy), scenario)


def test_a_matrix_that_the_release_before_did_not_publish_is_dropped(
    settings, play, released, capsys
):
    """Also the identity, which only the first release may use."""
    honest = fit_process.fit

    async def scenario(service):
        await fill(service)
        await released(service)
        capsys.readouterr()
        await fill(service)
        with pytest.MonkeyPatch.context() as patched:
            plain = lambda *requested: summing(honest(*requested), matrix=np.eye(3))  # noqa: E731
            patched.setattr(fit_process, "fit", plain)
            await assert_refused(service, "statistics", capsys)
        assert (await released(service)).latest.number == 2
        bodies = await service.state.read(lambda c: document_table.after(c, 0))
        first, second = (json.loads(body)["release"]["statistics"] for body in bodies)
        assert second["matrix"] == first["following"] != first["matrix"]

    play(settings(), scenario)


OTHERS = {
    "epsilon": {"budget": {"epsilon": 15.0, "delta": 1e-6}},
    "actions": {"n_actions": 4},
    "first batch": {"first_batch": 2},
    "oracle": {"oracle": {"kind": "Ridge"}},
}


@pytest.mark.parametrize(
    ("other", "reason", "forged"),
    [
        *((other, "plan", False) for other in OTHERS),
        ("epsilon", "event", True),
        ("actions", "weights", True),
    ],
)
def test_a_fit_by_another_plan_is_dropped(settings, play, released, capsys, other, reason, forged):
    """Also one that calls itself ours: its noise or its shape is not."""
    honest, chosen = fit_process.fit, settings()
    another = settings(plan=OTHERS[other], begin=False)

    def fit(_, *requested):
        # The child of another file: it would find a chain of its own plan.
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(fit_process.Chain, "extended", lambda self, *_: self)
            patched.setattr(fit_process.Chain, "released", another.plan.nothing_released())
            patched.setattr(fit_process.Chain, "blocks_at", lambda *_: another.plan.blocks)
            made = honest(another, *requested)
        digest = chosen.plan.digest
        return replace(made, plan_digest=digest, previous=digest) if forged else made

    async def scenario(service):
        await fill(service)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(fit_process, "fit", fit)
            await assert_refused(service, reason, capsys)
        await assert_mended(service, released)

    play(chosen, scenario)


def charge_once_more(connection, settings, number):
    """Somebody else's charge on the partition that pays for the first batch."""
    event = settings.plan.mechanism.event
    (entry,) = Ledger(settings.plan.budget).charge("batch 1 of epoch 1", event).to_json()["entries"]
    assert event_json(event) == entry["charges"][0]["event"]
    connection.execute("INSERT INTO charges VALUES (?, ?)", (number, canonical(entry).decode()))


@pytest.mark.parametrize("moment", ["before the fit", "during the fit"])
def test_a_charge_above_the_budget_is_refused(settings, play, released, capsys, moment):
    honest, chosen = fit_process.fit, settings()

    def overspend():
        with closing(open_database(chosen).connect()) as connection:
            charge_once_more(connection, chosen, 7)

    def fit(*requested):
        made = honest(*requested)
        overspend()
        return made

    async def scenario(service):
        for number in range(4):
            decision = await service.decisions.decide("caller", HERE)
            await service.decisions.observe(decision.decision, number / 4)
        await fill(service)
        with pytest.MonkeyPatch.context() as patched:
            if moment == "during the fit":
                patched.setattr(fit_process, "fit", fit)
                assert not await service.upkeep.once()
                assert service.state.refused == "budget"
                service.state.refused = None
                capsys.readouterr()
            else:
                overspend()
            await assert_refused(service, "budget", capsys)
        await service.state.write(lambda c: c.execute("DELETE FROM charges") and None)
        await assert_mended(service, released)

    play(chosen, scenario)


def test_a_budget_that_the_genesis_did_not_promise_is_not_spent(settings, play, capsys):
    """Somebody raised it in the file and in the database: the signed document has the old one."""
    settings()
    raised = settings(plan={"budget": {"epsilon": 2.0, "delta": 2e-6}}, begin=False)
    honest = fit_process.fit

    def fit(*requested):  # as if the chain were one of the raised plan
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(fit_process.Chain, "extended", lambda self, *_: self)
            patched.setattr(fit_process.Chain, "released", raised.plan.nothing_released())
            patched.setattr(fit_process.Chain, "blocks_at", lambda *_: raised.plan.blocks)
            return honest(*requested)

    with closing(open_database(raised).connect()) as connection:
        row = canonical(raised.fixed).decode()
        connection.execute("UPDATE experiment SET plan = ?", (row,))

    async def scenario(service):
        for number in range(4):
            decision = await service.decisions.decide("caller", HERE)
            await service.decisions.observe(decision.decision, number / 4)
        await fill(service)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(fit_process, "fit", fit)
            await assert_refused(service, "budget", capsys)

    play(raised, scenario)


def test_a_chain_that_was_altered_meanwhile_is_not_continued(settings, play, released, capsys):
    async def scenario(service):
        await fill(service)
        body = await service.state.read(document_table.newest)
        altered = "UPDATE documents SET body = ? WHERE number = 0"
        await service.state.write(lambda c: c.execute(altered, (body + b" ",)) and None)
        honest = fit_process.fit
        with pytest.MonkeyPatch.context() as patched:
            made = []

            def fit(*requested):  # of the chain as it was
                if not made:
                    service.state.writer.run(lambda c: c.execute(altered, (body,)) and None)
                    made.append(honest(*requested))
                    service.state.writer.run(lambda c: c.execute(altered, (body + b" ",)) and None)
                return made[0]

            patched.setattr(fit_process, "fit", fit)
            await assert_refused(service, "chain", capsys)
        await service.state.write(lambda c: c.execute(altered, (body,)) and None)
        await assert_mended(service, released)

    play(settings(), scenario)


def test_a_burned_batch_takes_the_refusal_with_it(settings, play):
    honest = fit_process.fit

    async def scenario(service):
        await fill(service)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(fit_process, "fit", lambda *requested: weaker(honest(*requested)))
            assert not await service.upkeep.once()
        assert service.state.refused == "event"
        await service.burn(1)
        await service.upkeep.once()
        assert service.state.refused is None

    play(settings(), scenario)


MALICIOUS = """
from dataclasses import replace
from pathlib import Path
from discreet.service.runtime import fit_process
honest = fit_process.fit
def fit(settings, *asked):
    made = honest(settings, *asked)
    if not (settings.folder / "wrong").exists():
        return made
    return replace(made, event=replace(made.event, multiplier=made.event.multiplier / 37))
fit_process.fit = fit
"""


@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
def test_a_child_that_is_wrong_is_replaced(tmp_path, database, play, released, capsys, monkeypatch):
    monkeypatch.setattr(fit_process, "CHILD", MALICIOUS + fit_process.CHILD)
    path = tmp_path / "experiment.toml"
    path.write_text(toml(database=database))
    chosen = Settings.read(path)
    lifecycle.begin(chosen)
    (tmp_path / "wrong").touch()

    async def scenario(service):
        await fill(service)
        await assert_refused(service, "event", capsys)
        (tmp_path / "wrong").unlink()
        await assert_mended(service, released)

    play(chosen, scenario, config=path)


def test_a_child_receives_all_settings_and_reads_no_file(tmp_path, database, play, released):
    path = tmp_path / "experiment.toml"
    path.write_text(toml(database=database))
    chosen = Settings.read(path)
    lifecycle.begin(chosen)
    path.unlink()

    async def scenario(service):
        await fill(service)
        await released(service)
        return json.loads(await service.state.read(document_table.newest))["release"]

    assert play(chosen, scenario, config=path)["plan"] == chosen.plan.digest
