"""One row of a batch is a person's, however large the batch is."""

import pytest

from discreet.audit.finding import HOLDS
from discreet.audit.people import installed, one_row_each
from discreet.audit.subjects import DEFAULT_PLAN, subjects
from discreet.service.runtime import fit_process

HERE = [0.3, -0.2]


@pytest.fixture
def database():
    return "discreet.db"


def test_the_audit_asks_the_service():
    assert installed()
    assert one_row_each(subjects([DEFAULT_PLAN], [2.0])[0]).verdict == HOLDS


@pytest.mark.parametrize("rows", [63, 64, 100])
def test_a_users_later_slots_are_void_in_large_batches(rows, settings, play, released, monkeypatch):
    seen, honest = [], fit_process.private_release

    def spy(plan, noise, batch, *rest):
        seen.append((batch.records, batch.observed.any(axis=1)))
        return honest(plan, noise, batch, *rest)

    monkeypatch.setattr(fit_process, "private_release", spy)

    async def scenario(service):
        for slot in range(rows):
            name = "ann" if slot % 2 else f"person {slot}"
            each = await service.decisions.decide("caller", HERE, user=name)
            await service.decisions.observe(each.decision, 1.0)
        return await released(service)

    made = play(settings(unit="user_per_batch", plan={"first_batch": rows}), scenario)
    ((records, observed),) = seen
    assert made.latest.records == records == rows
    assert observed[::2].all()
    assert observed[1::2].sum() == observed[1] == 1
