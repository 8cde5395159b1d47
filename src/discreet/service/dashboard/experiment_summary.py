"""What an experiment's first page and the list of a server both say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.releases.lift import Lift
from discreet.service.dashboard import overview_words
from discreet.service.dashboard.lift_words import Answer, answered
from discreet.service.dashboard.overview_words import Told
from discreet.service.runtime.service import Service
from discreet.service.storage import traffic_table
from discreet.service.storage.database import Connection
from discreet.service.storage.traffic_table import HOUR


@dataclass(frozen=True)
class Summary:
    """Public facts and words; ``hours`` has the decisions of each hour."""

    status: dict[str, Any]
    lift: Lift | None
    tried: str
    state: Told
    coming: Told
    helped: Answer
    began: float
    hours: dict[int, int]

    @property
    def decisions(self) -> int:
        return sum(self.hours.values())

    @property
    def latest(self) -> int:
        """Decisions of the last 24 hours."""
        since = self.status["now"] - 24 * HOUR
        return sum(count for hour, count in self.hours.items() if hour > since)

    @property
    def counted_since(self) -> int | None:
        """From when on decisions are counted, where that is later than the beginning."""
        first = min(self.hours, default=None)
        return first if first is not None and first > self.began else None


async def summary(service: Service) -> Summary:
    """Read it from the database and the newest release."""
    plan, status, lift = service.settings.plan, await service.status(), service.lift()
    began, batches, hours = await service.state.read(_facts)
    return Summary(
        status=status,
        lift=lift,
        tried=overview_words.tried(plan, status["actions"], status["n_actions"]),
        state=overview_words.state(status, service.settings.default_name),
        coming=overview_words.coming(status, service.state.slots.size(batches + 1)),
        helped=answered(lift, compared=plan.control is not None),
        began=began,
        hours=hours,
    )


def _facts(connection: Connection) -> tuple[float, int, dict[int, int]]:
    """When the experiment began, how many batches opened that were not given up, and decisions by
    the hour."""
    # The first key is made in the transaction that begins the experiment.
    began = connection.execute("SELECT min(created) FROM keys").fetchone()[0]
    kept = connection.execute("SELECT count(*) FROM batches WHERE state <> 'burned'").fetchone()[0]
    return float(began), int(kept), traffic_table.by_hour(connection)
