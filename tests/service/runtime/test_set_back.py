"""A database that is set back, or replaced, while workers serve it: noticed, refused, charged."""

import os
import shutil
from contextlib import closing

import pytest

from discreet.errors import StateClaimed
from discreet.service.runtime import lifecycle
from discreet.service.runtime.service import Service
from discreet.service.secrets.vault import NAMES
from discreet.service.storage.anchor import Anchor
from discreet.service.storage.batches import under_way
from discreet.service.storage.locations import anchor_of, open_database
from service.conftest import dump, set_back, time_passes
from service.dashboard.visitor import Visitor
from service.runtime.test_readiness import at_fault

HERE = [0.3, -0.2]


async def fill(service, count):
    made = [await service.decisions.decide("caller", HERE) for _ in range(count)]
    for each in made:
        await service.decisions.observe(each.decision, 0.5)
    return made


async def looks(service):
    """What the background does; it reports the fault and goes on."""
    with pytest.raises(StateClaimed, match="must hold everything"):
        await service.state.refresh()
    with pytest.raises(StateClaimed, match="must hold everything"):
        await service.upkeep.once()


async def nothing_is_taken(service, earlier):
    """No decision, ticket, answer or activation is accepted; what is read tells the whole cost."""
    for requested in (
        service.decisions.decide("caller", HERE),
        service.decisions.ticket(),
        service.decisions.observe(earlier.decision, 0.5),
        service.decisions.activate(earlier.decision),
    ):
        with pytest.raises(StateClaimed, match="run discreet restore"):
            await requested


def rows(settings):
    return {name: len(rows) for name, rows in dump(settings).items()}


def test_a_database_that_is_set_back_under_a_worker_is_reported(settings, play, released):
    chosen = settings(journal="decide")

    async def scenario(service):
        await fill(service, 4)
        kept = dump(chosen)
        await released(service)
        earlier = (await fill(service, 1))[0]
        assert await at_fault(service) == []
        before, spent = dump(chosen), (await service.ledger())["spent"]
        assert float(spent["epsilon"]) > 0.5

        set_back(chosen, kept)
        keys = service.state.vault.batches(), service.state.vault.batches(NAMES)
        # Not even before the next look at the database.
        with pytest.raises(StateClaimed):
            await service.decisions.decide("caller", HERE)
        with pytest.raises(StateClaimed):
            await service.decisions.observe(earlier.decision, 0.5)
        assert (await service.ledger())["spent"] == spent
        await looks(service)
        assert await at_fault(service) == ["chain"]
        assert service.state.unready == {"chain": "set back"}
        await nothing_is_taken(service, earlier)
        ledger = await service.ledger()
        assert ledger["spent"] == spent
        assert [each["partition"] for each in ledger["entries"][0]["charges"]] == [
            "batch 1 of epoch 1"
        ]
        assert rows(chosen) == {name: len(rows) for name, rows in kept.items()}
        assert (service.state.vault.batches(), service.state.vault.batches(NAMES)) == keys
        status = await service.status()
        assert "discreet restore" in status["text"]
        assert not status["ready"]

        set_back(chosen, before)  # the first server is back
        await service.state.refresh()
        assert await at_fault(service) == []
        assert await service.decisions.observe(earlier.decision, 0.5)
        # One slot is void: the decision that was refused before the look had taken it.
        assert [each.stored for each in await fill(service, 7)] == [True] * 6 + [False]
        await released(service)
        assert service.newest == 2

    play(chosen, scenario)


def test_what_another_worker_confirmed_is_charged_too(settings, play, released):
    """A worker that never saw the release reads it in the anchor."""
    chosen = settings()

    async def scenario(service):
        other = Service(chosen)
        await other.start(upkeep=False)
        try:
            await fill(service, 4)
            kept = dump(chosen)
            await released(service)
            spent = (await service.ledger())["spent"]
            assert other.newest == 0
            set_back(chosen, kept)
            assert (await other.ledger())["spent"] == spent
            with pytest.raises(StateClaimed):
                await other.state.refresh()
            assert await at_fault(other) == ["chain"]
            with pytest.raises(StateClaimed):
                await other.decisions.decide("caller", HERE)
        finally:
            await other.stop()

    if chosen.postgres:
        play(chosen, scenario)


def test_another_experiment_at_the_same_address_is_refused(settings, play, released):
    """As when a name leads to another server: nothing of ours is destroyed, nothing is written."""
    chosen = settings()

    async def scenario(service):
        await fill(service, 4)
        mine = dump(chosen)
        await service.state.refresh()
        keys = service.state.vault.batches()
        assert keys
        other = {
            name: [
                tuple("0" * 64 if column == mine["documents"][0][4] else column for column in row)
                for row in rows
            ]
            for name, rows in mine.items()
        }
        # The other one was restored before: its batches have a later epoch.
        (row,) = other["experiment"]
        other["experiment"] = [(*row[:3], row[3] + 1, *row[4:])]
        set_back(chosen, other)
        await looks(service)
        assert service.state.unready == {"chain": "set back"}
        assert service.state.vault.batches() == keys
        set_back(chosen, mine)
        await released(service)
        assert service.newest == 1

    play(chosen, scenario)


def test_a_restore_under_running_workers_is_followed(settings, play, released):
    """PostgreSQL: the command can run while workers wait for it."""
    chosen = settings()
    if not chosen.postgres:
        return

    async def scenario(service):
        await fill(service, 4)
        kept = dump(chosen)
        await released(service)
        spent = (await service.ledger())["spent"]
        set_back(chosen, kept)
        await looks(service)
        assert lifecycle.restore(chosen).charged == [1]
        await service.state.refresh()
        assert await at_fault(service) == []
        assert (await service.ledger())["spent"] == spent
        assert [each.stored for each in await fill(service, 4)] == [True] * 4
        await released(service)
        assert service.newest == 3
        assert service.state.epoch == 2

    play(chosen, scenario)


def test_a_restore_that_was_cut_short_is_no_database_that_was_set_back(
    settings, play, released, monkeypatch
):
    """It is committed and not confirmed; the document before it is lost, and known to be."""
    chosen = settings()
    kept = dump(chosen)

    async def publish(service):
        await fill(service, 4)
        await released(service)

    play(chosen, publish)
    set_back(chosen, kept)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Anchor, "confirm", killed)
        with pytest.raises(KeyboardInterrupt):
            lifecycle.restore(chosen)

    async def goes_on(service):
        assert await at_fault(service) == []
        assert service.newest == 2
        await publish(service)
        assert len((await service.ledger())["entries"][0]["charges"]) == 2

    play(chosen, goes_on)


def test_the_clock_writes_nothing_to_a_database_that_was_set_back(settings, play, released):
    chosen = settings(plan={"close_every": "7d", "first_batch": 4})

    async def scenario(service):
        await service.decisions.decide("caller", HERE)
        kept = dump(chosen)
        await fill(service, 3)
        await released(service)
        set_back(chosen, kept)
        await looks(service)
        time_passes(chosen, 7 * 24 * 3600)
        await service.upkeep.seal_by_clock()
        with closing(open_database(chosen).connect()) as connection:
            assert [each.state for each in under_way(connection)] == ["open"]

    play(chosen, scenario)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_a_file_that_is_replaced_under_the_service(settings, play, released, tmp_path, how):
    """The process would write to a file without a name: everything after that would be lost."""
    chosen = settings(journal="decide")
    path = chosen.place(chosen.database)

    async def scenario(service):
        await fill(service, 4)
        await released(service)
        earlier = (await fill(service, 1))[0]
        spent = (await service.ledger())["spent"]
        shutil.copy(path, tmp_path / "copy")
        os.rename(path, tmp_path / "away")
        if how == "replaced":
            os.rename(tmp_path / "copy", path)
        with pytest.raises(StateClaimed, match="must stay the file"):
            await service.decisions.decide("caller", HERE)
        with pytest.raises(StateClaimed, match="must stay the file"):
            await service.decisions.observe(earlier.decision, 0.5)
        with pytest.raises(StateClaimed, match="must stay the file"):
            await service.state.refresh()
        assert await at_fault(service) == ["chain"]
        assert service.state.unready == {"chain": "file replaced"}
        assert (await service.ledger())["spent"] == spent
        assert path.exists() == (how == "replaced"), "an empty database was made"
        os.rename(tmp_path / "away", path)
        await service.state.refresh()
        assert await at_fault(service) == []
        assert await service.decisions.observe(earlier.decision, 0.5)

    play(chosen, scenario)


def test_an_anchor_that_cannot_be_read_or_was_set_back_is_reported(settings, play, released):
    """Decisions go on: the service still knows what it has published."""
    chosen = settings()
    anchor = anchor_of(chosen).path
    away = anchor.with_name("away")

    async def scenario(service):
        await fill(service, 4)
        old = anchor.read_bytes()
        await released(service)
        kept = dump(chosen)
        anchor.rename(away)
        await service.state.refresh()
        assert service.state.anchor_fault == "ENOENT"
        assert "The anchor cannot be read (ENOENT)" in (await service.status())["text"]
        assert await at_fault(service) == []
        anchor.write_bytes(old)
        await service.state.refresh()
        assert service.state.anchor_fault == "behind"
        assert "newest anchor" in (await service.status())["text"]
        assert (await service.decisions.decide("caller", HERE)).stored
        # A database that is set back meanwhile is noticed all the same.
        now = dump(chosen)
        kept["documents"] = kept["documents"][:1]
        set_back(chosen, kept)
        with pytest.raises(StateClaimed):
            await service.state.refresh()
        set_back(chosen, now)
        away.rename(anchor)
        await service.state.refresh()
        assert service.state.anchor_fault is None
        assert "nchor" not in (await service.status())["text"].replace("The anchor is", "")

    play(chosen, scenario)


def test_an_operator_reads_what_is_wrong_and_what_to_do(settings, play, released):
    """From the alert of the first page, and from the page that it leads to."""
    chosen = settings()
    anchor = anchor_of(chosen).path

    async def scenario(service):
        visitor = Visitor(service)
        assert (await visitor.log_in(settings.key())).status == 303
        await fill(service, 4)
        kept = dump(chosen)
        await released(service)
        assert "An operator should look" not in (await visitor.get("/ui")).text
        now = dump(chosen)
        set_back(chosen, kept)
        await looks(service)
        for page in ("/ui", "/ui/batches"):
            text = (await visitor.get(page)).text
            assert 'role="alert"' in text, page
            assert "The database lacks what was published" in text, page
            assert "discreet restore" in text, page
        stranger = await Visitor(service).ask("POST", "/ui/login", {"key": "none"})
        assert (stranger.status, "Request refused" in stranger.text) == (403, True)
        assert "The database lacks" not in stranger.text  # nobody without a key reads it
        set_back(chosen, now)
        await service.state.refresh()

        vault = chosen.place(chosen.vault)
        shutil.move(vault, vault.with_name("away"))
        await service.upkeep.watch()
        for page in ("/ui", "/ui/batches"):
            text = (await visitor.get(page)).text
            assert "put the vault back" in text, page
        shutil.move(vault.with_name("away"), vault)
        await service.upkeep.watch()

        anchor.rename(anchor.with_name("away"))
        await service.state.refresh()
        for page in ("/ui", "/ui/batches"):
            text = (await visitor.get(page)).text
            assert 'role="alert"' in text, page
            assert "The anchor cannot be read (ENOENT)" in text, page
        anchor.with_name("away").rename(anchor)
        await service.state.refresh()
        assert 'role="alert"' not in (await visitor.get("/ui/batches")).text

        # Pages that cannot be read say it as well: the words need no database.
        await service.state.write(
            lambda c: c.execute("ALTER TABLE experiment RENAME TO x") and None
        )
        with pytest.raises(service.state.database.lost):
            await service.state.refresh()
        reply = await visitor.get("/ui/batches")
        assert reply.status == 503
        assert "The database cannot be read" in reply.text
        await service.state.write(
            lambda c: c.execute("ALTER TABLE x RENAME TO experiment") and None
        )

    play(chosen, scenario)
