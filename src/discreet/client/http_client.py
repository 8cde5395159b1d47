"""HTTP clients of a decision service, for threads (``Client``) and event loops (``AsyncClient``).

They send contexts and losses to the service. ``Billboard`` decides locally instead.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import urlencode

from discreet.client.billboard import Billboard
from discreet.client.transport import Deadline, Transport, as_json
from discreet.errors import ServiceError
from discreet.types import JsonMapping, JsonObject

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Decision:
    """A decision of the service; report the loss with ``id``.

    ``action`` is a name where the service's plan has names, else a number. ``release`` is the
    number of the document whose policy chose. If ``stored`` is False, the loss is not needed, and
    reporting it changes nothing. ``ranking`` has all offered actions in a sampled order, the chosen
    one first, if it was requested. ``fallback`` means that the service did not answer in time and
    the client chose; ``release`` is −1 then, unless a billboard chose.
    """

    id: str
    action: int | str
    release: int
    stored: bool
    ranking: list[int | str] | None = None
    fallback: bool = False


@dataclass(frozen=True)
class Ticket:
    """A slot for a decision that is made elsewhere, with the policy of document ``release``.

    Where ``action`` is not None, the slot is of the control share: play that action instead.
    Where ``u`` is not None, the decision is sticky: draw with it, ``board.sample(context, u)``.
    """

    id: str
    release: int
    stored: bool
    action: int | str | None = None
    u: tuple[float, float] | None = None


Report = tuple[Decision | str, float] | tuple[Decision | str, float, Mapping[str, float | None]]
"""A decision, its loss or reward, and values of guardrails."""


class Client:
    """The HTTP interface of ``discreet serve``; safe to use from several threads.

    A refusal is a ``ServiceError`` with the service's status, code and message. ``key`` is an
    API key, ``dk_…``; ``timeout`` is in seconds for one attempt, ``deadline`` for a whole call
    with its retries. ``fallback`` is what ``decide`` answers if the service does not: an action,
    or a ``Billboard`` that decides here by the releases that it has verified.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 3,
        deadline: float | None = None,
        fallback: int | str | Billboard | None = None,
    ) -> None:
        self._deadline = Deadline(deadline)
        self._transport = Transport(url, key, timeout=timeout, retries=retries, deadline=deadline)
        self.fallback = fallback

    def decide(
        self,
        context: object,
        *,
        actions: Sequence[object] | None = None,
        ranking: bool = False,
        user: str | None = None,
        deferred: bool = False,
        sticky: str | None = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """Choose an action for a context; the decision counts once, even after network failures.

        A ``deferred`` decision counts only after ``activate``. ``user`` is the person, if
        the unit of privacy is a user: always the same text for the same person. ``actions`` is
        what is offered: names or ids, or items {"id": …} with features that only this request has.
        The same ``sticky`` text and context get the same action until a release changes the policy.
        Calls with the same ``idempotency_key`` are one decision; by default each call is its own.
        """
        body = _given(
            context=context,
            user=user,
            deferred=deferred or None,
            actions=None if actions is None else list(actions),
            ranking=ranking or None,
            sticky=sticky,
        )
        name = {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}
        try:
            answer = self._post("/v1/decide", body, name)
        except ServiceError as error:
            return _fallback(self.fallback, error, context, actions)  # type: ignore[no-any-return]
        made = answer["decision"], answer["action"], answer["release"], answer["stored"]
        return Decision(*made, answer.get("ranking"))

    def ticket(self, *, user: str | None = None, sticky: str | None = None) -> Ticket:
        """A slot without a context: play its ``action``, or decide with a ``Billboard`` if it has
        none, then ``observe`` all at once.

        ``user`` is whose slot it is, if the unit of privacy is a user. With a ``sticky`` text the
        ticket has the ``u`` that the service would decide with.
        """
        answer = self._post("/v1/tickets", _given(user=user, sticky=sticky))
        u, made = answer.get("u"), (answer["ticket"], answer["release"], answer["stored"])
        return Ticket(*made, answer.get("action"), None if u is None else (u[0], u[1]))

    def observe(
        self,
        decision: Decision | Ticket | str,
        loss: float | None = None,
        *,
        reward: float | None = None,
        context: object = None,
        action: int | str | JsonMapping | None = None,
        guardrails: Mapping[str, float | None] | None = None,
    ) -> None:
        """Report the loss of a decision, or its reward where the plan of the service has rewards.

        The plan declares the range: by default losses in [0, 1]. Reporting again changes nothing.
        ``guardrails`` are values of the plan's guardrails by name; others are not observed.
        A ticket needs its context and action as well: they are sent only now. A fallback took no
        slot, and nothing is sent of it.
        """
        if isinstance(decision, Decision) and decision.fallback:
            return
        body = _given(decision=_id(decision), loss=loss, reward=reward, guardrails=guardrails)
        self._post("/v1/observe", body | _given(context=context, action=action))

    def observe_many(
        self,
        losses: Iterable[Report] = (),
        *,
        rewards: Iterable[Report] = (),
    ) -> list[JsonObject]:
        """Report many losses, or rewards, in one request; status, and error if any, of each.

        A report is a pair of decision and value, or a triple with guardrails by name. Leave out
        decisions that are a ``fallback``: the service knows nothing of them.
        """
        listed = [
            _given(decision=_id(decision), guardrails=dict(*rails) or None) | {word: value}
            for word, values in (("loss", losses), ("reward", rewards))
            for decision, value, *rails in values
        ]
        return self._post("/v1/observe:batch", {"observations": listed})["results"]  # type: ignore[no-any-return]

    def activate(self, decision: Decision | str) -> None:
        """Report that a deferred decision was shown to its person."""
        if not (isinstance(decision, Decision) and decision.fallback):
            self._post("/v1/activate", {"decision": _id(decision)})

    def status(self) -> JsonObject:
        """The state of the experiment: batches, their slots, when the next release is due."""
        return self._get("/v1/status")

    def lift(self) -> JsonObject:
        """The lift: the policy compared with the control, where the plan has a control share."""
        return self._get("/v1/lift")

    def releases(self) -> JsonObject:
        """The list of published documents; ``Billboard`` fetches and verifies them."""
        return self._get("/v1/releases")

    def actions(self, q: str = "", *, limit: int = 100) -> JsonObject:
        """The actions in use whose name contains ``q``."""
        return self._get(f"/v1/actions?{urlencode({'q': q, 'limit': limit})}")

    def change_actions(
        self, *, add: Sequence[object] = (), remove: Sequence[str] = ()
    ) -> JsonObject:
        """Add and remove actions, with the key of an admin; return the actions then in use.

        Never change them because of observed outcomes: that would be a separate release.
        """
        return self._post("/v1/admin/actions", {"add": list(add), "remove": list(remove)})

    def schema(self) -> JsonObject:
        """The declared features of a context."""
        return self._get("/v1/schema")

    def ledger(self) -> JsonObject:
        """The spent part of the privacy budget."""
        return self._get("/v1/ledger")

    def close(self) -> None:
        """Close the idle connections."""
        self._deadline.close()
        self._transport.close()

    def _post(self, path: str, body: object, headers: dict[str, str] | None = None) -> JsonObject:
        return self._deadline.wait(lambda: self._transport.post(path, body, headers))

    def _get(self, path: str) -> JsonObject:
        answer: JsonObject = as_json(self._deadline.wait(lambda: self._transport.get(path)))
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def unavailable(error: ServiceError) -> bool:
    """Return whether the service gave no answer that says what is wrong with the request."""
    status, lost = error.status, error.code == "idempotency_key_used"
    return status is None or status >= 500 or status in (408, 429) or lost


def _fallback(
    fallback: int | str | Billboard | None,
    error: ServiceError,
    context: object,
    actions: Any = None,
    **_: object,
) -> Any:
    """Return the decision of the client itself, which takes no slot; else raise the error."""
    if fallback is None or not unavailable(error):
        raise error
    if not isinstance(fallback, Billboard):
        return Decision("", fallback, -1, False, fallback=True)
    action = fallback.sample(context, actions=actions)
    return Decision("", action, fallback.number, False, fallback=True)


def _id(decision: Decision | Ticket | str) -> str:
    return decision if isinstance(decision, str) else decision.id


def _given(**fields: object) -> JsonObject:
    """The fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def _coroutine(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Return a method of ``Client`` as a coroutine with the same arguments."""

    @wraps(method)
    async def run(self: AsyncClient, /, *given: P.args, **named: P.kwargs) -> T:
        try:
            return await self._deadline.wait_async(partial(method, self._client, *given, **named))
        except ServiceError as error:
            if method.__name__ != "decide":
                raise
            made: T = _fallback(self.fallback, error, *given, **named)
            return made

    return run


class AsyncClient:
    """``Client`` with coroutines: the same arguments, answers, retries and errors.

    Requests run in threads, up to 32 at once; ``deadline`` ends the wait also for those that wait
    for a thread.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 3,
        deadline: float | None = None,
        fallback: int | str | Billboard | None = None,
    ) -> None:
        self._client = Client(url, key, timeout=timeout, retries=retries, deadline=deadline)
        # The coroutine waits, not the thread that sends the request.
        self._deadline, self._client._deadline = self._client._deadline, Deadline(None)
        self.fallback = fallback

    decide = _coroutine(Client.decide)
    ticket = _coroutine(Client.ticket)
    observe = _coroutine(Client.observe)
    observe_many = _coroutine(Client.observe_many)
    activate = _coroutine(Client.activate)
    actions = _coroutine(Client.actions)
    change_actions = _coroutine(Client.change_actions)
    status = _coroutine(Client.status)
    lift = _coroutine(Client.lift)
    releases = _coroutine(Client.releases)
    schema = _coroutine(Client.schema)
    ledger = _coroutine(Client.ledger)

    async def close(self) -> None:
        """Close the idle connections."""
        self._deadline.close()
        self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()
