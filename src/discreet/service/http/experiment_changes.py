"""Changes to the experiments of a server: create, pause, resume, end and archive."""

from __future__ import annotations

import asyncio
from typing import Any

from discreet.errors import InvalidInput, ServiceError
from discreet.service.http.hosted_experiments import HostedExperiments
from discreet.service.logs import Log
from discreet.service.runtime.experiment_folder import resumed
from discreet.service.runtime.service import Service
from discreet.service.settings import ENDED
from discreet.text import parse_toml

USUAL = {"database": "discreet.db", "vault": "vault", "anchor": None}
"""The places of an experiment that says nothing about them."""


class ExperimentChanges:
    """Each change concerns one experiment; ``by`` is the id of the key that asks for it."""

    def __init__(self, hosted: HostedExperiments) -> None:
        self._hosted, self._folder = hosted, hosted.folder

    async def listed(self) -> list[dict[str, Any]]:
        """Every experiment: whether it can decide, its mode, what it published."""
        found: dict[str, dict[str, Any]] = {
            name: {"name": name, "state": "broken", "reason": each.reason}
            for name, each in self._hosted.broken.items()
        }
        for name, each in self._hosted.served.items():
            found[name] = _shown(name, each.service)
        return [found[name] for name in sorted(found)]

    def serving(self) -> dict[str, Service]:
        """The experiments that could start, in the order of their names."""
        return {name: self._hosted.served[name].service for name in sorted(self._hosted.served)}

    async def create(self, name: str, text: str | None, by: str) -> dict[str, Any]:
        """Begin an experiment; its admin key is in this answer and nowhere else."""
        if text is not None:
            _refuse_places(text)
        begun = await asyncio.to_thread(self._folder.new, name, text)
        Log(name).event("experiment created", by=by)
        await self._hosted.look()
        return {
            "name": name,
            "admin_key": begun.admin_key,
            "public_key": begun.public_key,
            "path": self._folder.server.address(name),
        }

    async def pause(self, name: str, by: str) -> dict[str, Any]:
        service = self._service(name)
        await service.set_mode("frozen", by)
        return _shown(name, service)

    async def resume(self, name: str, by: str) -> dict[str, Any]:
        service = self._service(name)
        await service.set_mode(resumed(service.settings), by)
        return _shown(name, service)

    async def end(self, name: str, by: str) -> dict[str, Any]:
        service = self._service(name)
        await service.end(by)
        return _shown(name, service)

    async def archive(self, name: str, burn: bool, by: str) -> dict[str, Any]:
        """End it and put its folder away; all workers let it go first."""
        self._service(name)
        place = await asyncio.to_thread(self._folder.archive, name, burn=burn)
        Log(name).event("experiment archived", by=by)
        await self._hosted.look()
        return {"name": name, "archived": str(place.relative_to(self._folder.path))}

    def _service(self, name: str) -> Service:
        found = self._hosted.served.get(name)
        if found is not None:
            return found.service
        if name in self._hosted.broken:
            raise InvalidInput(
                f"experiment must be able to start to be changed; {name!r} is not. Repair it "
                "first: the list says what is wrong."
            )
        raise ServiceError(
            f"experiment must be one of this server; there is no {name[:48]!r}. GET "
            "/v1/experiments lists them.",
            status=404,
            code="unknown_experiment",
        )


def _refuse_places(text: str) -> None:
    """Refuse a text that names files: a key of the server must not read or write its disk."""
    document = parse_toml(text, "this text", "experiment")
    plan = document.get("plan")
    plan = plan if isinstance(plan, dict) else {}
    actions = plan.get("actions")
    named = {name for name in USUAL if document.get(name, USUAL[name]) != USUAL[name]}
    if isinstance(plan.get("prior"), str):
        named.add("plan.prior")
    if isinstance(actions, dict) and isinstance(actions.get("items"), str):
        named.add("plan.actions.items")
    if named:
        raise InvalidInput(
            f"{', '.join(sorted(named))} must be left out of an experiment that is sent; it names "
            "a place on the server. Begin this one there: discreet experiment new NAME --from FILE."
        )


def _shown(name: str, service: Service) -> dict[str, Any]:
    state = service.state
    words = {"frozen": "paused", ENDED: "ended"}
    return {
        "name": name,
        "experiment": service.settings.experiment,
        "state": words.get(state.mode, "running"),
        "mode": state.mode,
        "ready": state.ready,
        "documents": len(state.serving.chain.links),
        "under_way": len(state.live),
        "path": service.settings.prefix,
    }
