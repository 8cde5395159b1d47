"""A service is not ready when a decision would fail, and ready again by itself."""

import shutil

import pytest

from discreet.errors import DiscreetError, ServiceError
from discreet.service.http.handlers import Call, ExperimentHandlers

HERE = [0.3, -0.2]


async def at_fault(service):
    await service.upkeep.watch()
    if not service.state.unready:
        assert (await ExperimentHandlers(service, None).readyz(Call("public"))) == {
            "status": "ready"
        }
        return []
    with pytest.raises(ServiceError, match="must be able to decide") as error:
        await ExperimentHandlers(service, None).readyz(Call("public"))
    assert error.value.status == 503
    return list(service.state.unready)


def test_a_vault_that_is_gone_or_lacks_a_key(settings, play):
    chosen = settings(window=60)
    vault = chosen.place(chosen.vault)
    away = vault.with_name("away")

    async def scenario(service):
        assert await at_fault(service) == []
        shutil.move(vault, away)
        assert await at_fault(service) == ["vault"]
        with pytest.raises((DiscreetError, OSError)):
            await service.decisions.decide("caller", HERE)  # it would open a batch
        shutil.move(away, vault)
        assert (await service.decisions.decide("caller", HERE)).stored
        await service.state.refresh()
        assert await at_fault(service) == []
        shutil.move(vault / "batch-1-1.key", away)
        assert await at_fault(service) == ["vault"]
        shutil.move(away, vault / "batch-1-1.key")
        assert await at_fault(service) == []

    play(chosen, scenario)


def test_a_database_that_takes_no_row_or_cannot_be_read(settings, play):
    async def scenario(service):
        await service.state.write(
            lambda c: c.execute("ALTER TABLE experiment RENAME TO x") and None
        )
        with pytest.raises(service.state.database.lost):
            await service.state.refresh()
        with pytest.raises(service.state.database.lost):
            await service.decisions.decide("caller", HERE)
        assert await at_fault(service) == ["database", "storage"]
        await service.state.write(
            lambda c: c.execute("ALTER TABLE x RENAME TO experiment") and None
        )
        await service.state.refresh()
        assert await at_fault(service) == []

    play(settings(window=60), scenario)


def test_a_chain_that_is_incomplete(settings, play):
    async def scenario(service):
        service.state.whole = False
        assert await at_fault(service) == ["chain"]

    play(settings(window=60), scenario)
