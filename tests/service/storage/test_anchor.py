"""Anchor: documents are confirmed outside the database before they are served."""

import asyncio
import json
import os
import shutil
import threading
from contextlib import suppress

import pytest

from discreet.cli.main import main
from discreet.errors import DecisionClosed, NotReady, StateClaimed
from discreet.privacy import events
from discreet.privacy.accounting import epsilon
from discreet.service.runtime import fit_process, lifecycle, release_transaction
from discreet.service.secrets.sealing import LOSS, TICKET, TOKEN, WRITTEN, DecisionIds
from discreet.service.secrets.vault import NAMES, Vault
from discreet.service.settings import Settings
from discreet.service.storage import document_table, journal
from discreet.service.storage.anchor import Anchor, AnchorMark
from discreet.service.storage.locations import anchor_of
from service.conftest import dump, set_back, toml, windows_end
from service.dashboard.visitor import Visitor
from waiting import PATIENCE

HERE = [0.3, -0.2]


async def fill(service, count, **options):
    made = [await service.decisions.decide("caller", HERE, **options) for _ in range(count)]
    for each in made:
        await service.decisions.observe(each.decision, 0.5)
    return made


def true_cost(bodies, delta):
    """ε of all releases that anybody was ever shown, for one who may have been in each."""
    shown = {body for body in bodies if json.loads(body)["kind"] == "release"}
    spent = [events.event_from_json(json.loads(body)["release"]["event"]) for body in shown]
    return epsilon(events.compose(*spent), delta)


def one_by_one(released, sizes, seen, **options):
    """A scenario: fill and release so many batches; what is published is noted in ``seen``."""

    async def scenario(service):
        for size in sizes:
            made = await fill(service, size, **options)
            assert all(each.stored for each in made)
            await released(service)
        seen.extend(await service.state.read(lambda c: document_table.after(c, -1)))
        return await service.ledger()

    return scenario


# A restore


def users(batches):
    return {"unit": "user", "batches_per_user": batches, "records_per_batch": 1}


def spy_on_fits(monkeypatch):
    """How many rows of each batch are not void."""
    seen, honest = [], fit_process.release_batch

    def spy(plan, noise, batch, *rest):
        seen.append(int(batch.observed.any(axis=1).sum()))
        return honest(plan, noise, batch, *rest)

    monkeypatch.setattr(fit_process, "release_batch", spy)
    return seen


def test_a_restore_charges_a_user_for_what_the_backup_lacks(settings, play, released, monkeypatch):
    """Two releases, a backup of before, two more: somebody may be in four, and pays for two."""
    chosen, seen = settings(**users(2)), []
    kept = dump(chosen)
    before = play(chosen, one_by_one(released, (4, 8), seen, user="ann"))
    set_back(chosen, kept)
    with pytest.raises(StateClaimed, match="run discreet restore"):
        play(chosen, fill_nothing)
    lifecycle.restore(chosen)

    counted = spy_on_fits(monkeypatch)
    ledger = play(chosen, one_by_one(released, (4, 8), seen, user="ann"))
    assert len(ledger["entries"][0]["charges"]) == 4
    assert ledger["spent"] == before["spent"]
    assert float(ledger["spent"]["epsilon"]) <= chosen.plan.budget.epsilon
    assert counted == [0, 0], "a person is in more batches than were promised"


async def fill_nothing(service):
    return await service.status()


@pytest.mark.parametrize("user", ["ann", "bob"])
def test_a_restored_registry_adds_what_it_lacks_to_everybody(
    settings, play, released, monkeypatch, user
):
    """Ann is known to the backup, which lacks one release, and Bob is not."""
    chosen, seen = settings(**users(3)), []
    play(chosen, one_by_one(released, (4,), seen, user="ann"))
    kept = dump(chosen)
    play(chosen, one_by_one(released, (8,), seen, user="ann"))
    set_back(chosen, kept)
    assert lifecycle.restore(chosen) == lifecycle.Restored(burned=[], charged=[2])
    # The kept releases go on: the next batch has the size of the second once more.
    counted = spy_on_fits(monkeypatch)
    ledger = play(chosen, one_by_one(released, (8,), seen, user=user))
    assert len(ledger["entries"][0]["charges"]) == 3
    cost = true_cost(seen, chosen.plan.budget.delta)
    assert float(ledger["spent"]["epsilon"]) == pytest.approx(cost, rel=1e-6)
    play(chosen, one_by_one(released, (16, 32), seen, user=user))
    assert counted == ([1, 0, 0] if user == "ann" else [1, 1, 0])
    text = play(chosen, fill_nothing)["text"]
    assert "lacked 1 release, which every user counts as having entered: at most 2 more" in text


def test_a_second_restore_charges_what_the_first_one_knew(settings, play, released, monkeypatch):
    chosen, seen = settings(**users(3)), []
    kept = dump(chosen)
    for count in (1, 2):
        play(chosen, one_by_one(released, (4,), seen, user="ann"))
        set_back(chosen, kept)
        lost = lifecycle.restore(chosen).charged
        assert len(lost) == count
    counted = spy_on_fits(monkeypatch)
    ledger = play(chosen, one_by_one(released, (4,), seen, user="ann"))
    assert len(ledger["entries"][0]["charges"]) == 3
    assert counted == [1]
    assert play(chosen, fill_nothing)["participation"]["missed"] == 2
    cost = true_cost(seen, chosen.plan.budget.delta)
    assert float(ledger["spent"]["epsilon"]) == pytest.approx(cost, rel=1e-6)


def test_releases_that_two_restores_lost_add_up(settings, play, released):
    """The second backup is of after the first restore, and knows what that one missed."""
    chosen, seen = settings(**users(4)), []
    kept = dump(chosen)
    for missed in (1, 2):
        play(chosen, one_by_one(released, (4,), seen, user="ann"))
        set_back(chosen, kept)
        assert len(lifecycle.restore(chosen).charged) == 1
        assert play(chosen, fill_nothing)["participation"]["missed"] == missed
        kept = dump(chosen)


def test_a_restore_leaves_no_key_of_a_batch_that_it_does_not_know(settings, play, released):
    """Copies of these rows may be anywhere; with the keys nobody can read them."""
    chosen, seen = settings(), []
    kept = dump(chosen)

    async def open_one(service):
        await fill(service, 2)

    play(chosen, one_by_one(released, (4,), seen))
    play(chosen, open_one)
    vault = Vault(chosen.place(chosen.vault))
    assert vault.batches() == [(1, 2)]
    assert vault.batches(NAMES) == [(1, 1), (1, 2)]
    set_back(chosen, kept)
    lifecycle.restore(chosen)
    assert vault.batches() == []
    assert vault.batches(NAMES) == []


# Nobody is shown what the anchor does not confirm

API = (
    "/v1/releases/1",
    "/v1/releases/current",
    "/v1/releases",
    "/v1/ledger",
    "/v1/status",
    "/v1/changes",
)
PAGES = (
    *("/ui", "/ui/batches", "/ui/releases", "/ui/releases/1", "/ui/releases/1/document"),
    *("/ui/ledger", "/ui/explorer", "/ui/explorer?release=1", "/ui/settings", "/metrics"),
    *("/ui/history", "/ui/newest"),
)


async def read_everywhere(service, key):
    """The text of every answer that could tell of a document."""
    visitor = Visitor(service)
    assert (await visitor.log_in(key)).status == 303
    found = {}
    for path in (*API, *PAGES):
        reply = await visitor.get(path, authorization=f"Bearer {key}")
        found[path] = reply
    return found


def test_what_is_committed_and_not_confirmed_is_shown_nowhere(settings, play, monkeypatch):
    chosen = settings()

    def away(*_):
        raise OSError("the disk is away")

    async def scenario(service):
        await fill(service, 4)
        before = await read_everywhere(service, settings.key())
        await windows_end(service)
        with monkeypatch.context() as patched:
            patched.setattr(Anchor, "confirm", away)
            with pytest.raises(OSError, match="away"):
                await service.upkeep.once()
            found = await read_everywhere(service, settings.key())
            digest = (await service.state.read(document_table.committed))[1][1]
            body = (await service.state.read(document_table.newest)).decode()
            with pytest.raises(OSError, match="away"):
                await service.decisions.decide("caller", HERE)
        for path, reply in found.items():
            assert reply.status in (before[path].status, 503), path
            for secret in (digest, json.loads(body)["signature"], '"kind":"release"'):
                assert secret not in reply.text, path
        assert found["/ui/releases/1/document"].status == 404
        assert found["/v1/releases/1"].status == 503
        assert "released" not in found["/v1/changes"].text
        assert json.loads(found["/v1/ledger"].text)["entries"] == []
        assert "discreet_epsilon_spent 0.0" in found["/metrics"].text
        assert "All 1 signed entries verify" in found["/ui/releases"].text
        await service.upkeep.once()
        found = await read_everywhere(service, settings.key())
        assert found["/ui/releases/1/document"].text == body
        assert "released" in found["/v1/changes"].text
        assert float(json.loads(found["/v1/ledger"].text)["spent"]["epsilon"]) > 0.5
        # Those who asked meanwhile have cost no slot.
        assert [each.stored for each in await fill(service, 8)] == [True] * 8

    play(chosen, scenario)


def test_another_document_under_a_confirmed_number_is_not_served(settings, play, released):
    chosen = settings()

    async def scenario(service):
        await fill(service, 4)
        await released(service)
        other = (await service.state.read(document_table.newest)).replace(
            b'"records":4', b'"records":5'
        )
        await service.state.write(
            lambda c: c.execute("UPDATE documents SET body = ? WHERE number = 1", (other,)) and None
        )
        found = await read_everywhere(service, settings.key())
        assert found["/v1/releases/1"].status == 503
        assert found["/ui/releases/1/document"].status == 503
        assert not any('"records":5' in reply.text for reply in found.values())

    play(chosen, scenario)


def test_a_revoked_key_ends_while_the_anchor_is_away(settings, play, monkeypatch):
    async def scenario(service):
        made = await service.create_key(["decide"], "shop")
        await fill(service, 4)
        await windows_end(service)

        def away(*_):
            raise OSError("the disk is away")

        monkeypatch.setattr(Anchor, "confirm", away)
        with pytest.raises(OSError, match="away"):
            await service.upkeep.once()
        with pytest.raises(OSError, match="away"):
            await service.revoke_key(made["id"])
        assert service.state.keys[made["id"]].revoked is not None

    play(settings(), scenario)


# Crashes and restores around an intent


def unconfirmed(settings, play, monkeypatch):
    """A release that is committed, and whose confirmation never came; its rows as they were."""

    async def to_the_brim(service):
        await fill(service, 4)

    play(settings, to_the_brim)
    kept = dump(settings)

    def away(*_):
        raise OSError("the disk is away")

    async def scenario(service):
        await windows_end(service)
        with monkeypatch.context() as patched:
            patched.setattr(Anchor, "confirm", away)
            with pytest.raises(OSError, match="away"):
                await service.upkeep.once()
        return await service.state.read(document_table.newest)

    return kept, play(settings, scenario)


async def first_release(service):
    await windows_end(service)
    for _ in range(10):
        await service.upkeep.once()
        if service.state.serving.newest == 1:
            return await service.state.document(1)
    raise AssertionError("no release was made")


def test_a_committed_document_is_confirmed_at_the_next_start(settings, play, monkeypatch):
    chosen = settings()
    _, body = unconfirmed(chosen, play, monkeypatch)
    assert play(chosen, first_release) == body


def test_a_beginning_that_was_cut_short_can_be_served(settings, play, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Anchor, "confirm", killed)
        with pytest.raises(KeyboardInterrupt):
            settings()
    assert play(settings(begin=False), fill_nothing)["newest"] == 0


def test_without_the_anchor_nothing_is_fitted(settings, play, monkeypatch):
    """Each attempt would draw a noise in vain."""
    chosen, fits = settings(), []
    monkeypatch.setattr(fit_process, "fit", lambda *place: fits.append(place))

    async def scenario(service):
        await fill(service, 4)
        await windows_end(service)
        anchor_of(chosen).path.unlink()
        for _ in range(3):
            with pytest.raises(FileNotFoundError):
                await service.upkeep.once()

    play(chosen, scenario)
    assert fits == []


def test_an_anchor_that_was_edited_is_refused(settings, play):
    chosen = settings()
    path = anchor_of(chosen).path
    whole = path.read_text()
    header, intent, confirmed = whole.splitlines()
    for wrong in (
        [header, confirmed],
        [header, intent, confirmed, confirmed],
        [header, intent, confirmed.replace("[1, 0", "[1, 1")],
        [header, '{"intent": {"number": 0}}', confirmed],
        [header, '{"intent": 3}', confirmed],
        [intent, confirmed],
        [header],
        [],
    ):
        path.write_text("".join(f"{line}\n" for line in wrong))
        with pytest.raises(StateClaimed):
            play(chosen, fill_nothing)
    path.write_text(whole)
    play(chosen, fill_nothing)


def test_a_lost_commit_is_fitted_again_and_served_once(settings, play, monkeypatch):
    """What was never confirmed was never served, so its batch may have another noise."""
    chosen = settings()
    kept, lost = unconfirmed(chosen, play, monkeypatch)
    gone = dump(chosen)
    set_back(chosen, kept)
    body = play(chosen, first_release)
    assert body != lost
    # And the one that nobody saw cannot come back.
    set_back(chosen, gone)
    with pytest.raises(StateClaimed, match="run discreet restore"):
        play(chosen, fill_nothing)
    assert lifecycle.restore(chosen) == lifecycle.Restored(burned=[1], charged=[1])
    ledger = play(chosen, lambda service: service.ledger())
    assert len(ledger["entries"][0]["charges"]) == 1
    assert lost not in play(chosen, lambda s: s.state.read(lambda c: document_table.after(c, -1)))


def test_an_anchor_that_is_older_than_its_database_is_refused(settings, play, released):
    chosen, seen = settings(), []
    old = anchor_of(chosen).path.read_bytes()
    play(chosen, one_by_one(released, (4, 8), seen))
    anchor_of(chosen).path.write_bytes(old)
    with pytest.raises(StateClaimed, match="older than the database"):
        play(chosen, fill_nothing)
    assert lifecycle.restore(chosen).charged == []
    ledger = play(chosen, lambda service: service.ledger())
    assert len(ledger["entries"][0]["charges"]) == 2
    with anchor_of(chosen).held() as book:
        assert [mark.number for mark in book.confirmed] == [0, 1, 2, 3]
        assert [mark.charge is not None for mark in book.confirmed] == [False, True, True, False]


def test_a_lost_anchor_is_replaced_only_on_request(settings, play, released):
    chosen, seen = settings(), []
    kept = dump(chosen)
    play(chosen, one_by_one(released, (4,), seen))
    set_back(chosen, kept)
    lifecycle.restore(chosen)  # document 1 is in the anchor alone from here on
    with pytest.raises(StateClaimed, match="anchor must be new"):
        lifecycle.restore(chosen, anchor_lost=True)
    anchor_of(chosen).path.unlink()
    for refused in (lambda: play(chosen, fill_nothing), lambda: lifecycle.restore(chosen)):
        with pytest.raises(StateClaimed, match="anchor must be at"):
            refused()
    lifecycle.restore(chosen, anchor_lost=True)
    ledger = play(chosen, one_by_one(released, (4,), seen))
    assert len(ledger["entries"][0]["charges"]) == 2
    with anchor_of(chosen).held() as book:
        assert [mark.number for mark in book.confirmed] == [0, 1, 2, 3, 4]


def test_an_anchor_of_a_namesake_is_refused(settings, play, released, tmp_path):
    chosen, seen = settings(), []
    play(chosen, one_by_one(released, (4,), seen))
    other = Anchor(tmp_path / "other.jsonl", chosen.experiment)
    other.create()
    other.intend(AnchorMark(1, 0, "0" * 64))
    other.confirm([(0, "0" * 64)])
    other.path.rename(anchor_of(chosen).path)
    for refused in (lambda: play(chosen, fill_nothing), lambda: lifecycle.restore(chosen)):
        with pytest.raises(StateClaimed):
            refused()


def test_a_folder_that_is_put_back_is_refused(database, play, released, tmp_path, capsys):
    """Database, vault and settings of before the release; ``--init`` put the anchor elsewhere."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "experiment.toml").write_text(toml(database=database))
    assert main(["serve", "--init", "--config", str(folder / "experiment.toml")]) == 0
    capsys.readouterr()
    chosen = Settings.read(folder / "experiment.toml")

    async def half(service):
        await fill(service, 2)

    play(chosen, half)
    kept = dump(chosen)
    shutil.copytree(folder, tmp_path / "snapshot")

    async def rest(service):
        await fill(service, 2)
        await released(service)

    play(chosen, rest)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "snapshot", folder)
    if chosen.postgres:
        set_back(chosen, kept)
    with pytest.raises(StateClaimed, match="run discreet restore"):
        play(chosen, rest)


def test_an_intent_and_a_confirmation_are_on_the_disk(tmp_path, monkeypatch):
    """Whole, when the call returns; also what another process wrote and did not sync."""
    anchor = Anchor(tmp_path / "anchor.jsonl", "test")
    anchor.create()
    synced, honest = [], os.fsync

    def sync(file):
        honest(file)
        synced.append((os.fstat(file).st_ino, os.fstat(file).st_size))

    monkeypatch.setattr(os, "fsync", sync)
    for change in (
        lambda: anchor.intend(AnchorMark(1, 0, "a")),
        lambda: anchor.intend(AnchorMark(1, 0, "a")),
        lambda: anchor.confirm([(0, "a")]),
        lambda: anchor.confirm([(0, "a")]),
    ):
        synced.clear()
        change()
        found = anchor.path.stat()
        assert synced == [(found.st_ino, found.st_size)]


def test_processes_that_share_an_anchor_write_it_in_turn(tmp_path):
    anchor = Anchor(tmp_path / "anchor.jsonl", "test")
    anchor.create()

    def publish():
        mine = Anchor(anchor.path, "test")
        for number in range(20):
            with suppress(NotReady, StateClaimed):
                mine.intend(AnchorMark(1, number, str(number)))
            with suppress(StateClaimed):
                mine.confirm([(each, str(each)) for each in range(number + 1)])

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with anchor.held() as book:
        assert [mark.number for mark in book.confirmed] == list(range(20))


# Slots that are handed out twice


@pytest.mark.parametrize("kind", [WRITTEN, TOKEN, TICKET])
def test_ids_of_a_lost_lease_reach_no_other_slot(settings, play, kind):
    chosen = settings(window=60, lease=1, journal="observe" if kind == TOKEN else "decide")
    record = {"context": HERE, "action": 1} if kind == TICKET else {}

    async def take(service):
        if kind == TICKET:
            return (await service.decisions.ticket()).ticket
        return (await service.decisions.decide("caller", HERE)).decision

    play(chosen, take)
    kept = dump(chosen)
    before = play(chosen, take)
    set_back(chosen, kept)

    async def scenario(service):
        mine = await take(service)
        ids = DecisionIds(Vault(chosen.place(chosen.vault)).mac)
        old, new = ids.read(before), ids.read(mine)
        assert old.kind == new.kind == kind
        assert (old.batch, old.slot) == (new.batch, new.slot), "the slot was not handed out twice"
        with pytest.raises(DecisionClosed):
            await service.decisions.observe(before, 1.0, **record)
        if kind == WRITTEN:
            with pytest.raises(DecisionClosed):
                await service.decisions.activate(before)
        received = "SELECT count(*) FROM answers"
        assert await service.state.read(lambda c: c.execute(received).fetchone()[0]) == 0
        assert await service.decisions.observe(mine, 0.25, **record)

    play(chosen, scenario)


def test_in_one_group_each_item_needs_a_lease_of_its_own(settings, play):
    async def scenario(service):
        state = service.state
        ids = DecisionIds(state.vault.mac)
        made = await service.decisions.decide("caller", HERE)
        _, epoch, batch, slot, lease, _ = ids.read(made.decision)
        item = journal.ObservationItem(epoch, batch, slot, LOSS, b"first", lease)
        lost = item._replace(slot=slot + 1, lease=b"lost it.")
        again = item._replace(payload=b"again")
        group = [item, lost, again, item._replace(slot=slot + 1, payload=b"other")]
        made = await state.write(lambda c: state.journal.observe(c, group))
        earlier = journal.EarlierItem(epoch, batch, slot, b"first")
        assert made == [journal.KEPT, journal.OVER, earlier, journal.KEPT]
        made = await state.write(lambda c: state.journal.observe(c, [again, lost]))
        assert made == [earlier, journal.OVER]
        kept = "SELECT slot, payload FROM answers ORDER BY slot"
        rows = await state.read(lambda c: c.execute(kept).fetchall())
        assert rows == [(slot, b"first"), (slot + 1, b"other")]

    play(settings(window=60), scenario)


# The moment of a release


def test_the_work_of_a_release_does_not_depend_on_answers(settings, play, released, monkeypatch):
    """No statement between the claim at the due time and the commit touches a person's row."""
    stated = []
    honest = release_transaction.Publisher._write

    class Noted:
        def __init__(self, connection):
            self._connection = connection

        def execute(self, sql, parameters=()):
            stated.append(" ".join(sql.split()))
            return self._connection.execute(sql, parameters)

    monkeypatch.setattr(
        release_transaction.Publisher,
        "_write",
        lambda self, connection, *rest: honest(self, Noted(connection), *rest),
    )

    async def scenario(service):
        await fill(service, 4)
        await released(service)

    play(settings(), scenario)
    assert stated
    assert not [sql for sql in stated for name in journal.ROWS_OF_PEOPLE if name in sql.split()]


def test_deleting_rows_does_not_delay_what_is_served(settings, play, released, monkeypatch):
    """However long it takes to delete them, the release is there when it is due."""
    seen = threading.Event()

    def slow(honest):
        def wait(*arguments, **options):
            assert seen.wait(PATIENCE), "rows were deleted before the release could be seen"
            return honest(*arguments, **options)

        return wait

    for module in (release_transaction, journal):
        for name in ("forget", "forget_slots"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, slow(getattr(module, name)))

    async def scenario(service):
        await fill(service, 4)
        making = asyncio.create_task(released(service))
        while service.state.serving.newest == 0 and not making.done():
            await asyncio.sleep(0.01)
        served = service.state.serving.newest
        seen.set()
        await making
        assert served == 1
        for table in journal.ROWS_OF_PEOPLE:
            count = f"SELECT count(*) FROM {table}"
            assert await service.state.read(lambda c, q=count: c.execute(q).fetchone()[0]) == 0

    play(settings(), scenario)


def test_rows_of_a_long_batch_are_deleted_in_slices(settings, play, released, monkeypatch):
    """The number of slices is public: it is the size of the batch, whoever answered."""
    monkeypatch.setattr(journal, "SLICE", 3)
    sizes, honest = [], journal.forget_slots

    def noted(connection, epoch, batch, slots):
        sizes.append(slots)
        honest(connection, epoch, batch, slots)

    monkeypatch.setattr(journal, "forget_slots", noted)

    async def scenario(service):
        await fill(service, 8)
        await released(service)
        tables = (*journal.ROWS_OF_PEOPLE, "leases")
        counts = [f"SELECT count(*) FROM {table}" for table in tables]
        return [await service.state.read(lambda c, q=q: c.execute(q).fetchone()[0]) for q in counts]

    assert play(settings(plan={"first_batch": 8}), scenario) == [0] * 5
    assert sizes == [range(0, 3), range(3, 6), range(6, 9)]
