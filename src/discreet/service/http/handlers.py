"""The handlers of the routes of an experiment and of a server, which get parsed requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import parse_qs

import msgspec

from discreet.client.documents import digest
from discreet.errors import DiscreetError, InvalidInput, ServiceError
from discreet.plan.config import to_config
from discreet.releases.canonical import digest_of
from discreet.service.access import problem_of
from discreet.service.http.bodies import Activated, Erased, Result, Results, Stored
from discreet.service.metrics import Families, Metrics, of_all, values
from discreet.service.runtime.hosted_experiments import HostedExperiments
from discreet.service.runtime.requests import DecisionReply, InvalidField, TicketReply
from discreet.service.runtime.service import SHOWN, Service
from discreet.service.runtime.status import actions_in_use

MOST_SHOWN = 10_000
"""The most actions in one list."""
UNCHANGING = b"public, max-age=31536000, immutable"
"""The document of a number never changes: a browser may cache it."""
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class Call:
    """One request after authentication and parsing."""

    caller: str
    body: Any = None
    path: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    client: str = ""
    query: bytes = b""


@dataclass(frozen=True)
class Raw:
    """An answer whose bytes are ready."""

    content: bytes
    kind: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()


class ExperimentHandlers:
    """The handlers of the routes of one experiment."""

    def __init__(self, service: Service, metrics: Metrics) -> None:
        self._service, self._metrics = service, metrics

    async def decide(self, call: Call) -> DecisionReply:
        given = call.headers.get(b"idempotency-key")
        name = None if given is None else given.decode("latin-1")
        if name is not None and not 1 <= len(name) <= 255:
            raise InvalidInput(
                f"Idempotency-Key must have 1 to 255 characters; got {len(name)}. Change it."
            )
        body = call.body
        return await self._service.decisions.decide(
            call.caller,
            body.context,
            user=getattr(body, "user", None),
            deferred=body.deferred,
            idempotency=name,
            actions=body.actions,
            ranking=body.ranking,
            sticky=body.sticky,
        )

    async def observe(self, call: Call) -> Stored:
        return Stored(await self._observe(call.body))

    async def observe_batch(self, call: Call) -> Results:
        """Store observations; each has its own result: a refused one does not stop the others."""
        lost = self._service.state.database.lost
        outcomes = await asyncio.gather(
            *(self._observe(each) for each in call.body.observations), return_exceptions=True
        )
        results = []
        for outcome in outcomes:
            if isinstance(outcome, bool):
                results.append(Result(200, outcome))
            elif isinstance(outcome, DiscreetError):
                status, problem = problem_of(outcome, lost)
                results.append(Result(status, error=problem))
            else:
                raise outcome
        return Results(results)

    async def _observe(self, body: Any) -> bool:
        rails = getattr(body, "guardrails", None)  # where the plan declares them
        given = None if rails is None else msgspec.structs.asdict(rails)
        return await self._service.decisions.observe(
            body.decision, body.value, context=body.context, action=body.action, guardrails=given
        )

    async def activate(self, call: Call) -> Activated:
        return Activated(await self._service.decisions.activate(call.body.decision))

    async def ticket(self, call: Call) -> TicketReply:
        return await self._service.decisions.ticket(
            getattr(call.body, "user", None), call.body.sticky
        )

    async def releases(self, _call: Call) -> object:
        state = self._service.state
        return {
            "experiment": self._service.settings.experiment,
            "key": state.serving.chain.key,
            "current": state.serving.served(),
            "releases": [
                {name: getattr(link, name) for name in ("number", "kind", "epoch", "digest")}
                for link in state.serving.chain.links
            ],
        }

    async def release(self, call: Call) -> Raw:
        """Return the signed bytes of a document; the bytes of a number never change."""
        text = call.path["number"]
        current = text == "current"
        if not current and not (text.isascii() and text.isdigit() and len(text) < 10):
            raise _no_release()
        state = self._service.state
        number = state.serving.served() if current else int(text)
        if number > state.serving.newest:  # another worker may have published it already
            await state.refresh()
        body = await state.document(number)
        if body is None:  # missing, or not confirmed yet
            raise _no_release()
        tag = b'"' + digest(body).encode() + b'"'
        caching = b"no-cache" if current else UNCHANGING
        return Raw(body, headers=((b"etag", tag), (b"cache-control", caching)))

    async def lift(self, _call: Call) -> object:
        found = self._service.lift()
        if found is None:
            text = (
                "lift must come from a release of a plan with a control share; this service has "
                "none. GET /v1/status says whether its plan has one, and when a release is due."
            )
            raise ServiceError(text, status=404, code="no_lift")
        rails = [each.to_json() for each in self._service.guardrails()]
        return found.to_json() | ({"guardrails": rails} if rails else {})

    async def schema(self, _call: Call) -> object:
        plan = self._service.settings.plan
        features = to_config(plan.features)
        return {
            "digest": digest_of(features),
            "features": features,
            "n_actions": len(self._service.state.serving.chain.available_actions.places),
            "actions": actions_in_use(self._service.state),
            "outcome": to_config(plan.outcome),
            **({} if plan.guardrails is None else {"guardrails": to_config(plan.guardrails)}),
        }

    async def actions(self, call: Call) -> object:
        """List the available actions; ``q`` searches names, ``limit`` is the length of the list."""
        query = parse_qs(call.query.decode("latin-1"), keep_blank_values=True)
        limit = query.get("limit", [str(SHOWN)])[-1]
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MOST_SHOWN):
            raise InvalidField(
                f"limit must be a whole number from 1 to {MOST_SHOWN:,}; this one is not. "
                "Search with q, or leave limit out.",
                "limit",
            )
        return self._service.list_actions(query.get("q", [""])[-1], int(limit))

    async def change_actions(self, call: Call) -> object:
        await self._service.change_actions(call.body.add, call.body.remove, call.caller)
        return self._service.list_actions()

    async def ledger(self, _call: Call) -> object:
        return await self._service.ledger()

    async def status(self, _call: Call) -> object:
        return await self._service.status()

    async def set_mode(self, call: Call) -> object:
        await self._service.set_mode(call.body.mode, call.caller)
        return await self._service.status()

    async def set_serving(self, call: Call) -> object:
        await self._service.set_serving(call.body.release, call.caller)
        return await self._service.status()

    async def burn(self, call: Call) -> object:
        await self._service.burn(call.body.batch, call.caller)
        return await self._service.status()

    async def erase(self, call: Call) -> Erased:
        await self._service.erase(call.body.user, call.caller)
        return Erased(True)

    async def create_key(self, call: Call) -> object:
        body = call.body
        return await self._service.create_key(
            body.scopes, body.label, body.expires_in, body.rate, call.caller
        )

    async def list_keys(self, _call: Call) -> object:
        return {"keys": [key.shown() for key in await self._service.list_keys()]}

    async def revoke_key(self, call: Call) -> object:
        return await self._service.revoke_key(call.body.id, call.caller)

    async def changes(self, _call: Call) -> object:
        return {"changes": [asdict(each) for each in await self._service.changes()]}

    async def public_metrics(self, _call: Call) -> Raw:
        ledger = await self._service.state.ledger()
        status, spent = await self._service.status(), ledger.spent().epsilon
        return Raw(self._metrics.public(status, spent, ledger.budget.epsilon), PROMETHEUS)

    async def internal_metrics(self, call: Call) -> Raw:
        return Raw(self._metrics.internal(call.client), PROMETHEUS)

    async def healthz(self, _call: Call) -> object:
        return {"status": "alive"}

    async def readyz(self, _call: Call) -> object:
        faults = self._service.state.unready
        if faults:
            reasons = ", ".join(f"{name} ({fault})" for name, fault in faults.items())
            text = f"service must be able to decide; at fault: {reasons}. Wait, or read the log."
            raise ServiceError(text, status=503, code="not_ready")
        return {"status": "ready"}


class ServerHandlers:
    """The handlers of the routes of a server of many experiments."""

    def __init__(self, hosted: HostedExperiments, families: Families) -> None:
        self._hosted, self._families = hosted, families
        self._ledgers: dict[str, tuple[int, float, float]] = {}

    async def listed(self, _call: Call) -> object:
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

    async def healthz(self, _call: Call) -> object:
        return {"status": "alive"}

    async def readyz(self, _call: Call) -> object:
        """503 where no experiment can decide; one that cannot is named, and stops no other."""
        faults: dict[str, dict[str, str]] = {
            name: {"start": each.kind} for name, each in self._hosted.broken.items()
        }
        for name, each in self._hosted.served.items():
            if unready := each.service.state.unready:
                faults[name] = unready
        if faults and faults.keys() >= self._hosted.served.keys():
            names = ", ".join(sorted(faults)[:10])
            text = f"No experiment can decide ({names}). Read the log, or discreet experiment list."
            raise ServiceError(text, status=503, code="not_ready")
        return {"status": "ready", "not_ready": dict(sorted(faults.items()))}

    async def metrics(self, _call: Call) -> Raw:
        rows = {}
        for name, each in [*self._hosted.served.items()]:
            service = each.service
            newest = service.state.serving.newest
            if self._ledgers.get(name, (-1,))[0] != newest:  # it changes with documents only
                ledger = await service.state.ledger()
                self._ledgers[name] = newest, ledger.spent().epsilon, ledger.budget.epsilon
            rows[name] = values(await service.status(), *self._ledgers[name][1:])
        text = await asyncio.to_thread(of_all, self._families, rows)
        return Raw(text, PROMETHEUS)


def _no_release() -> ServiceError:
    text = "release must be one that was published; this one was not. See GET /v1/releases."
    return ServiceError(text, status=404, code="unknown_release")
