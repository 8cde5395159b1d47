"""The table of pages: path, who may see it, which methods it has."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from discreet.service.limits import RateLimit
from discreet.service.metrics import Metrics
from discreet.service.service import Service
from discreet.service.ui import access, changes, explorer, views
from discreet.service.ui.frame import READERS, Page, View

ADMIN = ("admin",)
EVERYONE = None
GET, POST, BOTH = ("GET",), ("POST",), ("GET", "POST")
PAGES: tuple[tuple[str, View, tuple[str, ...] | None, tuple[str, ...]], ...] = (
    ("/ui/login", access.log_in, EVERYONE, BOTH),
    ("/ui/logout", access.log_out, READERS, POST),
    ("/ui", views.status, READERS, GET),
    ("/ui/batches", views.batches, READERS, GET),
    ("/ui/releases", views.releases, READERS, GET),
    ("/ui/releases/{number:int}", views.release, READERS, GET),
    ("/ui/releases/{number:int}/document", views.document, READERS, GET),
    ("/ui/ledger", views.ledger, READERS, GET),
    ("/ui/explorer", explorer.explorer, READERS, BOTH),
    ("/ui/keys", access.keys, ADMIN, BOTH),
    ("/ui/keys/revoke", access.revoke, ADMIN, POST),
    ("/ui/settings", changes.settings, ADMIN, GET),
    ("/ui/settings/mode", changes.set_mode, ADMIN, POST),
    ("/ui/settings/serving", changes.set_serving, ADMIN, POST),
    ("/ui/settings/holdback", changes.set_holdback, ADMIN, POST),
    ("/ui/settings/burn", changes.burn, ADMIN, POST),
    ("/ui/exact", changes.exact, ADMIN, GET),
)


def pages(service: Service, metrics: Metrics, rate: RateLimit) -> list[BaseRoute]:
    """Everything under ``/ui``."""
    made: list[BaseRoute] = [
        Route(path, Page(view, scopes, service, metrics, rate), methods=list(methods))
        for path, view, scopes, methods in PAGES
    ]
    static = StaticFiles(directory=Path(__file__).parent / "static")
    # The address that people type with one stroke more.
    home = Route("/ui/", RedirectResponse("/ui", 308), methods=["GET"])
    return [*made, home, Mount("/ui/static", static)]
