"""History of the experiment: changes, and decisions per hour."""

from contextlib import closing

from discreet.service.runtime import lifecycle
from discreet.service.storage import document_table
from discreet.service.storage.locations import open_database

HERE = [0.3, -0.2]


async def fill(service, count):
    return [await service.decisions.decide("caller", HERE) for _ in range(count)]


def test_each_change_has_the_key_that_made_it(settings, play, released):
    async def scenario(service):
        mine = (await service.create_key(["admin"], "Ada"))["id"]
        await fill(service, 4)
        await released(service)
        await service.set_mode("shadow", mine)
        await service.set_serving(0, mine)
        other = (await service.create_key(["decide"], "shop", by=mine))["id"]
        await service.revoke_key(other, mine)
        await service.revoke_key(other, mine)  # revoked already: nothing changes
        await fill(service, 1)
        await service.burn(2, mine)
        return mine, other, await service.changes()

    mine, other, found = play(settings(), scenario)
    reported = [
        (each.what, each.by, each.label, each.document, each.details) for each in found[::-1]
    ]
    assert reported[0] == ("begun", "", "", 0, {})
    assert reported[2:] == [
        ("key created", "", "", None, {"key": mine}),
        ("released", "", "", 1, {"batch": 1}),
        ("mode changed", mine, "Ada", None, {"value": "shadow"}),
        ("serving changed", mine, "Ada", None, {"value": 0}),
        ("key created", mine, "Ada", None, {"key": other}),
        ("key revoked", mine, "Ada", None, {"key": other}),
        ("batch burned", mine, "Ada", 2, {"batch": 2}),
    ]
    assert [each.at for each in found] == sorted((each.at for each in found), reverse=True)


def test_unconfirmed_changes_are_not_listed(settings, play, released):
    async def scenario(service):
        await fill(service, 4)
        await released(service)
        both = await service.state.read(lambda c: document_table.list_changes(c, 1))
        before = await service.state.read(lambda c: document_table.list_changes(c, 0))
        assert [each.what for each in both if each not in before] == ["released"]

    play(settings(), scenario)


def test_decisions_are_counted_by_the_hour_for_all_workers(settings, play):
    chosen = settings()

    async def scenario(service):
        for each in await fill(service, 5):  # the fifth takes no slot
            await service.decisions.observe(each.decision, 0.5)
        await service.decisions.ticket()
        await service.state.store_traffic()
        await service.state.store_traffic()  # nothing new

    for _ in range(2):
        play(chosen, scenario)
    with closing(open_database(chosen).connect()) as connection:
        found = document_table.decisions_by_hour(connection)
    assert sum(found.values()) == 12
    assert all(hour % document_table.HOUR == 0 for hour in found)


def test_a_restored_backup_is_in_the_history(settings, play):
    chosen = settings()
    play(chosen, lambda service: fill(service, 3))
    lifecycle.restore(chosen)
    found = play(chosen, lambda service: service.changes())
    assert (found[0].what, found[0].document) == ("restored", 1)
