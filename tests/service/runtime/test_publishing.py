"""A release happens once, when it is due, whole or not at all, and leaves no rows behind."""

import asyncio
import os
import shutil
import threading
from contextlib import closing

import pytest

from discreet.client.chain import Chain
from discreet.errors import DecisionClosed, NotReady, StateClaimed
from discreet.privacy.ledger import Ledger
from discreet.service.runtime import lifecycle, release_transaction
from discreet.service.runtime.fit_process import fit
from discreet.service.runtime.release_transaction import ReleaseRefused
from discreet.service.storage import document_table, sqlite
from discreet.service.storage.anchor import Anchor, AnchorMark
from discreet.service.storage.locations import open_database
from service.conftest import windows_end
from waiting import PATIENCE

USERS = {"unit": "user", "batches_per_user": 4, "records_per_batch": 1}
HERE = [0.3, -0.2]


async def fill(service, count):
    decisions = [await service.decisions.decide("caller", HERE) for _ in range(count)]
    for each in decisions:
        await service.decisions.observe(each.decision, 0.5)
    return decisions


def publisher(service, **changes):
    state = service.state
    parts = {
        "settings": service.settings,
        "database": state.database,
        "vault": state.vault,
        "anchor": state.anchor,
        "known": state.serving.chain,
        "fit": lambda *place: fit(service.settings, state.database, state.vault, *place),
        "commit": state.writer.run,
        "pause": lambda _: None,
    } | changes
    return release_transaction.Publisher(**parts)


def rows(service, table):
    return service.state.writer.run(
        lambda c: c.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    )


async def in_thread(function, *arguments):
    return await asyncio.to_thread(function, *arguments)


def test_the_key_is_the_guarantee_when_the_state_is_forged(settings, play, released):
    """Even a batch that is put back to sealed is not released again, whatever is fitted."""

    async def scenario(service):
        await fill(service, 4)
        await windows_end(service)
        state = service.state
        fitted = await in_thread(fit, service.settings, state.database, state.vault, 1, 1, 4)
        await released(service)
        state.vault.make(1, 1)
        await service.state.write(
            lambda c: c.execute("UPDATE batches SET state = 'sealed' WHERE id = 1") and None
        )
        with pytest.raises(ReleaseRefused, match="budget"):  # the ledger would not pay
            await in_thread(publisher(service).release_next)
        with pytest.MonkeyPatch.context() as patched:
            unpaid = Ledger(service.settings.plan.budget).charge("another", fitted.event)
            patched.setattr(release_transaction, "paid", lambda *_: unpaid)
            with pytest.raises(ReleaseRefused, match="number"):  # the chain has one already
                await in_thread(publisher(service, fit=lambda *_: fitted).release_next)
            patched.setattr(release_transaction, "verify", lambda *_: None)
            with pytest.raises(state.database.lost):  # the unique key would not have it
                await in_thread(publisher(service, fit=lambda *_: fitted).release_next)
        return await in_thread(rows, service, "documents")

    assert play(settings(), scenario) == 2


def test_a_release_is_never_early(settings, play):
    async def scenario(service):
        await fill(service, 4)
        assert not await in_thread(publisher(service).release_next)  # the window is open
        await windows_end(service)
        waited = []

        def pause(seconds):
            waited.append(seconds)
            threading.Event().wait(seconds)

        assert await in_thread(publisher(service, pause=pause).release_next)
        batch = await service.state.read(
            lambda c: c.execute(
                f"SELECT due, {service.state.database.now} FROM batches WHERE id = 1"
            ).fetchone()
        )
        assert waited  # the fit was done before it was due
        assert batch[1] >= batch[0]

    play(settings(settle=2.0), scenario)


@pytest.mark.parametrize("step", ["insert", "charge", "finish", "intend"])
def test_a_failure_at_any_step_leaves_everything_as_it_was(settings, play, released, step):
    def broken(*_arguments):
        raise OSError("disk full")

    places = {
        "insert": (document_table, "append"),
        "charge": (document_table, "charge"),
        "finish": (release_transaction, "finish"),
        "intend": (Anchor, "intend"),
    }

    async def scenario(service):
        await fill(service, 4)
        await windows_end(service)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(*places[step], broken)
            with pytest.raises(OSError, match="disk full"):
                await in_thread(publisher(service).release_next)
        counts = [await in_thread(rows, service, each) for each in ("documents", "charges")]
        assert counts == [1, 0]
        assert await in_thread(rows, service, "answers") == 4
        made = await released(service)
        assert len(made.items) == 1

    play(settings(), scenario)


def test_published_bytes_verify_and_never_change(settings, play, released):
    chosen = settings()

    async def scenario(service):
        await fill(service, 4)
        await released(service)
        return await service.state.read(lambda c: document_table.after(c, -1))

    bodies = play(chosen, scenario)

    async def later(service):
        await fill(service, 8)
        await released(service)
        return await service.state.read(
            lambda c: document_table.after(c, -1)
        ), service.state.serving

    again, serving = play(chosen, later)
    assert again[:2] == bodies
    assert len(Chain(serving.chain.key).extended(again).released.items) == 2


def test_rows_and_keys_are_gone_after_the_release(settings, play, released, tmp_path):
    chosen = settings(**USERS)
    marker = "marker-of-a-person"

    async def scenario(service):
        for _ in range(4):
            each = await service.decisions.decide(
                "caller", HERE, user=marker, idempotency=marker + str(_)
            )
            await service.decisions.observe(each.decision, 0.123456789)
        sealed = await service.state.read(
            lambda c: [bytes(row[0]) for row in c.execute("SELECT payload FROM records").fetchall()]
        )
        assert len(sealed) == 4
        assert service.state.vault.batches() == [(1, 1)]
        await released(service)
        assert service.state.vault.batches() == []
        for table in ("records", "answers", "replies", "handed"):
            assert await in_thread(rows, service, table) == 0
        return sealed

    sealed = play(chosen, scenario)
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    if chosen.postgres:
        assert marker.encode() not in left
    else:
        assert left
        assert not any(payload[:40] in left for payload in sealed)


def test_erasure_is_not_called_done_while_a_reader_keeps_old_pages(
    settings, play, released, monkeypatch
):
    """The check can fail: an open reader blocks the truncation, and is noticed."""
    chosen = settings()
    if chosen.postgres:
        return  # the server's files are not ours to truncate
    monkeypatch.setattr(sqlite, "PATIENCE", 3600.0)

    async def scenario(service):
        await fill(service, 4)
        database = open_database(chosen)
        with closing(database.connect()) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM records").fetchone()
            await released(service)
            assert not service.upkeep._erased
            await asyncio.wait_for(service.upkeep.once(), PATIENCE)  # nobody waits for the reader
        await service.upkeep.once()
        assert service.upkeep._erased

    play(chosen, scenario)


def test_a_restored_backup_is_refused_until_a_new_epoch_begins(settings, play, released, tmp_path):
    chosen = settings()
    if chosen.postgres:
        return  # the same rules on tables that are set back: below

    async def first(service):
        return [await service.decisions.decide("caller", HERE) for _ in range(2)]

    old = play(chosen, first)
    backup = tmp_path / "backup.db"
    shutil.copy(tmp_path / "discreet.db", backup)

    async def later(service):
        await fill(service, 2)
        await released(service)

    play(chosen, later)
    for extra in ("-wal", "-shm"):
        (tmp_path / f"discreet.db{extra}").unlink(missing_ok=True)
    shutil.copy(backup, tmp_path / "discreet.db")
    with pytest.raises(StateClaimed, match="discreet restore"):
        play(chosen, first)
    assert lifecycle.restore(chosen) == lifecycle.Restored(burned=[1], charged=[1])

    async def after(service):
        with pytest.raises(DecisionClosed):
            await service.decisions.observe(old[0].decision, 0.5)
        await fill(service, 4)
        made = await released(service)
        assert len(made.items) == 1
        return await service.state.read(lambda c: document_table.after(c, -1)), service.state

    bodies, state = play(chosen, after)
    kinds = [link.kind for link in state.serving.chain.links]
    numbers = [link.number for link in state.serving.chain.links]
    assert kinds == ["genesis", "restore", "release"]
    assert numbers == [0, 2, 3]  # number 1 was published before the restore and is never reused
    assert Chain(state.serving.chain.key).extended(bodies)


def test_tables_that_were_set_back_are_refused(settings, play, released):
    chosen = settings()

    async def scenario(service):
        await fill(service, 4)
        await released(service)
        await service.state.write(
            lambda c: [c.execute("DELETE FROM documents WHERE number = 1"), None][1]
        )

    play(chosen, scenario)
    with pytest.raises(StateClaimed, match="missing or differs"):
        play(chosen, fill)


def test_a_burned_batch_is_erased_and_never_released(settings, play, released):
    async def scenario(service):
        lost = await fill(service, 3)
        await service.burn(1)
        with pytest.raises(DecisionClosed):
            await service.decisions.observe(lost[0].decision, 0.5)
        assert await in_thread(rows, service, "answers") == 0
        assert service.state.vault.batches() == []
        kept = await fill(service, 4)
        assert all(each.stored and each.release == 1 for each in kept)
        made = await released(service)
        assert (made.latest.number, made.latest.records) == (1, 4)
        kinds = [link.kind for link in service.state.serving.chain.links]
        assert kinds == ["genesis", "burn", "release"]

    play(settings(), scenario)


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ({}, {"plan": {"n_actions": 4}}, "plan.n_actions"),
        ({}, {"plan": {"budget": {"epsilon": 15.0, "delta": 1e-6}}}, "plan.budget.epsilon"),
        ({}, {"plan": {"policy": {"kind": "Greedy"}}}, "plan.policy.kind"),
        ({}, USERS, "batches_per_user, records_per_batch, unit"),
        (USERS, USERS | {"batches_per_user": 8}, "batches_per_user"),
        (USERS, USERS | {"records_per_batch": 2}, "records_per_batch"),
        (USERS, USERS | {"plan": {"budget": {"epsilon": 2.0, "delta": 1e-6}}},
         "plan.budget.epsilon"),
    ],
)  # fmt: skip
def test_what_an_experiment_began_with_stays(settings, play, before, after, keys):
    chosen = settings(**before)
    with pytest.raises(StateClaimed, match=f"^{keys} must stay as the experiment began"):
        play(settings(**after, begin=False), fill)
    with pytest.raises(StateClaimed, match="experiment of this file"):
        lifecycle.restore(settings(**after, begin=False))
    play(chosen, lambda service: service.status())


def test_a_database_of_another_version_is_refused(settings, play):
    chosen = settings()
    with closing(open_database(chosen).connect()) as connection:
        connection.execute("INSERT INTO versions VALUES (99)")
    with pytest.raises(StateClaimed, match="version 1; got 99"):
        play(chosen, fill)


def test_one_process_serves_a_file(settings, play):
    chosen = settings()
    if chosen.postgres:
        return

    async def scenario(service):  # noqa: ARG001
        with pytest.raises(StateClaimed, match="one process"):
            await asyncio.to_thread(play, chosen, fill)

    play(chosen, scenario)


def test_an_anchor_outlives_a_torn_line(tmp_path):
    anchor = Anchor(tmp_path / "anchor.jsonl", "test")
    anchor.create()
    write = lambda *mark: (anchor.intend(AnchorMark(*mark)), anchor.confirm([mark[1:]]))  # noqa: E731
    write(1, 0, "a")
    for torn in (b'{"intent": {"epoch": 1, "num', b'{"confirmed": [1, 1'):
        with open(anchor.path, "ab") as file:
            file.write(torn)
        with anchor.held() as book:
            assert [mark.digest for mark in book.confirmed] == ["a"]
    write(1, 1, "b")
    anchor.confirm([(0, "a"), (1, "b")])
    with anchor.held() as book:
        assert [mark.digest for mark in book.confirmed] == ["a", "b"]
        assert book.pending is None
    with pytest.raises(StateClaimed):
        anchor.confirm([(1, "another")])
    with pytest.raises(StateClaimed):
        anchor.intend(AnchorMark(1, 1, "another"))
    assert os.stat(anchor.path).st_mode & 0o777 == 0o600


def test_a_confirmation_without_its_last_byte_counts_once(tmp_path):
    anchor = Anchor(tmp_path / "anchor.jsonl", "test")
    anchor.create()
    anchor.intend(AnchorMark(1, 0, "a"))
    anchor.confirm([(0, "a")])
    anchor.path.write_bytes(anchor.path.read_bytes()[:-1])
    anchor.confirm([(0, "a")])
    anchor.intend(AnchorMark(1, 1, "b"))
    anchor.confirm([(0, "a"), (1, "b")])
    with anchor.held() as book:
        assert [mark.digest for mark in book.confirmed] == ["a", "b"]


def test_of_two_intents_the_later_one_is_confirmed(tmp_path):
    anchor = Anchor(tmp_path / "anchor.jsonl", "test")
    anchor.create()
    anchor.intend(AnchorMark(1, 0, "first"))
    anchor.intend(AnchorMark(1, 0, "second"))
    with pytest.raises(StateClaimed):
        anchor.confirm([(0, "first")])
    with pytest.raises(NotReady):  # nothing follows what may not be in the database
        anchor.intend(AnchorMark(1, 1, "third"))
    anchor.confirm([(0, "second")])


def test_a_missing_anchor_is_not_created_again(tmp_path):
    """An empty folder may be the place of a disk that is not mounted."""
    anchor = Anchor(tmp_path / "anchor.jsonl", "test")
    for write in (lambda: anchor.intend(AnchorMark(1, 0, "a")), lambda: anchor.confirm([(0, "a")])):
        with pytest.raises(FileNotFoundError):
            write()
    assert not anchor.path.exists()
