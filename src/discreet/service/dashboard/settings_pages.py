"""Pages where an administrator changes settings, and exact figures on this machine."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import Response

from discreet.errors import InvalidInput
from discreet.service.dashboard import page_data
from discreet.service.dashboard.page_frame import PageRequest
from discreet.service.runtime.service import Service
from discreet.service.runtime.status import control_words
from discreet.service.settings import MODES

DONE = {
    "mode": "The experiment was set to another mode.",
    "serving": "Another release decides now.",
    "burn": "The batch was given up and its rows were erased.",
}


async def settings(page: PageRequest, service: Service) -> Response:
    done = page.given("done")
    links = service.state.serving.chain.links
    return page.render(
        "settings.html",
        status=await service.status(),
        settings=service.settings,
        default_action=service.settings.default_name,
        control=control_words(service.settings.plan) or "none",
        modes=MODES,
        alias=service.state.alias,
        names=dict(reversed(page_data.document_names(links).items())),
        done=DONE.get(done, ""),
    )


async def set_mode(page: PageRequest, service: Service) -> Response:
    await service.set_mode(page.given("mode"), page.by)
    return _done(page, "mode")


async def set_serving(page: PageRequest, service: Service) -> Response:
    text = page.given("release")
    await service.set_serving(None if text == "newest" else _whole("release", text), page.by)
    return _done(page, "serving")


async def burn(page: PageRequest, service: Service) -> Response:
    """Only with the number of the batch typed again: nothing brings its rows back."""
    if page.given("batch") != page.given("typed").strip():
        raise InvalidInput(
            "batch must be confirmed by typing its number; the numbers differ. Nothing was burned."
        )
    await service.burn(_whole("batch", page.given("batch")), page.by)
    return _done(page, "burn")


async def exact(page: PageRequest, _service: Service) -> Response:
    """Requests of all routes by status, with the same protection as /internal/metrics."""
    request = page.request
    host = request.client.host if request.client else ""
    return page.render("exact.html", rows=_rows(page.metrics.internal(host).decode()))


def _rows(text: str) -> list[dict[str, Any]]:
    """Route, status, requests and mean seconds, from the text for Prometheus."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = sample.labels
            if "route" in labels and sample.name.endswith(("_count", "_sum")):
                row = found.setdefault((labels["route"], labels["status"]), {})
                row[sample.name.rpartition("_")[2]] = sample.value
    return [
        {
            "route": route,
            "status": status,
            "requests": round(row["count"]),
            "milliseconds": 1000 * row["sum"] / row["count"],
        }
        for (route, status), row in sorted(found.items())
    ]


def _done(page: PageRequest, what: str) -> Response:
    return page.to(f"/ui/settings?done={what}")


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"{name} must be a whole number; got text. Choose it from the list.")
    return int(text)
