"""The table of pages: path, who may see it, which methods it has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from discreet.service.access import Access
from discreet.service.dashboard import (
    explorer,
    history,
    login,
    operator_pages,
    overview,
    settings_pages,
)
from discreet.service.dashboard.page_frame import READERS, Page, PageRequest, View
from discreet.service.metrics import Metrics
from discreet.service.runtime.service import Service
from discreet.service.runtime.status import faults

ExperimentView = Callable[[PageRequest, Service], Awaitable[Response]]
ADMIN = ("admin",)
EVERYONE = None
GET, POST, BOTH = ("GET",), ("POST",), ("GET", "POST")
PAGES: tuple[tuple[str, ExperimentView, tuple[str, ...] | None, tuple[str, ...]], ...] = (
    ("/ui/login", login.log_in, EVERYONE, BOTH),
    ("/ui/logout", login.log_out, READERS, POST),
    ("/ui", overview.overview, READERS, GET),
    ("/ui/newest", overview.newest, READERS, GET),
    ("/ui/history", history.history, READERS, GET),
    ("/ui/batches", operator_pages.batches, READERS, GET),
    ("/ui/releases", operator_pages.releases, READERS, GET),
    ("/ui/releases/{number:int}", operator_pages.release, READERS, GET),
    ("/ui/releases/{number:int}/document", operator_pages.document, READERS, GET),
    ("/ui/ledger", operator_pages.ledger, READERS, GET),
    ("/ui/explorer", explorer.explorer, READERS, BOTH),
    ("/ui/keys", login.keys, ADMIN, BOTH),
    ("/ui/keys/revoke", login.revoke, ADMIN, POST),
    ("/ui/settings", settings_pages.settings, ADMIN, GET),
    ("/ui/settings/mode", settings_pages.set_mode, ADMIN, POST),
    ("/ui/settings/serving", settings_pages.set_serving, ADMIN, POST),
    ("/ui/settings/burn", settings_pages.burn, ADMIN, POST),
    ("/ui/exact", settings_pages.exact, ADMIN, GET),
)


def pages(service: Service, access: Access, metrics: Metrics) -> list[BaseRoute]:
    """Return everything under ``/ui`` of an experiment."""
    below = f"/v1/experiments/{service.settings.experiment}"
    prefix = access.prefix
    server = f"{prefix.removesuffix(below)}/ui" if prefix.endswith(below) else None

    def shared_values(logged_in: bool) -> dict[str, Any]:
        return {
            "experiment": service.settings.experiment,
            "outcome": service.settings.plan.outcome,
            "newest": service.newest,
            "server": server,
            "faults": faults(service.state) if logged_in else [],
        }

    def bound(view: ExperimentView) -> View:
        return lambda page: view(page, service)

    made: list[BaseRoute] = [
        Route(
            path, Page(bound(view), scopes, access, metrics, shared_values), methods=list(methods)
        )
        for path, view, scopes, methods in PAGES
    ]
    return [*made, *common_routes(prefix)]


def common_routes(prefix: str) -> list[BaseRoute]:
    """Return the redirects to the first page, also with a slash at the end, and static files."""
    return [
        Route("/", RedirectResponse(f"{prefix}/ui", 307), methods=["GET"]),
        Route("/ui/", RedirectResponse(f"{prefix}/ui", 308), methods=["GET"]),
        Mount("/ui/static", StaticFiles(directory=Path(__file__).parent / "static")),
    ]
