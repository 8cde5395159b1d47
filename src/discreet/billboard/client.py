"""Client and Billboard: the two ways to use a decision service from Python.

``Client`` sends contexts and losses to the service. ``Billboard`` takes what the service
published, verifies it and evaluates the policy locally, so that no context is sent.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from discreet.billboard.board import Billboard
from discreet.billboard.transport import Transport, as_json

__all__ = ["Billboard", "Client", "Decision", "Ticket"]


@dataclass(frozen=True)
class Decision:
    """What the service chose; report the loss with ``id``.

    ``action`` is a name where the service's plan has names, else a number. ``release`` is the
    number of the document whose policy chose. If ``stored`` is False, the loss is not needed, and
    reporting it changes nothing. ``ranking`` is all that was offered in a sampled order, the action
    first, if it was asked for.
    """

    id: str
    action: int | str
    release: int
    stored: bool
    ranking: list[int | str] | None = None


@dataclass(frozen=True)
class Ticket:
    """A slot for a decision that is made elsewhere, with the policy of document ``release``.

    Where ``action`` is not None, the slot is of the control share: play that action instead.
    """

    id: str
    release: int
    stored: bool
    action: int | str | None = None


class Client:
    """The HTTP interface of ``discreet serve``; safe to use from several threads.

    A refusal is a ``ServiceError`` with the service's status, code and message. ``key`` is an
    API key, ``dk_…``; ``timeout`` is in seconds for one attempt.
    """

    def __init__(
        self, url: str, key: str | None = None, *, timeout: float = 10.0, retries: int = 3
    ) -> None:
        self._transport = Transport(url, key, timeout=timeout, retries=retries)

    def decide(
        self,
        context: Any,
        *,
        actions: Sequence[Any] | None = None,
        ranking: bool = False,
        user: str | None = None,
        deferred: bool = False,
    ) -> Decision:
        """Choose an action for a context; the decision counts once, even after network failures.

        A ``deferred`` decision counts only after ``activate``. ``user`` is who is asked about, if
        the unit of privacy is a user: always the same text for the same person. ``actions`` is
        what is offered: names or ids, or items {"id": …} with features that only this request has.
        """
        body = _given(
            context=context,
            user=user,
            deferred=deferred or None,
            actions=None if actions is None else list(actions),
            ranking=ranking or None,
        )
        answer = self._transport.post("/v1/decide", body, {"Idempotency-Key": uuid.uuid4().hex})
        made = answer["decision"], answer["action"], answer["release"], answer["stored"]
        return Decision(*made, answer.get("ranking"))

    def ticket(self, *, user: str | None = None) -> Ticket:
        """A slot without a context: play its ``action``, or decide with a ``Billboard`` if it has
        none, then ``observe`` all at once.

        ``user`` is whose slot it is, if the unit of privacy is a user.
        """
        answer = self._transport.post("/v1/tickets", _given(user=user))
        return Ticket(answer["ticket"], answer["release"], answer["stored"], answer.get("action"))

    def observe(
        self,
        decision: Decision | Ticket | str,
        loss: float | None = None,
        *,
        reward: float | None = None,
        context: Any = None,
        action: int | str | Mapping[str, Any] | None = None,
    ) -> None:
        """Report the loss of a decision, or its reward where the plan of the service has rewards.

        The plan declares the range: by default losses in [0, 1]. Reporting again changes nothing.
        A ticket needs its context and action as well: they are sent only now.
        """
        self._transport.post(
            "/v1/observe",
            _given(
                decision=_id(decision),
                loss=loss,
                reward=reward,
                context=context,
                action=action,
            ),
        )

    def observe_many(
        self,
        losses: Iterable[tuple[Decision | str, float]] = (),
        *,
        rewards: Iterable[tuple[Decision | str, float]] = (),
    ) -> list[dict[str, Any]]:
        """Report many losses, or rewards, in one request; status, and error if any, of each."""
        listed = [
            {"decision": _id(decision), word: value}
            for word, values in (("loss", losses), ("reward", rewards))
            for decision, value in values
        ]
        answer = self._transport.post("/v1/observe:batch", {"observations": listed})
        results: list[dict[str, Any]] = answer["results"]
        return results

    def activate(self, decision: Decision | str) -> None:
        """Say that a deferred decision was shown to its person."""
        self._transport.post("/v1/activate", {"decision": _id(decision)})

    def status(self) -> Any:
        """The state of the experiment: batches, their slots, when the next release is due."""
        return as_json(self._transport.get("/v1/status"))

    def lift(self) -> Any:
        """How the policy fares beside the control, where the plan has a control share."""
        return as_json(self._transport.get("/v1/lift"))

    def releases(self) -> Any:
        """The list of published documents; ``Billboard`` fetches and verifies them."""
        return as_json(self._transport.get("/v1/releases"))

    def actions(self, q: str = "", *, limit: int = 100) -> Any:
        """The actions in use whose name contains ``q``."""
        asked = urlencode({"q": q, "limit": limit})
        return as_json(self._transport.get(f"/v1/actions?{asked}"))

    def change_actions(self, *, add: Sequence[Any] = (), remove: Sequence[str] = ()) -> Any:
        """Let actions join and leave, with the key of an admin; the actions that are then in use.

        Never change them because of what people answered: that would be a release of its own.
        """
        body = {"add": list(add), "remove": list(remove)}
        return self._transport.post("/v1/admin/actions", body)

    def schema(self) -> Any:
        """What a context must look like."""
        return as_json(self._transport.get("/v1/schema"))

    def ledger(self) -> Any:
        """What was spent of the privacy budget."""
        return as_json(self._transport.get("/v1/ledger"))

    def close(self) -> None:
        """Close the kept connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _id(decision: Decision | Ticket | str) -> str:
    return decision if isinstance(decision, str) else decision.id


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}
