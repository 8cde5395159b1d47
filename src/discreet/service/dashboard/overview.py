"""The first page: what is tried, since when, whether it helps, what comes next."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from discreet.releases.quality import quality
from discreet.service.dashboard import charts, overview_words
from discreet.service.dashboard.experiment_summary import summary
from discreet.service.dashboard.page_frame import PageRequest
from discreet.service.runtime.service import Service


async def overview(page: PageRequest, service: Service) -> Response:
    """The whole page; or the part that the browser asks for every few seconds."""
    plan = service.settings.plan
    found, ledger = await summary(service), await service.state.ledger()
    drawn: dict[str, Any] = {}
    if not page.partial:
        told = service.state.serving.chain.deciding.as_released
        drawn = {
            "outcomes": charts.outcomes(quality(told)),
            "lift_chart": found.lift and charts.lift_so_far(found.lift),
            "traffic": charts.traffic(found.hours, found.status["now"]),
        }
    return page.render(
        "part_overview.html" if page.partial else "overview.html",
        found=found,
        status=found.status,
        privacy=overview_words.privacy(ledger.spent(), ledger.budget, plan.participation),
        compared=plan.control and overview_words.control(plan),
        **drawn,
    )


async def newest(_page: PageRequest, service: Service) -> Response:
    """The number of the newest document, so that an open page can say that it is out of date."""
    return JSONResponse({"newest": service.state.serving.newest})
