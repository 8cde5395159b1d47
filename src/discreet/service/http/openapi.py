"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

from typing import Any

import msgspec

from discreet.service.http.bodies import Failure
from discreet.service.http.routes import PUBLIC, Route

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


def document(routes: tuple[Route, ...], title: str, prefix: str = "") -> dict[str, Any]:
    """OpenAPI 3.1 for all routes."""
    shapes = [Failure]
    for route in routes:
        shapes += [shape for shape in (route.body, route.answer) if shape is not None]
    references, components = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}"
    )
    refer = dict(zip(shapes, references, strict=True))
    paths: dict[str, Any] = {}
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


def _operation(route: Route, refer: dict[Any, Any]) -> dict[str, Any]:
    plain = route.path.endswith("metrics")
    kind = "text/plain" if plain else "application/json"
    shape = refer.get(route.answer, {"type": "string" if plain else "object"})
    failure = {"application/json": {"schema": refer[Failure]}}
    errors = {**ERRORS, **OUTCOMES.get(route.path, {})}
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "security": [] if route.scopes == PUBLIC else [{"key": []}],
        "responses": {
            "200": {"description": "done", "content": {kind: {"schema": shape}}},
            **{
                status: {"description": words, "content": failure}
                for status, words in sorted(errors.items())
            },
        },
    }
    if route.body is not None:
        content = {"application/json": {"schema": refer[route.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    parameters = []
    if "{number}" in route.path:
        parameters.append(_parameter("number", "path", True, {"type": "string"}))
    if route.path == "/v1/decide":
        limits = {"type": "string", "minLength": 1, "maxLength": 255}
        parameters.append(_parameter("Idempotency-Key", "header", False, limits))
    if route.path == "/v1/actions":
        parameters.append(_parameter("q", "query", False, {"type": "string"}))
        parameters.append(_parameter("limit", "query", False, {"type": "integer", "minimum": 1}))
    if parameters:
        operation["parameters"] = parameters
    return operation


def _parameter(name: str, place: str, required: bool, schema: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": schema}
