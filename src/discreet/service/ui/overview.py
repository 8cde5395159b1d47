"""The first page: what is tried, since when, whether it helps, what comes next."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from discreet.releases.quality import quality
from discreet.service.storage import traffic_table
from discreet.service.storage.database import Connection
from discreet.service.storage.traffic_table import HOUR
from discreet.service.ui import charts, overview_words
from discreet.service.ui.lift_words import answer
from discreet.service.ui.page_frame import Asked


async def overview(asked: Asked) -> Response:
    """The whole page; or the part that the browser asks for every few seconds."""
    service, plan = asked.service, asked.service.settings.plan
    found, ledger = await service.status(), await service.state.ledger()
    began, batches, hours = await service.state.read(_facts)
    lift = service.lift()
    drawn: dict[str, Any] = {}
    if not asked.partial:
        told = service.state.serving.chain.deciding.as_released
        drawn = {
            "outcomes": charts.outcomes(quality(told)),
            "lift_chart": lift and charts.lift_so_far(lift),
            "traffic": charts.traffic(hours, found["now"]),
        }
    return asked.page(
        "part_overview.html" if asked.partial else "overview.html",
        status=found,
        plan=plan,
        tried=overview_words.tried(plan, found["actions"], found["n_actions"]),
        state=overview_words.state(found, service.settings.default_name),
        coming=overview_words.coming(found, service.state.slots.size(batches + 1)),
        privacy=overview_words.privacy(ledger.spent(), ledger.budget, plan.participation),
        helped=lift and answer(lift),
        compared=plan.control and overview_words.control(plan),
        began=began,
        decisions=sum(hours.values()),
        latest=sum(count for hour, count in hours.items() if hour > found["now"] - 24 * HOUR),
        counted_since=min(hours) if hours and min(hours) > began else None,
        **drawn,
    )


def _facts(connection: Connection) -> tuple[float, int, dict[int, int]]:
    """When the experiment began, how many batches opened that were not given up, and decisions by
    the hour."""
    # The first key is made in the transaction that begins the experiment.
    began = connection.execute("SELECT min(created) FROM keys").fetchone()[0]
    kept = connection.execute("SELECT count(*) FROM batches WHERE state <> 'burned'").fetchone()[0]
    return float(began), int(kept), traffic_table.by_hour(connection)


async def newest(asked: Asked) -> Response:
    """What a page that is open compares itself with, to say that it is out of date."""
    return JSONResponse({"newest": asked.service.state.serving.newest})
