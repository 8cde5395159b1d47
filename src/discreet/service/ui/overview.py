"""The first page: what is tried, since when, whether it helps, what comes next."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from discreet.releases.quality import quality
from discreet.service.ui import charts, overview_words
from discreet.service.ui.experiment_summary import summary
from discreet.service.ui.page_frame import Asked


async def overview(asked: Asked) -> Response:
    """The whole page; or the part that the browser asks for every few seconds."""
    service, plan = asked.service, asked.service.settings.plan
    found, ledger = await summary(service), await service.state.ledger()
    drawn: dict[str, Any] = {}
    if not asked.partial:
        told = service.state.serving.chain.deciding.as_released
        drawn = {
            "outcomes": charts.outcomes(quality(told)),
            "lift_chart": found.lift and charts.lift_so_far(found.lift),
            "traffic": charts.traffic(found.hours, found.status["now"]),
        }
    return asked.page(
        "part_overview.html" if asked.partial else "overview.html",
        found=found,
        status=found.status,
        privacy=overview_words.privacy(ledger.spent(), ledger.budget, plan.participation),
        compared=plan.control and overview_words.control(plan),
        **drawn,
    )


async def newest(asked: Asked) -> Response:
    """What a page that is open compares itself with, to say that it is out of date."""
    return JSONResponse({"newest": asked.service.state.serving.newest})
