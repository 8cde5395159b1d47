"""Table of routes, and the OpenAPI document that is made from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from discreet.service.access import ANSWER, DECIDE, OTHER, TICKET, UNLIMITED
from discreet.service.http import bodies
from discreet.service.http.bodies import Bodies, Failure
from discreet.service.http.handlers import Call, ExperimentHandlers, ServerHandlers
from discreet.service.storage.api_keys import SCOPES, SERVER

ANY = SCOPES
PUBLIC = ("public",)
"""No key is needed."""
READ = ("release:read", "audit")


@dataclass(frozen=True)
class Route:
    """A method and a path: who may call it, the shape of its body and of its answer."""

    method: str
    path: str
    scopes: tuple[str, ...]
    handler: Callable[[Call], Awaitable[object]]
    summary: str
    body: Any = None
    answer: Any = None
    releases: bool = False
    """Open to everyone where the settings say that releases are public."""
    bucket: str = OTHER
    """The bucket of the rate limit that its requests take from."""


def experiment_routes(shapes: Bodies, handlers: ExperimentHandlers) -> tuple[Route, ...]:
    h, admin, outcome = handlers, ("admin",), shapes.outcome
    return (
        Route("POST", "/v1/decide", ("decide",), h.decide, "Choose an action for a context",
              shapes.decide, shapes.decided, bucket=DECIDE),
        Route("POST", "/v1/observe", ("observe",), h.observe,
              f"Report the {outcome.word} of a decision", shapes.observe, bodies.Stored,
              bucket=ANSWER),
        Route("POST", "/v1/observe:batch", ("observe",), h.observe_batch,
              f"Report many {outcome.plural}; each has its own result", shapes.observe_batch,
              bodies.Results, bucket=ANSWER),
        Route("POST", "/v1/activate", ("decide", "observe"), h.activate,
              "Say that a deferred decision was shown", bodies.Activate, bodies.Activated,
              bucket=ANSWER),
        Route("POST", "/v1/tickets", ("ticket",), h.ticket,
              "A slot for a device that decides by itself", shapes.ticket, shapes.ticketed,
              bucket=TICKET),
        Route("GET", "/v1/releases", READ, h.releases, "The list of documents", releases=True),
        Route("GET", "/v1/releases/{number}", READ, h.release,
              "The signed bytes of a document, by number or current", releases=True),
        Route("GET", "/v1/lift", READ, h.lift, "Policy compared with control, from releases",
              releases=True),
        Route("GET", "/v1/schema", ANY, h.schema, "What a context must contain"),
        Route("GET", "/v1/actions", ANY, h.actions, "The actions in use; q searches, limit cuts"),
        Route("GET", "/v1/ledger", ("audit",), h.ledger, "Every charge on the privacy budget"),
        Route("GET", "/v1/changes", ("audit",), h.changes, "Who changed what, the newest first"),
        Route("GET", "/v1/status", ANY, h.status, "The state of the experiment, in words"),
        Route("POST", "/v1/admin/mode", admin, h.set_mode, "online, shadow or frozen",
              bodies.Mode),
        Route("POST", "/v1/admin/serving", admin, h.set_serving,
              "Serve an older release, or the newest again", bodies.ServedRelease),
        Route("POST", "/v1/admin/actions", admin, h.change_actions,
              "Let actions join and leave, by a public document", bodies.ActionsChange),
        Route("POST", "/v1/admin/burn", admin, h.burn, "Give up a batch and erase its rows",
              bodies.Burn),
        Route("POST", "/v1/admin/erase", admin, h.erase, "Let no later slot of a user count",
              bodies.Person, bodies.Erased),
        Route("GET", "/v1/admin/keys", admin, h.list_keys, "All keys, without their secrets"),
        Route("POST", "/v1/admin/keys", admin, h.create_key, "A new key, shown once",
              bodies.NewKey),
        Route("POST", "/v1/admin/keys/revoke", admin, h.revoke_key, "Revoke a key",
              bodies.RevokedKey),
        Route("GET", "/metrics", ("audit",), h.public_metrics, "Public figures for Prometheus"),
        Route("GET", "/internal/metrics", admin, h.internal_metrics,
              "Exact figures, on this machine only"),
        Route("GET", "/healthz", PUBLIC, h.healthz, "The process is alive", bucket=UNLIMITED),
        Route("GET", "/readyz", PUBLIC, h.readyz, "The service can decide",
              bucket=UNLIMITED),
    )  # fmt: skip


def server_routes(handlers: ServerHandlers) -> tuple[Route, ...]:
    h, server, changed = handlers, (SERVER,), "/v1/admin/experiments"
    return (
        Route("GET", "/v1/experiments", server, h.listed, "All experiments and their states"),
        Route("POST", changed, server, h.create, "Begin an experiment; its admin key, shown once",
              bodies.NewExperiment),
        Route("POST", f"{changed}/{{name}}/pause", server, h.pause, "Serve and do not store"),
        Route("POST", f"{changed}/{{name}}/resume", server, h.resume, "Store again"),
        Route("POST", f"{changed}/{{name}}/end", server, h.end, "Store nothing more, for good"),
        Route("POST", f"{changed}/{{name}}/archive", server, h.archive,
              "End it and put its folder away", bodies.ArchivedExperiment),
        Route("GET", "/metrics", server, h.metrics, "Public figures of all, for Prometheus"),
        Route("GET", "/healthz", PUBLIC, h.healthz, "The process is alive", bucket=UNLIMITED),
        Route("GET", "/readyz", PUBLIC, h.readyz, "Some experiment can decide, and which cannot",
              bucket=UNLIMITED),
    )  # fmt: skip


ERRORS = {
    "401": "no valid key",
    "403": "the key lacks the scope",
    "413": "body too large",
    "415": "body is not JSON",
    "422": "content breaks a rule",
    "429": "too many requests",
    "503": "storage unavailable, nothing was stored",
}
OUTCOMES = {
    "/v1/decide": {"409": "the batch of this Idempotency-Key is over"},
    "/v1/observe": {
        "404": "no such decision",
        "409": "another loss is stored, and kept",
        "410": "the batch is over",
    },
    "/v1/activate": {"404": "no such decision", "410": "the batch is over"},
    "/v1/releases/{number}": {"404": "no such document"},
    "/v1/lift": {"404": "no control share, or nothing is released yet"},
    "/internal/metrics": {"404": "not switched on"},
}
PARAMETERS: dict[str, tuple[tuple[str, str, dict[str, object]], ...]] = {
    "/v1/decide": (
        ("Idempotency-Key", "header", {"type": "string", "minLength": 1, "maxLength": 255}),
    ),
    "/v1/releases/{number}": (("number", "path", {"type": "string"}),),
    "/v1/actions": (
        ("q", "query", {"type": "string"}),
        ("limit", "query", {"type": "integer", "minimum": 1}),
    ),
}
"""Name, location and schema of the parameters of a path."""


def openapi_document(routes: tuple[Route, ...], title: str, prefix: str = "") -> dict[str, object]:
    shapes = [Failure]
    for route in routes:
        shapes += [shape for shape in (route.body, route.answer) if shape is not None]
    references, components = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}"
    )
    refer: dict[object, Mapping[str, object]] = dict(zip(shapes, references, strict=True))
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refer)
    return {
        "openapi": "3.1.0",
        "info": {"title": f"discreet: {title}", "version": "1"},
        "servers": [{"url": prefix or "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, refer: Mapping[object, Mapping[str, object]]) -> dict[str, object]:
    plain = route.path.endswith("metrics")
    kind = "text/plain" if plain else "application/json"
    shape = refer.get(route.answer, {"type": "string" if plain else "object"})
    failure = {"application/json": {"schema": refer[Failure]}}
    responses = {"200": {"description": "done", "content": {kind: {"schema": shape}}}}
    for status, words in sorted({**ERRORS, **OUTCOMES.get(route.path, {})}.items()):
        responses[status] = {"description": words, "content": failure}
    operation: dict[str, object] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "security": [] if route.scopes == PUBLIC else [{"key": []}],
        "responses": responses,
    }
    if route.body is not None:
        content = {"application/json": {"schema": refer[route.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    if route.path in PARAMETERS:
        operation["parameters"] = [
            {"name": name, "in": location, "required": location == "path", "schema": schema}
            for name, location, schema in PARAMETERS[route.path]
        ]
    return operation
