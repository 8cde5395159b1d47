"""The page of a server of many experiments: their list, and forms that begin and change them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from discreet.errors import InvalidInput
from discreet.service.experiment_file import FOLDER_EXAMPLE
from discreet.service.http.metrics import Metrics
from discreet.service.http.rate_limit import RateLimit
from discreet.service.http.refusals import Refusals
from discreet.service.runtime.service import Service
from discreet.service.storage.api_keys import SERVER
from discreet.service.storage.database import safe_name
from discreet.service.ui import login
from discreet.service.ui.experiment_summary import Summary, summary
from discreet.service.ui.page_frame import Asked, Page, View

KEYS = (SERVER,)
HOME = "/ui"
PATIENCE = 2.0
"""Seconds that the list waits for the figures of one experiment; it shows the others without it."""


class Changes(Protocol):
    """What the page does; ``http/experiment_changes.py`` does it."""

    async def listed(self) -> list[dict[str, Any]]: ...
    def serving(self) -> dict[str, Service]: ...
    async def create(self, name: str, text: str | None, by: str) -> dict[str, Any]: ...
    async def pause(self, name: str, by: str) -> dict[str, Any]: ...
    async def resume(self, name: str, by: str) -> dict[str, Any]: ...
    async def end(self, name: str, by: str) -> dict[str, Any]: ...
    async def archive(self, name: str, burn: bool, by: str) -> dict[str, Any]: ...


class ServerViews:
    """The views of the page."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    async def log_in(self, asked: Asked) -> Response:
        """A form for a key of the server."""
        if asked.request.method == "GET":
            return asked.page("server_login.html", message="")
        said = "The key must be one of this server; this one is not. Experiments have others."
        return await login.session_begun(asked, KEYS, HOME, "server_login.html", said)

    async def home(self, asked: Asked) -> Response:
        return await self._list(asked)

    async def create(self, asked: Asked) -> Response:
        """Only this answer shows the admin key of the new experiment."""
        name, text = asked.given("name").strip(), asked.given("toml")
        made = await self._changes.create(name, text.replace("\r\n", "\n") or None, asked.by)
        return await self._list(asked, made=made)

    async def change(self, asked: Asked) -> Response:
        """Pause, resume, end or archive; what cannot be undone is confirmed by typing the name."""
        name, what = asked.given("name"), asked.given("what")
        simple: dict[str, Callable[[str, str], Awaitable[Any]]] = {
            "pause": self._changes.pause,
            "resume": self._changes.resume,
        }
        if what in simple:
            await simple[what](name, asked.by)
            return asked.to(HOME)
        if asked.given("typed").strip() != name:
            raise InvalidInput(
                "name must be typed to confirm; it differs. Nothing was changed: type it again."
            )
        if what == "end":
            await self._changes.end(name, asked.by)
        elif what == "archive":
            await self._changes.archive(name, asked.given("burn") == "burn", asked.by)
        else:
            raise InvalidInput("change must be one of those on the page; this is not. Choose one.")
        return asked.to(HOME)

    async def _list(self, asked: Asked, made: dict[str, Any] | None = None) -> Response:
        found, services = await self._changes.listed(), self._changes.serving()
        told = await asyncio.gather(*map(_told, services.values()))
        return asked.page(
            "server_list.html",
            experiments=found,
            told=dict(zip(services, told, strict=True)),
            now=time.time(),
            made=made,
            example=FOLDER_EXAMPLE,
        )


async def _told(service: Service) -> Summary | None:
    """None where it cannot be read now: that keeps nobody from the list of the others."""
    try:
        return await asyncio.wait_for(summary(service), PATIENCE)
    except Exception as error:
        service.state.log.failure("request failed", kind=safe_name(error), route="/ui", status=503)
        return None


def server_pages(
    service: Service,
    changes: Changes,
    metrics: Metrics,
    rate: RateLimit,
    refusals: Refusals,
) -> list[BaseRoute]:
    """Everything under ``/ui`` of the server itself."""
    views = ServerViews(changes)
    table: tuple[tuple[str, View, tuple[str, ...] | None, list[str]], ...] = (
        ("/ui/login", views.log_in, None, ["GET", "POST"]),
        ("/ui/logout", login.log_out, KEYS, ["POST"]),
        ("/ui", views.home, KEYS, ["GET"]),
        ("/ui/new", views.create, KEYS, ["POST"]),
        ("/ui/change", views.change, KEYS, ["POST"]),
    )
    made: list[BaseRoute] = [
        Route(
            path,
            Page(view, scopes, service, metrics, rate, refusals, "server_error.html"),
            methods=methods,
        )
        for path, view, scopes, methods in table
    ]
    home = f"{service.settings.prefix}{HOME}"
    static = StaticFiles(directory=Path(__file__).parent / "static")
    return [
        *made,
        Route("/", RedirectResponse(home, 307), methods=["GET"]),
        Route("/ui/", RedirectResponse(home, 308), methods=["GET"]),
        Mount("/ui/static", static),
    ]
