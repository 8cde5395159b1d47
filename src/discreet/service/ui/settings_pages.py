"""Pages where an administrator changes settings, and exact figures on this machine."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import Response

from discreet.errors import InvalidInput
from discreet.service.http import handlers
from discreet.service.http.handlers import Call
from discreet.service.runtime.status import control_words
from discreet.service.settings import MODES
from discreet.service.ui import document_words
from discreet.service.ui.page_frame import Asked

DONE = {
    "mode": "The experiment was set to another mode.",
    "serving": "Another release decides now.",
    "burn": "The batch was given up and its rows were erased.",
}


async def settings(asked: Asked) -> Response:
    done = asked.given("done")
    service = asked.service
    links = service.state.serving.chain.links
    return asked.page(
        "settings.html",
        status=await service.status(),
        settings=service.settings,
        default_action=service.settings.default_name,
        control=control_words(service.settings.plan) or "none",
        modes=MODES,
        alias=service.state.alias,
        names=dict(reversed(document_words.names(links).items())),
        done=DONE.get(done, ""),
    )


async def set_mode(asked: Asked) -> Response:
    await asked.service.set_mode(asked.given("mode"), asked.by)
    return _done(asked, "mode")


async def set_serving(asked: Asked) -> Response:
    text = asked.given("release")
    await asked.service.set_serving(None if text == "newest" else _whole("release", text), asked.by)
    return _done(asked, "serving")


async def burn(asked: Asked) -> Response:
    """Only with the number of the batch typed again: nothing brings its rows back."""
    if asked.given("batch") != asked.given("typed").strip():
        raise InvalidInput(
            "batch must be confirmed by typing its number; the numbers differ. Nothing was burned."
        )
    await asked.service.burn(_whole("batch", asked.given("batch")), asked.by)
    return _done(asked, "burn")


async def exact(asked: Asked) -> Response:
    """Requests of all routes by status, with the same protection as /internal/metrics."""
    request = asked.request
    host = request.client.host if request.client else ""
    caller = asked.key.id if asked.key else ""
    raw = await handlers.internal_metrics(Call(asked.service, asked.metrics, caller, client=host))
    return asked.page("exact.html", rows=_rows(raw.content.decode()))


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


def _done(asked: Asked, what: str) -> Response:
    return asked.to(f"/ui/settings?done={what}")


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"{name} must be a whole number; got text. Choose it from the list.")
    return int(text)
