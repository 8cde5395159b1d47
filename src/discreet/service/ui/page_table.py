"""The table of pages: path, who may see it, which methods it has."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from discreet.service.http.metrics import Metrics
from discreet.service.http.rate_limit import RateLimit
from discreet.service.http.refusals import Refusals
from discreet.service.runtime.service import Service
from discreet.service.ui import explorer, history, login, operator_pages, overview, settings_pages
from discreet.service.ui.page_frame import READERS, Page, View

ADMIN = ("admin",)
EVERYONE = None
GET, POST, BOTH = ("GET",), ("POST",), ("GET", "POST")
PAGES: tuple[tuple[str, View, tuple[str, ...] | None, tuple[str, ...]], ...] = (
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


def pages(
    service: Service, metrics: Metrics, rate: RateLimit, refusals: Refusals
) -> list[BaseRoute]:
    """Everything under ``/ui``."""
    made: list[BaseRoute] = [
        Route(path, Page(view, scopes, service, metrics, rate, refusals), methods=list(methods))
        for path, view, scopes, methods in PAGES
    ]
    static = StaticFiles(directory=Path(__file__).parent / "static")
    home_page = f"{service.settings.prefix}/ui"
    # People also type the address with a slash at the end.
    home = Route("/ui/", RedirectResponse(home_page, 308), methods=["GET"])
    start = Route("/", RedirectResponse(home_page, 307), methods=["GET"])
    return [*made, start, home, Mount("/ui/static", static)]
