"""AsyncClient: ``Client`` for programs with an event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from discreet.client.billboard import Billboard
from discreet.client.sync_client import (
    Client,
    Decision,
    Ticket,
    fallback_decision,
    unavailable,
)
from discreet.client.transport import Deadline
from discreet.errors import ServiceError

T = TypeVar("T")


class _InThread(Client):
    """A client without a deadline: its caller has one."""

    def _in_time(self, request: Callable[[], T]) -> T:
        return request()


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
        self._client = _InThread(url, key, timeout=timeout, retries=retries, deadline=deadline)
        self._deadline = Deadline(deadline)
        self.fallback = fallback

    async def decide(
        self,
        context: Any,
        *,
        actions: Sequence[Any] | None = None,
        ranking: bool = False,
        user: str | None = None,
        deferred: bool = False,
        sticky: str | None = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """Choose an action for a context."""
        try:
            return await self._run(
                self._client.decide,
                context,
                actions=actions,
                ranking=ranking,
                user=user,
                deferred=deferred,
                sticky=sticky,
                idempotency_key=idempotency_key,
            )
        except ServiceError as error:
            if self.fallback is None or not unavailable(error):
                raise
            return fallback_decision(self.fallback, context, actions)

    async def ticket(self, *, user: str | None = None, sticky: str | None = None) -> Ticket:
        """A slot for a decision that a billboard makes."""
        return await self._run(self._client.ticket, user=user, sticky=sticky)

    async def observe(
        self,
        decision: Decision | Ticket | str,
        loss: float | None = None,
        *,
        reward: float | None = None,
        context: Any = None,
        action: int | str | None = None,
    ) -> None:
        """Report the loss or the reward of a decision."""
        await self._run(
            self._client.observe, decision, loss, reward=reward, context=context, action=action
        )

    async def observe_many(
        self,
        losses: Iterable[tuple[Decision | str, float]] = (),
        *,
        rewards: Iterable[tuple[Decision | str, float]] = (),
    ) -> list[dict[str, Any]]:
        """Report many losses, or rewards, in one request."""
        return await self._run(self._client.observe_many, losses, rewards=rewards)

    async def activate(self, decision: Decision | str) -> None:
        """Report that a deferred decision was shown to its person."""
        await self._run(self._client.activate, decision)

    async def actions(self, q: str = "", *, limit: int = 100) -> Any:
        """The actions in use whose name contains ``q``."""
        return await self._run(self._client.actions, q, limit=limit)

    async def change_actions(self, *, add: Sequence[Any] = (), remove: Sequence[str] = ()) -> Any:
        """Add and remove actions, with an admin key."""
        return await self._run(self._client.change_actions, add=add, remove=remove)

    async def status(self) -> Any:
        """The state of the experiment."""
        return await self._run(self._client.status)

    async def lift(self) -> Any:
        """The lift: the policy compared with the control."""
        return await self._run(self._client.lift)

    async def releases(self) -> Any:
        """The list of published documents."""
        return await self._run(self._client.releases)

    async def schema(self) -> Any:
        """The declared features of a context."""
        return await self._run(self._client.schema)

    async def ledger(self) -> Any:
        """The spent part of the privacy budget."""
        return await self._run(self._client.ledger)

    async def close(self) -> None:
        """Close the kept connections."""
        self._deadline.close()
        self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(self, method: Callable[..., T], *given: Any, **named: Any) -> T:
        return await self._deadline.wait_async(partial(method, *given, **named))
