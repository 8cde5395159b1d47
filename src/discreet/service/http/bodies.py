"""Shapes of requests and answers. Parsing is strict: no unknown key, no text for a number."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from discreet.features.category import Category
from discreet.features.column_values import Field
from discreet.features.date import Date
from discreet.features.flag import Flag
from discreet.features.number import Number
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.plan.plan import Plan
from discreet.service.access import ErrorDetail

MOST = 1000
"""The most observations in one request."""
MOST_OFFERED = 10_000
"""The most actions that one request is offered."""

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=65_536)]
User = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """Every request body."""


def _body(name: str, *fields: Any) -> Any:
    """Return the class of a request body with these fields."""
    return msgspec.defstruct(name, fields, bases=(Body,))


Person = _body("Person", ("user", User))
Activate = _body("Activate", ("decision", Text))
Mode = _body("Mode", ("mode", str))
ServedRelease = _body("ServedRelease", ("release", Count | None))
Burn = _body("Burn", ("batch", Count))
RevokedKey = _body("RevokedKey", ("id", str))


class ActionsChange(Body):
    """Names, or items with ``id`` and features, that join; names that leave."""

    add: list[str | dict[str, Any]] = []
    remove: list[str] = []


class NewExperiment(Body):
    """``toml`` is the text of its file; without it, the example that ``--init`` writes."""

    name: Annotated[str, msgspec.Meta(max_length=48)]
    toml: Annotated[str, msgspec.Meta(max_length=200_000)] | None = None


class ArchivedExperiment(Body):
    """``burn`` gives up what was stored and not released."""

    burn: bool = False


class NewKey(Body):
    scopes: list[str]
    label: Annotated[str, msgspec.Meta(max_length=200)] = ""
    expires_in: Annotated[str, msgspec.Meta(max_length=20)] | None = None
    rate: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None


class Stored(msgspec.Struct):
    stored: bool


class Activated(msgspec.Struct):
    activated: bool


class Erased(msgspec.Struct):
    erased: bool


class Failure(msgspec.Struct):
    """The one shape of an error."""

    error: ErrorDetail


class Result(msgspec.Struct, omit_defaults=True):
    status: int
    stored: bool | None = None
    error: ErrorDetail | None = None


class Results(msgspec.Struct):
    results: list[Result]


def context_schema(schema: Schema) -> dict[str, object]:
    """Return the JSON Schema of a context.

    >>> from discreet import Number
    >>> context_schema(Schema([Number("age", 0, 120)]))["properties"]
    {'age': {'type': 'number', 'minimum': 0, 'maximum': 120}}
    """
    optional = {each.name for each in schema.fields if each.indicator or each.stand_in is not None}
    shapes = {each.name: _column_schema(each) for each in schema.fields}
    return {
        "properties": {
            name: {"anyOf": [shape, {"type": "null"}]} if name in optional else shape
            for name, shape in shapes.items()
        },
        "required": [name for name in shapes if name not in optional],
        "additionalProperties": False,
    }


def _column_schema(column: Field) -> dict[str, object]:
    match column:
        case Number(clip=True):
            return {"type": "number"}
        case Number():
            return {"type": "number", "minimum": column.low, "maximum": column.high}
        case Flag():
            return {"enum": [True, False, 1, 0]}
        case Category(other=True):
            return {"type": "string" if column.of_words else "integer"}
        case Category():
            return {"enum": list(column.values)}
        case Date():
            return {"type": "string", "description": column.rule}
    return {"type": ["string", "integer"]}


class Bodies:
    """The bodies whose shape the plan decides. A request names its user exactly where the unit of
    privacy is a user."""

    def __init__(self, plan: Plan) -> None:
        # Arrays must hold numbers; the fields of a schema check themselves and name the field.
        context: Any = dict[str, Any]
        described = context
        if isinstance(plan.contexts, Schema):
            meta = msgspec.Meta(extra_json_schema=context_schema(plan.contexts))
            described = Annotated[dict[str, Any], meta]
        elif isinstance(plan.contexts, UnitBall):
            d = plan.contexts.dimension
            described = context = Annotated[list[float], msgspec.Meta(min_length=d, max_length=d)]
        chosen: Any = Annotated[int, msgspec.Meta(ge=0, lt=plan.n_actions)]
        if plan.actions is not None:  # the actions themselves may change
            chosen = str
        # A device may have played an item of its own.
        item, played = (
            (int | str, chosen) if plan.catalogue is None else (str | dict[str, Any],) * 2
        )
        offered = Annotated[list[item], msgspec.Meta(max_length=MOST_OFFERED)]  # type: ignore[valid-type]
        self.outcome = plan.outcome
        value: Any = float
        if not plan.outcome.clip:
            value = Annotated[float, msgspec.Meta(ge=plan.outcome.low, le=plan.outcome.high)]
        user: list[Any] = [] if plan.participation is None else [("user", User)]
        sticky: Any = ("sticky", User | None, None)
        rails: list[Any] = []
        if plan.guardrails is not None:
            optional = [
                (each.name, Annotated[float, msgspec.Meta(ge=each.low, le=each.high)] | None, None)
                for each in plan.guardrails
            ]
            rails = [("guardrails", _body("Guardrails", *optional) | None, None)]
        self.decide = _body(
            "Decide",
            ("context", described),
            *user,
            ("deferred", bool, False),
            ("actions", offered | None, None),
            ("ranking", bool, False),
            sticky,
        )
        self.ticket = _body("Ticket", *user, sticky)
        self.observe: Any = msgspec.defstruct(
            "Observe",
            [
                ("decision", Text),
                ("value", value),
                ("context", context | None, None),
                ("action", played | None, None),
                *rails,
            ],
            bases=(Body,),
            rename={"value": plan.outcome.word},
        )
        observe: Any = self.observe
        many: Any = Annotated[list[observe], msgspec.Meta(min_length=1, max_length=MOST)]
        self.observe_batch = _body("ObserveBatch", ("observations", many))
        replied: list[Any] = [("release", int), ("stored", bool)]
        ranking: Any = ("ranking", list[chosen] | msgspec.UnsetType, msgspec.UNSET)
        self.decided = msgspec.defstruct(
            "DecisionReply", [("decision", str), ("action", chosen), *replied, ranking]
        )
        drawn: list[Any] = [
            ("action", chosen | None, None),
            ("u", tuple[float, float] | None, None),
        ]
        self.ticketed = msgspec.defstruct("TicketReply", [("ticket", str), *replied, *drawn])
