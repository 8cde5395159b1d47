"""Requests and answers of Azure Personalizer (API v1.0) as contexts, offers and rankings.

Features of a rank request are nested; a plan declares them by names with dots, such as
``device.mobile``. What the plan does not declare is not read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from discreet.data.files import declared_features, feature_columns, flat_features
from discreet.errors import InvalidInput
from discreet.features.schema import Schema
from discreet.features.schema_file import Suggestion, draft_text, schema_of, suggestions
from discreet.plan.plan import Plan
from discreet.text import read_text

STATUS = {409: 400, 415: 400, 422: 400}
"""HTTP status of an error where Personalizer has another than the service."""
CODES = {400: "BadRequest", 404: "ResourceNotFound", 500: "InternalServerError"}


class RankedItem(NamedTuple):
    """An action of a rank request: its id, and features as the request has them."""

    id: str
    features: Any


def rank_context(plan: Plan, features: Any) -> dict[str, Any]:
    """Return the context of a request, with the features that the plan declares."""
    if not isinstance(plan.contexts, Schema):
        raise InvalidInput(
            "plan must declare the features of contexts by a Schema to serve rank requests; it has "
            "a UnitBall. Draft a schema from sample requests: discreet schema requests.jsonl."
        )
    return declared_features(plan.contexts, flat_features(features or ()))


def rank_offer(
    plan: Plan, known: Collection[Any], actions: Sequence[RankedItem], excluded: Collection[str]
) -> list[Any]:
    """Return the offer of a request, without excluded actions.

    An action that the plan knows is offered by its id; any other brings its features along.
    """
    if plan.actions is None:
        raise InvalidInput(
            "plan must have actions with names, or a catalogue, to serve rank requests; its "
            "actions are numbers. Write actions = ['a', 'b'] in the plan."
        )
    schema = None if plan.catalogue is None else plan.catalogue.schema
    offer: list[Any] = []
    for action in actions:
        if action.id in excluded:
            continue
        if action.id in known or not isinstance(schema, Schema):
            offer.append(action.id)
        else:
            given = declared_features(schema, flat_features(action.features or ()))
            offer.append({**given, "id": action.id})
    return offer


def rank_answer(
    actions: Sequence[RankedItem],
    excluded: Collection[str],
    ranking: Sequence[str],
    chances: Mapping[str, float],
    event: str,
) -> dict[str, Any]:
    """Return the answer to a rank request: excluded actions keep their places, with probability 0.

    >>> items = [RankedItem(id, []) for id in "abc"]
    >>> rank_answer(items, ["a"], ["c", "b"], {"b": 0.25, "c": 0.75}, "1")["rewardActionId"]
    'c'
    """
    order = list(ranking)
    for place, action in enumerate(actions):
        if action.id in excluded:
            order.insert(place, action.id)
    return {
        "ranking": [{"id": id, "probability": chances.get(id, 0.0)} for id in order],
        "eventId": event,
        "rewardActionId": ranking[0],
    }


def error_answer(status: int, error: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return an error of the service with the status and in the form of Personalizer."""
    status = STATUS.get(status, status)
    code = CODES.get(500 if status >= 500 else status, str(status))
    found = {"code": code, "message": error["message"], "innerError": {"code": error["code"]}}
    if error.get("field"):
        found["target"] = error["field"]
    return status, {"error": found}


@dataclass(frozen=True)
class RankDraft:
    """Suggested fields of contexts and of actions, from a sample of rank requests.

    ``ids`` are those of the actions. Where no feature differs between actions, they are
    named actions of the plan.
    """

    contexts: list[Suggestion]
    actions: list[Suggestion]
    ids: tuple[str, ...]

    def experiment(self) -> str:
        """Return the text of an experiment file for ``discreet serve --init``."""
        with_features = any(each.field is not None for each in self.actions)
        names = "" if with_features else f"actions = {json.dumps(self.ids)}\n"
        parts = [HEAD.format(names=names), *_tables("plan.features", self.contexts)]
        if with_features:
            parts.append("\n[plan.actions]\nitems = []  # each request brings its actions along\n")
            parts += _tables("plan.actions.schema", self.actions)
        return "".join(parts)


HEAD = """\
# An experiment for rank requests of Azure Personalizer: a first draft from sample requests, which
# must be public or made up. Ranges and words of the people of the experiment are facts about them,
# which no noise covers. Read every line, and correct it by what you know.
experiment = "personalizer"
window = "10m"        # the reward wait time

[plan]
{names}outcome = {{ kind = "Reward", low = 0, high = 1, clip = true }}
missing_loss = 1      # the default reward, 0, as a loss
budget = {{ epsilon = 1, delta = 1e-6 }}
"""


def draft_experiment(path: str | Path) -> RankDraft:
    """Suggest schemas of contexts and actions from a file with a rank request per line."""
    contexts, items, ids = [], [], dict[str, None]()
    for number, line in enumerate(read_text(path, "sample").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            request = json.loads(line)
            request["actions"][0]["id"]
        except (ValueError, TypeError, LookupError):
            raise InvalidInput(
                f"line {number}: a sample must have a rank request, a JSON object with actions, in "
                "each line; this line has none. Write one request per line."
            ) from None
        contexts.append(flat_features(request.get("contextFeatures") or ()))
        for action in request["actions"]:
            items.append(flat_features(action.get("features") or ()))
            ids[str(action["id"])] = None
    found = suggestions(feature_columns(contexts))
    schema_of(found)  # fails now, if no feature is worth having
    return RankDraft(found, suggestions(feature_columns(items)), tuple(ids))


def _tables(name: str, found: list[Suggestion]) -> Iterator[str]:
    """A schema as a table of an experiment file, with the reasons as comments."""
    text = draft_text(found, f'\n[{name}]\nkind = "Schema"\n')
    yield text.replace("[[fields]]", f"[[{name}.fields]]")
