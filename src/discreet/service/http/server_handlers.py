"""Routes of a server of many experiments: list, create, pause, end and archive experiments."""

from __future__ import annotations

import asyncio

from discreet.errors import ServiceError
from discreet.service.access import UNLIMITED
from discreet.service.http.bodies import ArchivedExperiment, NewExperiment
from discreet.service.http.handlers import Call, Raw
from discreet.service.http.routes import PUBLIC, Route
from discreet.service.metrics import Families, of_all, values
from discreet.service.runtime.hosted_experiments import HostedExperiments
from discreet.service.storage.api_keys import SERVER

ADMIN = "/v1/admin/experiments"


class ServerHandlers:
    """The handlers of the routes of the server itself."""

    def __init__(self, hosted: HostedExperiments, families: Families) -> None:
        self._hosted, self._families = hosted, families
        self._ledgers: dict[str, tuple[int, float, float]] = {}

    async def listed(self, call: Call) -> object:  # noqa: ARG002
        archived = await asyncio.to_thread(self._hosted.folder.archived)
        return {"experiments": await self._hosted.listed(), "archived": archived}

    async def create(self, call: Call) -> object:
        return await self._hosted.create(call.body.name, call.body.toml, call.caller)

    async def pause(self, call: Call) -> object:
        return await self._hosted.pause(call.path["name"], call.caller)

    async def resume(self, call: Call) -> object:
        return await self._hosted.resume(call.path["name"], call.caller)

    async def end(self, call: Call) -> object:
        return await self._hosted.end(call.path["name"], call.caller)

    async def archive(self, call: Call) -> object:
        return await self._hosted.archive(call.path["name"], call.body.burn, call.caller)

    async def healthz(self, call: Call) -> object:  # noqa: ARG002
        return {"status": "alive"}

    async def readyz(self, call: Call) -> object:  # noqa: ARG002
        """503 where no experiment can decide; one that cannot is named, and stops no other."""
        faults: dict[str, dict[str, str]] = {
            name: {"start": each.kind} for name, each in self._hosted.broken.items()
        }
        for name, each in self._hosted.served.items():
            if unready := each.service.state.unready:
                faults[name] = unready
        if faults and faults.keys() >= self._hosted.served.keys():
            names = ", ".join(sorted(faults)[:10])
            raise ServiceError(
                f"No experiment can decide ({names}). Read the log and the output of discreet "
                "experiment list.",
                status=503,
                code="not_ready",
            )
        return {"status": "ready", "not_ready": dict(sorted(faults.items()))}

    async def metrics(self, call: Call) -> Raw:  # noqa: ARG002
        rows = {}
        for name, each in [*self._hosted.served.items()]:
            service = each.service
            newest = service.state.serving.newest
            if self._ledgers.get(name, (-1,))[0] != newest:  # it changes with documents only
                ledger = await service.state.ledger()
                self._ledgers[name] = newest, ledger.spent().epsilon, ledger.budget.epsilon
            rows[name] = values(await service.status(), *self._ledgers[name][1:])
        text = await asyncio.to_thread(of_all, self._families, rows)
        return Raw(text, "text/plain; version=0.0.4; charset=utf-8")


def server_routes(handlers: ServerHandlers) -> tuple[Route, ...]:
    """Return every route of the server itself."""
    h, server = handlers, (SERVER,)
    return (
        Route("GET", "/v1/experiments", server, h.listed, "All experiments and their states"),
        Route("POST", ADMIN, server, h.create, "Begin an experiment; its admin key, shown once",
              NewExperiment),
        Route("POST", f"{ADMIN}/{{name}}/pause", server, h.pause, "Serve and do not store"),
        Route("POST", f"{ADMIN}/{{name}}/resume", server, h.resume, "Store again"),
        Route("POST", f"{ADMIN}/{{name}}/end", server, h.end, "Store nothing more, for good"),
        Route("POST", f"{ADMIN}/{{name}}/archive", server, h.archive,
              "End it and put its folder away", ArchivedExperiment),
        Route("GET", "/metrics", server, h.metrics, "Public figures of all, for Prometheus"),
        Route("GET", "/healthz", PUBLIC, h.healthz, "The process is alive", bucket=UNLIMITED),
        Route("GET", "/readyz", PUBLIC, h.readyz, "Some experiment can decide, and which cannot",
              bucket=UNLIMITED),
    )  # fmt: skip
