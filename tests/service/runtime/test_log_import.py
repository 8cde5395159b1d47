"""A private log begins a service: as sealed batches, released as all others are, once."""

import json
import multiprocessing
import signal
from contextlib import closing

import numpy as np
import pytest

import discreet as dc
from discreet.batches.log_import import logged_rows
from discreet.cli.main import main
from discreet.client.chain import Chain
from discreet.client.documents import public_key
from discreet.client.recomputation import recompute
from discreet.errors import InvalidInput, NotReady, StateClaimed
from discreet.plan.config import to_config
from discreet.service.http.server import preflight
from discreet.service.runtime import lifecycle
from discreet.service.runtime.bulk import import_log
from discreet.service.secrets.sealing import Sealer
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage.database import kill_at
from discreet.service.storage.journal import slots_of_people
from discreet.service.storage.locations import open_database
from discreet.service.storage.sealed_batch import read_batch
from service.conftest import PLAN, dump, set_back, toml

ROWS = 30
LENGTHS = [7, 23]
"""Batches of the log: they grow from four, and the last takes what is left."""
RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, size=(ROWS, 2))
SHOWN = RNG.integers(3, size=ROWS)
LOST = ((X[:, 0] > 0) != SHOWN).astype(float)
USERS = [f"p{each}" for each in RNG.integers(9, size=ROWS)]
LOG = {"imported": ROWS}
PEOPLE = {"unit": "user", "batches_per_user": 2, "records_per_batch": 2}
CONTROL = {"control": {"share": 0.5, "action": 0}}
GUARDED = {"guardrails": [{"name": "complaints"}, {"name": "late"}]}
EXACT = {"budget": {"epsilon": "inf", "delta": "0.0"}, "n_actions": 3}


def rows(settings, count=ROWS):
    users = USERS[:count] if settings.unit == "user" else None
    return logged_rows(settings.plan, X[:count], SHOWN[:count], LOST[:count], None, users)


def chain(service):
    return service.state.serving.chain


def told_by(bodies, settings):
    key = public_key(Vault(settings.place(settings.vault)).signing)
    return Chain(key).extended(bodies).released


async def all_released(service, released):
    for _ in LENGTHS:
        await released(service)


@pytest.mark.parametrize(
    ("words", "control"),
    [({}, {}), ({}, CONTROL), (PEOPLE, CONTROL), ({}, CONTROL | GUARDED)],
    ids=["", "part", "people", "guardrails"],
)
def test_a_service_releases_a_log_as_a_learner_does(settings, play, released, words, control):
    made = settings(plan=EXACT | LOG | control, allow_idealised=True, **words)
    assert import_log(made, rows(made)) == len(LENGTHS)

    async def scenario(service):
        await all_released(service, released)
        return chain(service), service.lift()

    reported, lifted = play(made, scenario)
    learner = dc.Learner(made.plan)
    learner.import_log(X, SHOWN, LOST, user=USERS if words else None)
    mine, theirs = reported.releases, learner.released.items
    assert [each.records for each in mine] == LENGTHS == [each.records for each in theirs]
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one.predictor.weights, other.predictor.weights, atol=1e-12)
        if control:  # a log is in neither part, so it is counted with those of the policy
            assert np.array_equal(one.part_losses.sums, other.part_losses.sums)
        if "guardrails" in control:  # which a log does not have
            assert not one.guardrails.sums.any()
    assert lifted is None


def test_a_log_costs_what_the_plan_says_and_can_be_recomputed(settings, play, released):
    made = settings(plan=LOG, waiting="pipeline")
    import_log(made, rows(made))

    async def scenario(service):
        first = await service.decisions.decide("caller", [0.1, 0.2])
        assert not first.stored  # decisions wait for what the log tells
        reported = (await service.status())["text"]
        assert "log is released first: 2 of its batches are left" in reported
        assert "not stored" in reported
        await all_released(service, released)
        bodies = [await service.state.document(number) for number in range(1 + len(LENGTHS))]
        ledger = await service.state.ledger()
        assert ledger.spent().epsilon <= made.plan.budget.epsilon
        assert len(ledger.entries) == len(LENGTHS)
        second = await service.decisions.decide("caller", [0.1, 0.2])
        assert (second.stored, second.release) == (True, 2)
        await service.state.refresh()
        (batch,) = service.state.live
        assert (batch.id, batch.size) == (3, PLAN["first_batch"])
        return bodies

    assert list(recompute(told_by(play(made, scenario), made))) == [1, 2]
    tables = dump(made)
    assert not tables["answers"]
    kept = Vault(made.place(made.vault)).batches()
    assert [place for place in kept if place[1] <= len(LENGTHS)] == []


def test_rows_are_sealed_and_records_per_person_are_bounded(settings):
    made = settings(plan=LOG, **PEOPLE)
    import_log(made, rows(made))
    vault = Vault(made.place(made.vault))
    counted = 0
    with closing(open_database(made).connect()) as connection:
        for batch, size in enumerate(LENGTHS, start=1):
            sealer = Sealer(vault.batch(1, batch), 1, batch)
            held = read_batch(connection, made.plan, sealer, 1, batch, size)
            slots = slots_of_people(connection, "counts", 1, batch)
            assert set(np.flatnonzero(held.observed.any(axis=1))) == slots
            counted += len(slots)
    most = sum(min(2, USERS.count(each)) for each in set(USERS))
    assert 0 < counted <= most
    # One of their two batches, whoever they are: this is what a decision is counted on top of.
    counts = [tuple(row[1:3]) for row in dump(made)["people"]]
    assert len(counts) == len(set(USERS))
    assert {entered for entered, _ in counts} == {1}
    assert X[0].tobytes() not in b"".join(bytes(row[4]) for row in dump(made)["answers"])


def test_a_person_of_the_log_enters_one_batch_less(settings, play, released):
    once = PEOPLE | {"batches_per_user": 1}
    made = settings(plan=LOG, **once)
    import_log(made, rows(made))

    async def scenario(service):
        await all_released(service, released)
        for user in (USERS[0], "somebody else"):
            assert (await service.decisions.decide("caller", [0.1, 0.2], user=user)).stored

    play(made, scenario)
    handed = {row[2]: row[3] for row in dump(made)["handed"] if row[1] == len(LENGTHS) + 1}
    assert sorted(handed.values()) == [0, 1]


def refused(made, error, match, count=ROWS):
    before = dump(made)
    with pytest.raises(error, match=match):
        import_log(made, rows(made, count))
    assert dump(made) == before


def test_a_log_is_imported_once_and_whole(settings, play, released):
    made = settings(plan=LOG)
    genesis = dump(made)
    with pytest.raises(NotReady, match="Run discreet import"):
        preflight(made)
    refused(made, InvalidInput, "announces, 30 rows; got 29", count=29)
    import_log(made, rows(made))
    preflight(made)
    refused(made, StateClaimed, "must be imported once")

    async def scenario(service):
        await all_released(service, released)

    play(made, scenario)
    refused(made, StateClaimed, "must be imported once")
    # A backup from before the import: its log is in releases, and gets no second noise.
    set_back(made, genesis)
    refused(made, StateClaimed, "anchor")
    lifecycle.restore(made)
    refused(made, StateClaimed, "or was restored")
    preflight(made)  # and the experiment goes on without it


def test_a_plan_without_a_log_takes_none(settings):
    made = settings()
    refused(made, InvalidInput, "announces, no rows; got 30")


def killed_at(name, times, made):
    """The exit code of an import that is killed at a step, in a process of its own."""

    def child():
        kill_at(f"{name}@{times}")
        import_log(made, rows(made))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    return process.exitcode


def test_an_import_that_is_cut_short_leaves_nothing(settings):
    made = settings(plan=LOG, **PEOPLE)
    before = dump(made)
    for name, times in (("import:batch", 2), ("import:before-commit", 1)):
        assert killed_at(name, times, made) == -signal.SIGKILL
        assert dump(made) == before
    assert killed_at("import:committed", 1, made) == -signal.SIGKILL
    assert len(dump(made)["answers"]) == ROWS
    preflight(made)


@pytest.fixture
def folder(tmp_path):
    """An experiment that has begun and awaits a log, and the log."""
    path = tmp_path / "experiment.toml"
    words = f"[plan]\ngrowth = 2.0\nimported = {ROWS}"
    path.write_text(toml().replace("[plan]", words))
    prior = dc.prior_from_logs(Settings.read(path).plan, X, SHOWN, LOST, source="a trial")
    (tmp_path / "trial.prior.json").write_text(json.dumps(to_config(prior)))
    path.write_text(toml().replace("[plan]", f'{words}\nprior = "trial.prior.json"'))
    lifecycle.begin(Settings.read(path))
    lines = [
        f"{x!r},{y!r},{a},{lost:g},{who}"
        for (x, y), a, lost, who in zip(X.tolist(), SHOWN, LOST, USERS, strict=True)
    ]
    (tmp_path / "log.csv").write_text("x,y,shown,lost,who\n" + "\n".join(lines) + "\n")
    return tmp_path


WORDS = ("--log", "log.csv", "--action", "shown", "--loss", "lost", "--ignore", "who")


def test_the_command_and_then_a_start(folder, monkeypatch, capsys, play, released):
    monkeypatch.chdir(folder)
    settings = Settings.read("experiment.toml")
    before = dump(settings)
    wrong = [
        (("--out", "warm"), "out must be left out"),
        (("--epsilon", "8"), "--epsilon must be left out"),
        (("--user", "who"), "user must be left out with the unit 'decision'"),
        (("--public",), "out must be a name"),
    ]
    for words, message in wrong:
        assert main(["import", "experiment.toml", *WORDS, *words]) != 0
        assert message in capsys.readouterr().err
    assert dump(settings) == before
    assert main(["import", "experiment.toml", *WORDS]) == 0
    assert "30 rows in 2 sealed batches" in capsys.readouterr().out

    async def scenario(service):
        await all_released(service, released)
        return [await service.state.document(number) for number in range(1 + len(LENGTHS))]

    # With its file, as discreet serve: fits run in a child.
    reported = told_by(play(settings, scenario, config=folder / "experiment.toml"), settings)
    assert [each.records for each in reported.items] == LENGTHS
    assert np.array_equal(reported.items[0].statistics.matrix, settings.plan.prior.following)
    assert list(recompute(reported)) == [1, 2]


def test_a_log_of_people_brings_ids(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    words = 'unit = "user"\nbatches_per_user = 2\nrecords_per_batch = 2\n'
    (folder / "experiment.toml").write_text(words + (folder / "experiment.toml").read_text())
    assert main(["import", "experiment.toml", *WORDS]) != 0
    assert "Add --user COLUMN" in capsys.readouterr().err
