"""What each route does with a parsed request."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import parse_qs

from discreet.client.documents import digest
from discreet.config import to_config
from discreet.errors import DiscreetError, InvalidInput, ServiceError
from discreet.releases.canonical import digest_of
from discreet.service.http.bodies import Activated, Erased, Result, Results, Stored
from discreet.service.http.error_responses import problem_of
from discreet.service.http.metrics import Metrics
from discreet.service.runtime.requests import DecisionReply, InvalidField, TicketReply
from discreet.service.runtime.service import SHOWN, Service
from discreet.service.runtime.status import actions_in_use

MOST_SHOWN = 10_000
"""The most actions in one list."""
KEPT = b"public, max-age=31536000, immutable"
"""The document of a number never changes: a browser need not ask again."""


@dataclass
class Call:
    """One request after authentication and parsing."""

    service: Service
    metrics: Metrics
    caller: str
    body: Any = None
    path: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    client: str = ""
    query: bytes = b""


@dataclass(frozen=True)
class Raw:
    """An answer whose bytes are ready."""

    content: bytes
    kind: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()


async def decide(call: Call) -> DecisionReply:
    given = call.headers.get(b"idempotency-key")
    name = None if given is None else given.decode("latin-1")
    if name is not None and not 1 <= len(name) <= 255:
        raise InvalidInput(
            f"Idempotency-Key must have 1 to 255 characters; got {len(name)}. Change it."
        )
    body = call.body
    return await call.service.decisions.decide(
        call.caller,
        body.context,
        user=body.user,
        deferred=body.deferred,
        idempotency=name,
        actions=body.actions,
        ranking=body.ranking,
        sticky=body.sticky,
    )


async def observe(call: Call) -> Stored:
    return Stored(await _observe(call, call.body))


async def observe_batch(call: Call) -> Results:
    """Each observation has its own result: a refused one does not stop the others."""
    lost = call.service.state.database.lost
    outcomes = await asyncio.gather(
        *(_observe(call, each) for each in call.body.observations), return_exceptions=True
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


async def _observe(call: Call, body: Any) -> bool:
    return await call.service.decisions.observe(
        body.decision, body.value, context=body.context, action=body.action
    )


async def activate(call: Call) -> Activated:
    return Activated(await call.service.decisions.activate(call.body.decision))


async def ticket(call: Call) -> TicketReply:
    return await call.service.decisions.ticket(call.body.user, call.body.sticky)


async def releases(call: Call) -> dict[str, Any]:
    state = call.service.state
    return {
        "experiment": call.service.settings.experiment,
        "key": state.serving.chain.key,
        "current": state.served(),
        "releases": [
            {name: getattr(link, name) for name in ("number", "kind", "epoch", "digest")}
            for link in state.serving.chain.links
        ],
    }


async def release(call: Call) -> Raw:
    """The signed bytes of a document; the bytes of a number never change."""
    text = call.path["number"]
    current = text == "current"
    if not current and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise _no_release()
    number = call.service.state.served() if current else int(text)
    return await document(call, number, b"no-cache" if current else KEPT)


async def document(call: Call, number: int, caching: bytes) -> Raw:
    state = call.service.state
    if number > state.serving.newest:  # another worker may have published it already
        await state.refresh()
    body = await state.document(number)
    if body is None:  # missing, or not confirmed yet
        raise _no_release()
    tag = b'"' + digest(body).encode() + b'"'
    return Raw(body, headers=((b"etag", tag), (b"cache-control", caching)))


def _no_release() -> ServiceError:
    return ServiceError(
        "release must be one that was published; this number was not. See GET /v1/releases.",
        status=404,
        code="unknown_release",
    )


async def lift(call: Call) -> dict[str, Any]:
    found = call.service.lift()
    if found is None:
        raise ServiceError(
            "lift must come from a release of a plan with a control share; this service has none. "
            "GET /v1/status says whether its plan has one, and when a release is due.",
            status=404,
            code="no_lift",
        )
    return found.to_json()


async def schema(call: Call) -> dict[str, Any]:
    plan = call.service.settings.plan
    features = to_config(plan.features)
    return {
        "digest": digest_of(features),
        "features": features,
        "n_actions": len(call.service.state.serving.chain.known.places),
        "actions": actions_in_use(call.service.state),
        "outcome": to_config(plan.outcome),
    }


async def actions(call: Call) -> dict[str, Any]:
    """What may be offered now; ``q`` is a part of a name, ``limit`` how many are listed."""
    asked = parse_qs(call.query.decode("latin-1"), keep_blank_values=True)
    limit = asked.get("limit", [str(SHOWN)])[-1]
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MOST_SHOWN):
        raise InvalidField(
            f"limit must be a whole number from 1 to {MOST_SHOWN:,}; this one is not. "
            "Search with q, or leave limit out.",
            "limit",
        )
    return call.service.list_actions(asked.get("q", [""])[-1], int(limit))


async def change_actions(call: Call) -> dict[str, Any]:
    await call.service.change_actions(call.body.add, call.body.remove, call.caller)
    return call.service.list_actions()


async def ledger(call: Call) -> dict[str, Any]:
    return await call.service.ledger()


async def status(call: Call) -> dict[str, Any]:
    return await call.service.status()


async def set_mode(call: Call) -> dict[str, Any]:
    await call.service.set_mode(call.body.mode, call.caller)
    return await call.service.status()


async def set_serving(call: Call) -> dict[str, Any]:
    await call.service.set_serving(call.body.release, call.caller)
    return await call.service.status()


async def burn(call: Call) -> dict[str, Any]:
    await call.service.burn(call.body.batch, call.caller)
    return await call.service.status()


async def erase(call: Call) -> Erased:
    await call.service.erase(call.body.user, call.caller)
    return Erased(True)


async def create_key(call: Call) -> dict[str, Any]:
    body = call.body
    return await call.service.create_key(
        body.scopes, body.label, body.expires_in, body.rate, call.caller
    )


async def list_keys(call: Call) -> dict[str, Any]:
    return {"keys": [key.shown() for key in await call.service.list_keys()]}


async def revoke_key(call: Call) -> dict[str, Any]:
    return await call.service.revoke_key(call.body.id, call.caller)


async def changes(call: Call) -> dict[str, Any]:
    return {"changes": [asdict(each) for each in await call.service.changes()]}


async def public_metrics(call: Call) -> Raw:
    text = call.metrics.public(await call.service.status(), await call.service.ledger())
    return Raw(text, "text/plain; version=0.0.4; charset=utf-8")


async def internal_metrics(call: Call) -> Raw:
    """Exact figures, which depend on people's answers: only on this machine, if switched on."""
    if not call.service.settings.internal_metrics or not on_this_machine(call.client):
        raise ServiceError(
            "internal metrics must be switched on, and read from this machine; one of the two is "
            "not so. Set internal_metrics = true, and ask from the machine that serves.",
            status=404,
            code="not_found",
        )
    return Raw(call.metrics.internal(), "text/plain; version=0.0.4; charset=utf-8")


def on_this_machine(client: str) -> bool:
    """Whether an address is a loopback address of this machine."""
    try:
        return ipaddress.ip_address(client).is_loopback
    except ValueError:
        return False


async def healthz(call: Call) -> dict[str, Any]:  # noqa: ARG001
    return {"status": "alive"}


async def readyz(call: Call) -> dict[str, Any]:
    faults = call.service.state.unready
    if faults:
        told = ", ".join(f"{name} ({fault})" for name, fault in faults.items())
        raise ServiceError(
            f"service must be able to decide; what is at fault: {told}. Wait, or read the log and "
            "GET /v1/status.",
            status=503,
            code="not_ready",
        )
    return {"status": "ready"}
