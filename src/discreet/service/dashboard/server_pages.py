"""Routes of all pages, and the pages of a server: its list of experiments, and changes to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from discreet.errors import InvalidInput
from discreet.service.access import Access
from discreet.service.dashboard import explorer, member_pages, operator_pages, overview
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
    SharedValues,
    View,
)
from discreet.service.dashboard.setup_pages import SetupViews
from discreet.service.metrics import Metrics
from discreet.service.runtime.hosted_experiments import CreationReply, HostedExperiments
from discreet.service.runtime.service import Service
from discreet.service.runtime.status import faults
from discreet.service.storage.database import safe_name
from discreet.validate import one_of

ExperimentView = Callable[[PageRequest, Service], Awaitable[Response]]
GET, POST, BOTH = ("GET",), ("POST",), ("GET", "POST")
OF_MEMBERS = (
    ("/ui/login", member_pages.log_in, EVERYONE, BOTH),
    ("/ui/join", member_pages.join, EVERYONE, BOTH),
    ("/ui/logout", member_pages.log_out, SIGNED_IN, POST),
    ("/ui/account", member_pages.account, SIGNED_IN, BOTH),
    ("/ui/members", member_pages.members, OWNERS, BOTH),
)
"""Pages of an experiment, and of a server as well."""
PAGES: tuple[tuple[str, ExperimentView, str | None, tuple[str, ...]], ...] = (
    *OF_MEMBERS,
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
    ("/ui/keys", operator_pages.keys, OWNERS, BOTH),
    ("/ui/keys/revoke", operator_pages.revoke, OWNERS, POST),
    ("/ui/settings", operator_pages.settings, ADMIN, GET),
    ("/ui/settings/mode", operator_pages.change_settings, ADMIN, POST),
    ("/ui/settings/serving", operator_pages.change_settings, ADMIN, POST),
    ("/ui/settings/burn", operator_pages.change_settings, ADMIN, POST),
)
PageRoute = tuple[str, View, str | None, tuple[str, ...], Again | None]
HOME = "/ui"
PATIENCE = 2.0
"""Seconds that the list waits for the figures of one experiment; it shows the others without it."""


def pages(service: Service, access: Access, metrics: Metrics) -> list[BaseRoute]:
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

    table = [(path, bound(view), needed, methods, None) for path, view, needed, methods in PAGES]
    return _routes(table, access, metrics, shared_values)


def _routes(
    table: Sequence[PageRoute], access: Access, metrics: Metrics, shared_values: SharedValues
) -> list[BaseRoute]:
    """Return the routes of a table, redirects to the first page, and static files."""
    home = f"{access.prefix}{HOME}"
    return [
        *(
            Route(path, Page(view, needed, access, metrics, shared_values, again), methods=methods)
            for path, view, needed, methods, again in table
        ),
        Route("/", RedirectResponse(home, 307), methods=["GET"]),
        Route("/ui/", RedirectResponse(home, 308), methods=["GET"]),
        Mount("/ui/static", StaticFiles(directory=Path(__file__).parent / "static")),
    ]


def server_pages(hosted: HostedExperiments, access: Access, metrics: Metrics) -> list[BaseRoute]:
    views = ServerViews(hosted)
    setup = SetupViews(hosted, views.listed)
    table: list[PageRoute] = [
        *((*row, None) for row in OF_MEMBERS),
        ("/ui/history", operator_pages.history, OWNERS, GET, None),
        ("/ui", views.listed, SIGNED_IN, GET, None),
        ("/ui/new", setup.new, ADMIN, BOTH, setup.again),
        ("/ui/change", views.change, SIGNED_IN, POST, None),
    ]
    return _routes(table, access, metrics, lambda _: {"frame": "server_frame.html", "faults": []})


class ServerViews:
    def __init__(self, hosted: HostedExperiments) -> None:
        self._hosted = hosted

    async def change(self, page: PageRequest) -> Response:
        """Pause, resume, end or archive; what cannot be undone is confirmed by typing the name."""
        name, what, hosted = page.given("name"), page.given("what"), self._hosted
        page.permit(ADMIN, page.role_at(name))
        if what in ("end", "archive") and page.given("typed").strip() != name:
            raise InvalidInput(
                "name must be typed to confirm; it differs. Nothing was changed: type it again."
            )
        changes = {"pause": hosted.pause, "resume": hosted.resume, "end": hosted.end}
        if what == "archive":
            await hosted.archive(name, page.given("burn") == "burn", page.by)
        else:
            await changes[one_of("what", what, changes)](name, page.by)
        return page.to(HOME)

    async def listed(self, page: PageRequest, made: CreationReply | None = None) -> Response:
        """List all experiments; the answer to a creation shows the new admin key, once."""
        found = [each for each in await self._hosted.listed() if page.may(READERS, each["name"])]
        names = {each["name"] for each in found}
        services = {k: service for k, service in self._hosted.serving().items() if k in names}
        archived = await asyncio.to_thread(self._hosted.folder.archived)
        summaries = await asyncio.gather(*map(_summary, services.values()))
        return page.render(
            "server_list.html",
            experiments=found,
            changeable={name for name in names if page.may(ADMIN, name)},
            summaries=dict(zip(services, summaries, strict=True)),
            now=time.time(),
            made=made,
            archived=[name for name in archived if page.may(READERS, name)],
        )


async def _summary(service: Service) -> Summary | None:
    """Return the summary, or None if it cannot be read now; the others are listed all the same."""
    try:
        return await asyncio.wait_for(summary(service), PATIENCE)
    except Exception as error:
        service.state.log.failure("request failed", kind=safe_name(error), route="/ui", status=503)
        return None
