"""Routes of all pages of an experiment, and of a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from discreet.service.access import Access
from discreet.service.dashboard import (
    explorer,
    member_pages,
    operator_pages,
    overview,
    server_pages,
)
from discreet.service.dashboard import page_frame as frame
from discreet.service.dashboard.page_frame import HOME, Page, View
from discreet.service.metrics import Metrics
from discreet.service.runtime.hosted_experiments import HostedExperiments
from discreet.service.runtime.service import Service

GET, POST, BOTH = ("GET",), ("POST",), ("GET", "POST")
PageRoute = tuple[str, View, str | None, tuple[str, ...]]
"""Path, view, role that it requires, and methods."""
OF_MEMBERS: tuple[PageRoute, ...] = (
    ("/ui/login", member_pages.log_in, frame.EVERYONE, BOTH),
    ("/ui/join", member_pages.join, frame.EVERYONE, BOTH),
    ("/ui/logout", member_pages.log_out, frame.SIGNED_IN, POST),
    ("/ui/account", member_pages.account, frame.SIGNED_IN, BOTH),
    ("/ui/members", member_pages.members, frame.OWNERS, BOTH),
)
"""Pages of an experiment, and of a server as well."""
PAGES: tuple[PageRoute, ...] = (
    *OF_MEMBERS,
    (HOME, overview.overview, frame.READERS, GET),
    ("/ui/newest", overview.newest, frame.READERS, GET),
    ("/ui/history", operator_pages.history, frame.READERS, GET),
    ("/ui/batches", operator_pages.batches, frame.READERS, GET),
    ("/ui/releases", operator_pages.releases, frame.READERS, GET),
    ("/ui/releases/{number:int}", operator_pages.release, frame.READERS, GET),
    ("/ui/releases/{number:int}/document", operator_pages.document, frame.READERS, GET),
    ("/ui/ledger", operator_pages.ledger, frame.READERS, GET),
    ("/ui/label", operator_pages.label, frame.READERS, GET),
    ("/ui/explorer", explorer.explorer, frame.READERS, BOTH),
    ("/ui/keys", operator_pages.keys, frame.OWNERS, BOTH),
    ("/ui/keys/revoke", operator_pages.revoke, frame.OWNERS, POST),
    ("/ui/settings", operator_pages.settings, frame.ADMIN, GET),
    ("/ui/settings/mode", operator_pages.change_mode, frame.ADMIN, POST),
    ("/ui/settings/serving", operator_pages.change_serving, frame.ADMIN, POST),
    ("/ui/settings/burn", operator_pages.burn, frame.ADMIN, POST),
)
"""Pages of an experiment."""
SERVER_PAGES: tuple[PageRoute, ...] = (
    *OF_MEMBERS,
    (HOME, server_pages.experiments, frame.SIGNED_IN, GET),
    ("/ui/history", operator_pages.history, frame.OWNERS, GET),
    ("/ui/new", server_pages.new, frame.ADMIN, BOTH),
    ("/ui/change", server_pages.change, frame.SIGNED_IN, POST),
)
"""Pages of a server."""
REPEATS: dict[View, frame.Again] = {server_pages.new: server_pages.new_again}
"""Views of long forms, and what shows such a form again after a failure."""


def page_routes(
    site: Service | HostedExperiments, access: Access, metrics: Metrics
) -> list[BaseRoute]:
    """Return the routes of all pages, redirects to the first page, and static files."""
    table: Sequence[PageRoute] = PAGES if isinstance(site, Service) else SERVER_PAGES
    home = f"{access.prefix}{HOME}"
    return [
        *(
            Route(
                path,
                Page(view, needed, access, metrics, site, REPEATS.get(view)),
                methods=methods,
            )
            for path, view, needed, methods in table
        ),
        Route("/", RedirectResponse(home, 307), methods=["GET"]),
        Route("/ui/", RedirectResponse(home, 308), methods=["GET"]),
        Mount("/ui/static", StaticFiles(directory=Path(__file__).parent / "static")),
    ]
