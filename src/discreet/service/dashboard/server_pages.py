"""The page of a server of many experiments: their list, and forms that begin and change them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from discreet.errors import InvalidInput
from discreet.service.access import Access
from discreet.service.dashboard import (
    explorer,
    member_pages,
    operator_pages,
    overview,
    settings_pages,
)
from discreet.service.dashboard.experiment_summary import Summary, summary
from discreet.service.dashboard.page_frame import (
    ADMIN,
    EVERYONE,
    OWNERS,
    READERS,
    SIGNED_IN,
    Again,
    Page,
    PageRequest,
    View,
    at_least,
)
from discreet.service.dashboard.setup_pages import SetupViews
from discreet.service.metrics import Metrics
from discreet.service.runtime.hosted_experiments import CreationReply, HostedExperiments
from discreet.service.runtime.service import Service
from discreet.service.runtime.status import faults
from discreet.service.storage.database import safe_name

ExperimentView = Callable[[PageRequest, Service], Awaitable[Response]]
GET, POST, BOTH = ("GET",), ("POST",), ("GET", "POST")
PAGES: tuple[tuple[str, ExperimentView, str | None, tuple[str, ...]], ...] = (
    ("/ui/login", member_pages.log_in, EVERYONE, BOTH),
    ("/ui/join", member_pages.join, EVERYONE, BOTH),
    ("/ui/logout", member_pages.log_out, SIGNED_IN, POST),
    ("/ui/account", member_pages.account, SIGNED_IN, BOTH),
    ("/ui/members", member_pages.members, OWNERS, BOTH),
    ("/ui", overview.overview, READERS, GET),
    ("/ui/newest", overview.newest, READERS, GET),
    ("/ui/history", operator_pages.history, READERS, GET),
    ("/ui/batches", operator_pages.batches, READERS, GET),
    ("/ui/releases", operator_pages.releases, READERS, GET),
    ("/ui/releases/{number:int}", operator_pages.release, READERS, GET),
    ("/ui/releases/{number:int}/document", operator_pages.document, READERS, GET),
    ("/ui/ledger", operator_pages.ledger, READERS, GET),
    ("/ui/label", operator_pages.label, READERS, GET),
    ("/ui/explorer", explorer.explorer, READERS, BOTH),
    ("/ui/keys", settings_pages.keys, OWNERS, BOTH),
    ("/ui/keys/revoke", settings_pages.revoke, OWNERS, POST),
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

    def shared_values(logged_in: bool) -> dict[str, object]:
        return {
            "frame": "base.html",
            "experiment": service.settings.experiment,
            "outcome": service.settings.plan.outcome,
            "newest": service.newest,
            "server": server,
            "faults": faults(service.state) if logged_in else [],
            "archived": service.settings.archived,
        }

    def bound(view: ExperimentView) -> View:
        async def shown(page: PageRequest) -> Response:
            if page.may(READERS):
                with suppress(Exception):  # a page works without it, and tells faults itself
                    page.privacy_words = await operator_pages.privacy_words(service)
            return await view(page, service)

        return shown

    made: list[BaseRoute] = [
        Route(
            path, Page(bound(view), needed, access, metrics, shared_values), methods=list(methods)
        )
        for path, view, needed, methods in PAGES
    ]
    return [*made, *common_routes(prefix)]


def common_routes(prefix: str) -> list[BaseRoute]:
    """Return the redirects to the first page, also with a slash at the end, and static files."""
    return [
        Route("/", RedirectResponse(f"{prefix}/ui", 307), methods=["GET"]),
        Route("/ui/", RedirectResponse(f"{prefix}/ui", 308), methods=["GET"]),
        Mount("/ui/static", StaticFiles(directory=Path(__file__).parent / "static")),
    ]


HOME = "/ui"
PATIENCE = 2.0
"""Seconds that the list waits for the figures of one experiment; it shows the others without it."""


class ServerViews:
    """The views of the page."""

    def __init__(self, hosted: HostedExperiments) -> None:
        self._hosted = hosted

    async def home(self, page: PageRequest) -> Response:
        return await self.listed(page)

    async def change(self, page: PageRequest) -> Response:
        """Pause, resume, end or archive; what cannot be undone is confirmed by typing the name."""
        name, what = page.given("name"), page.given("what")
        page.permit(ADMIN, page.visitor.role_at(name) if page.visitor else SIGNED_IN)
        simple: dict[str, Callable[[str, str], Awaitable[object]]] = {
            "pause": self._hosted.pause,
            "resume": self._hosted.resume,
        }
        if what in simple:
            await simple[what](name, page.by)
            return page.to(HOME)
        if page.given("typed").strip() != name:
            raise InvalidInput(
                "name must be typed to confirm; it differs. Nothing was changed: type it again."
            )
        if what == "end":
            await self._hosted.end(name, page.by)
        elif what == "archive":
            await self._hosted.archive(name, page.given("burn") == "burn", page.by)
        else:
            raise InvalidInput("change must be one of those on the page; this is not. Choose one.")
        return page.to(HOME)

    async def listed(self, page: PageRequest, made: CreationReply | None = None) -> Response:
        """List all experiments; the answer to a creation shows the new admin key, once."""
        roles = page.visitor.role_at if page.visitor else lambda _: SIGNED_IN
        found = [
            each for each in await self._hosted.listed() if at_least(roles(each["name"]), READERS)
        ]
        serving, shown = self._hosted.serving(), {each["name"] for each in found}
        services = {name: service for name, service in serving.items() if name in shown}
        archived = await asyncio.to_thread(self._hosted.folder.archived)
        summaries = await asyncio.gather(*map(_summary, services.values()))
        return page.render(
            "server_list.html",
            experiments=found,
            changeable={name for name in shown if at_least(roles(name), ADMIN)},
            summaries=dict(zip(services, summaries, strict=True)),
            now=time.time(),
            made=made,
            archived=[name for name in archived if at_least(roles(name), READERS)],
        )


async def _summary(service: Service) -> Summary | None:
    """Return the summary, or None if it cannot be read now; the others are listed all the same."""
    try:
        return await asyncio.wait_for(summary(service), PATIENCE)
    except Exception as error:
        service.state.log.failure("request failed", kind=safe_name(error), route="/ui", status=503)
        return None


def server_pages(hosted: HostedExperiments, access: Access, metrics: Metrics) -> list[BaseRoute]:
    """Return everything under ``/ui`` of the server itself."""
    views = ServerViews(hosted)
    setup = SetupViews(hosted, views.listed)
    table: tuple[tuple[str, View, str | None, tuple[str, ...], Again | None], ...] = (
        ("/ui/login", member_pages.log_in, EVERYONE, BOTH, None),
        ("/ui/join", member_pages.join, EVERYONE, BOTH, None),
        ("/ui/logout", member_pages.log_out, SIGNED_IN, POST, None),
        ("/ui/account", member_pages.account, SIGNED_IN, BOTH, None),
        ("/ui/members", member_pages.members, OWNERS, BOTH, None),
        ("/ui/history", operator_pages.server_history, OWNERS, GET, None),
        ("/ui", views.home, SIGNED_IN, GET, None),
        ("/ui/new", setup.new, ADMIN, BOTH, setup.again),
        ("/ui/change", views.change, SIGNED_IN, POST, None),
    )

    def shared_values(_: bool) -> dict[str, object]:
        return {"frame": "server_frame.html", "faults": []}

    made: list[BaseRoute] = [
        Route(
            path, Page(view, needed, access, metrics, shared_values, again), methods=list(methods)
        )
        for path, view, needed, methods, again in table
    ]
    return [*made, *common_routes(access.prefix)]
