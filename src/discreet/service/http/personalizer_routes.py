"""Routes of Azure Personalizer's API v1.0, for its clients: rank, reward and activate.

An event is a decision with its eventId as Idempotency-Key, so that a repeated rank request takes
one slot, and a reward finds its decision while the batch is under way.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

import msgspec
import numpy as np
from starlette.routing import BaseRoute
from starlette.routing import Route as Path_
from starlette.types import Message, Receive, Scope, Send

from discreet.actions.offers import read_offers
from discreet.adapters import personalizer
from discreet.adapters.personalizer import RankedItem
from discreet.errors import DecisionClosed, InvalidInput, LossConflict, ServiceError
from discreet.service.access import ANSWER, DECIDE, Access
from discreet.service.http.endpoint import ENCODER, Endpoint, HttpAnswer
from discreet.service.http.handlers import Call, Raw
from discreet.service.http.routes import ANY, Route
from discreet.service.metrics import Metrics
from discreet.service.runtime.requests import DecisionReply, RankedReply, features_of
from discreet.service.runtime.service import Service

BEFORE = "/personalizer"
KEY = b"ocp-apim-subscription-key"
CONTENT = (b"content-type", b"content-length")
RESULT = b"discreet-result"
"""Header that tells what became of a reward or an activation; clients may ignore it."""
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class RankAction(msgspec.Struct):
    id: Id
    features: list[dict[str, object]] | None = None


class Rank(msgspec.Struct, rename="camel"):
    """Fields that are unknown are ignored, as Personalizer ignores them."""

    actions: list[RankAction]
    context_features: list[dict[str, object]] | None = None
    excluded_actions: list[str] | None = None
    event_id: Id | None = None
    defer_activation: bool | None = None


class RewardValue(msgspec.Struct):
    value: float


class PersonalizerEndpoint(Endpoint):
    """Endpoint that takes the key of Personalizer's clients, and answers with their statuses."""

    def __init__(self, route: Route, access: Access, metrics: Metrics, success: int) -> None:
        super().__init__(route, access, metrics)
        self._success = success

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_bare(message: Message) -> None:
            if message.get("status") == 204:  # such an answer has no content, nor its headers
                headers = [each for each in message["headers"] if each[0] not in CONTENT]
                message = {**message, "headers": headers}
            await send(message)

        await super().__call__(scope, receive, send_bare)

    async def answer(
        self, headers: Mapping[bytes, bytes], *rest: Any, **options: Any
    ) -> HttpAnswer:
        if KEY in headers:
            headers = {**headers, b"authorization": b"Bearer " + headers[KEY]}
        found = await super().answer(headers, *rest, **options)
        if found.status == 200:
            return found._replace(status=self._success)
        error = msgspec.json.decode(found.content)["error"]
        status, document = personalizer.error_answer(found.status, error)
        return found._replace(status=status, content=ENCODER.encode(document))


class PersonalizerHandlers:
    """The handlers of the routes, over the decisions of one experiment."""

    def __init__(self, service: Service) -> None:
        self._service, self._plan = service, service.settings.plan

    async def rank(self, call: Call) -> object:
        body: Rank = call.body
        actions = [RankedItem(each.id, each.features) for each in body.actions]
        excluded = frozenset(body.excluded_actions or ())
        event = body.event_id or str(uuid.uuid4())
        context = personalizer.rank_context(self._plan, body.context_features)
        known = self._service.state.serving.chain.available_actions
        offer = personalizer.rank_offer(self._plan, known.places, actions, excluded)
        reply = await self._service.decisions.decide(
            call.caller,
            context,
            deferred=bool(body.defer_activation),
            idempotency=event,
            actions=offer,
            ranking=True,
        )
        ranking = reply.ranking if isinstance(reply, RankedReply) else []
        names = [each if isinstance(each, str) else each["id"] for each in offer]
        if sorted(map(str, ranking)) != sorted(names):
            raise InvalidInput(
                "eventId must be new, or of the same request; an earlier request with it had other "
                "actions. Give each event its own id."
            )
        named = dict(zip(names, self._chances(reply, context, offer, names), strict=True))
        return personalizer.rank_answer(
            actions, excluded, [str(each) for each in ranking], named, event
        )

    def _chances(
        self, reply: DecisionReply, context: Any, offer: list[Any], names: list[str]
    ) -> list[float]:
        """Return the probabilities of the offered actions before the slot was known.

        Privacy: with a control they are those of policy and control, weighted by its share, so that
        answers to both parts are the same. [docs/privacy/lift.md, "People"]
        """
        state, plan = self._service.state, self._plan
        if state.mode == "shadow":
            return [float(name == reply.action) for name in names]
        features = features_of(plan, context)[None]
        available = state.serving.chain.available_actions
        offers = read_offers(plan, available, features, offer, single=True)
        released = state.serving.at(reply.release)
        chances = np.asarray(offers.chances(plan.played_policy, released, None)[0])
        if plan.control is not None:
            control = offers.chances(plan.played_policy, released, np.array([True]))[0]
            chances = (1.0 - plan.control.share) * chances + plan.control.share * control
        return [float(each) for each in chances]

    async def reward(self, call: Call) -> Raw:
        if self._plan.outcome.word != "reward":
            raise InvalidInput(
                "plan must declare rewards to take them; it has losses. Write outcome = "
                "{ kind = 'Reward', low = 0, high = 1 } in the plan of a new experiment."
            )
        reward: RewardValue = call.body
        self._plan.outcome.loss_of(reward.value)  # refused also where the event is unknown
        observe = self._service.decisions.observe
        return await self._reported(call, "stored", lambda id: observe(id, reward.value))

    async def activate(self, call: Call) -> Raw:
        return await self._reported(call, "activated", self._service.decisions.activate)

    async def _reported(
        self, call: Call, done: str, report: Callable[[str], Awaitable[bool]]
    ) -> Raw:
        """Report to the decision of an event; a header of the answer has the result."""
        try:
            reply = await self._service.decisions.earlier(call.caller, call.path["event"])
            stored = reply is not None and await report(reply.decision)
            result = "unknown" if reply is None else done if stored else "not stored"
        except LossConflict:  # the first reward stays
            result = "repeated"
        except (DecisionClosed, ServiceError) as error:
            if isinstance(error, ServiceError) and error.code != "idempotency_key_used":
                raise
            result = "over"
        return Raw(b"", headers=((RESULT, result.encode()),))

    async def multi_slot(self, _call: Call) -> Raw:
        text = (
            "Multi-slot requests are not supported: a plan decides one slot, and a loss belongs to "
            "one action. Send a rank request for each slot, to an experiment of its own."
        )
        raise ServiceError(text, status=404, code="multi_slot")


def personalizer_paths(service: Service, access: Access, metrics: Metrics) -> list[BaseRoute]:
    h, event = PersonalizerHandlers(service), f"{BEFORE}/v1.0/events/{{event:path}}"
    table = (
        (201, Route("POST", f"{BEFORE}/v1.0/rank", ("decide",), h.rank, "Rank", Rank,
                    bucket=DECIDE)),
        (204, Route("POST", f"{event}/reward", ("observe",), h.reward, "Reward", RewardValue,
                    bucket=ANSWER)),
        (204, Route("POST", f"{event}/activate", ("decide", "observe"), h.activate, "Activate",
                    bucket=ANSWER)),
        (404, Route("POST", f"{BEFORE}/{{version}}/multislot/{{rest:path}}", ANY, h.multi_slot,
                    "Refuse several slots")),
    )  # fmt: skip
    return [
        Path_(each.path, PersonalizerEndpoint(each, access, metrics, success), methods=["POST"])
        for success, each in table
    ]
