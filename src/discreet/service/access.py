"""Access to an experiment or to the server: its API keys, rate limits, refused callers, and the
status, code and message of every error."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from time import perf_counter
from typing import TypeVar

import msgspec

from discreet import errors
from discreet.errors import DiscreetError, ServiceError, StateClaimed
from discreet.service.logs import Log
from discreet.service.membership import Members
from discreet.service.runtime.service import Service
from discreet.service.secrets.vault import Vault
from discreet.service.settings import ServerSettings
from discreet.service.storage import api_keys
from discreet.service.storage.api_keys import DATABASE, VAULT, Key
from discreet.service.storage.database import Connection, create_tables
from discreet.service.storage.sqlite import Sqlite
from discreet.types import JsonObject

T = TypeVar("T")
# Privacy: whether somebody answers is protected, and whether a decision gets a slot is public. So
# answers never empty a bucket of decisions. [docs/privacy/service.md, "Slots do not move"]
DECIDE, TICKET, ANSWER, OTHER, UNLIMITED = "decide", "ticket", "answer", "other", ""
"""The bucket that a route takes from; health checks have no limit."""
_STATUS: dict[type[DiscreetError], tuple[int, str]] = {
    errors.InvalidInput: (422, "invalid"),
    errors.UnknownDecision: (404, "unknown_decision"),
    errors.LossConflict: (409, "conflict"),
    errors.DecisionClosed: (410, "over"),
    errors.BudgetExceeded: (409, "budget_exceeded"),
    errors.CorruptRelease: (503, "corrupt_release"),
    errors.NotReady: (503, "not_ready"),
    errors.StateClaimed: (503, "state_claimed"),
}


class ErrorDetail(msgspec.Struct, omit_defaults=True):
    """Code and message of an error, and the field of the request that caused it."""

    code: str
    message: str
    field: str | None = None


def problem_of(error: Exception, lost: tuple[type[Exception], ...]) -> tuple[int, ErrorDetail]:
    """Return status and detail; unknown errors are 503 if storage failed, else 500."""
    if isinstance(error, ServiceError):
        return error.status or 500, ErrorDetail(error.code or "error", str(error), error.field)
    for kind, (status, code) in _STATUS.items():
        if isinstance(error, kind):
            return status, ErrorDetail(code, str(error), getattr(error, "field", None))
    if isinstance(error, (*lost, OSError)):
        # After a lost answer to COMMIT, or a failed sync, it is unknown whether it was stored.
        text = "storage must be available; the database fails. Try again: with the same "
        text += "Idempotency-Key a decision counts once, and a loss always does."
        return 503, ErrorDetail("storage_unavailable", text)
    return 500, ErrorDetail("internal", "Internal error. The operator finds details in the log.")


REMEMBERED = 100_000
"""Maximum number of callers that are counted at once."""
PER_SECOND = 50
"""Maximum number of refused requests per second and address that are answered with the reason.
Callers with a valid key are not limited by it, also behind the same address."""


def _too_many(text: str) -> ServiceError:
    return ServiceError(text, status=429, code="too_many_requests")


class RateLimit:
    """Token buckets: at most ``rate`` requests per second, key and bucket; 0 is no limit."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._left: dict[tuple[str, str], tuple[float, float]] = {}

    def take(self, bucket: str, key: str, own: int | None = None) -> None:
        """Count one request, or refuse it with 429; ``own`` is the rate of this key."""
        rate = own or self._rate
        if not rate or bucket == UNLIMITED:
            return
        now = time.monotonic()
        left, before = self._left.get((bucket, key), (float(rate), now))
        left = min(float(rate), left + (now - before) * rate)
        if left < 1.0:
            raise _too_many(
                f"requests must stay below {rate} per second; this key sends more. Wait."
            )
        if len(self._left) >= REMEMBERED:  # addresses, which a caller may invent
            self._left.clear()
        self._left[bucket, key] = (left - 1.0, now)


class Refusals:
    """Count of refused authentications, by address in memory and without it in the log."""

    def __init__(self, log: Log) -> None:
        self._log, self._rate = log, RateLimit(PER_SECOND)
        self._proxies = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1").split(",")

    def count(self, error: ServiceError, headers: Mapping[bytes, bytes], peer: str) -> ServiceError:
        """Return the error to answer with: the given one, or 429 if this address has too many."""
        self._log.failure("authentication refused")
        if peer in self._proxies or "*" in self._proxies:  # a trusted proxy names the address
            named = headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")[-1].strip()
            peer = named[:64] or peer
        try:
            self._rate.take(OTHER, peer)
        except ServiceError:
            return _too_many(
                f"refused keys must stay below {PER_SECOND} per second and address; this address "
                "sends more. Wait, and use a valid key."
            )
        return error


class Access(ABC):
    """Keys, members, limits and log for the requests to one experiment, or to the server itself."""

    members: Members
    experiment = ""
    """Name by which members have a role for this experiment alone; empty for a whole server."""

    def __init__(self, log: Log, settings: ServerSettings, vault: Vault) -> None:
        self.log, self.body_limit, self.prefix = log, settings.body_limit, settings.prefix
        self._vault = vault
        self.rate, self.refusals = RateLimit(settings.rate_limit), Refusals(log)
        self.public_releases = False
        self.storage_errors: tuple[type[Exception], ...] = ()
        self.labels: dict[str, JsonObject] = {}
        """Values of the privacy label by the digest of the newest document."""

    @property
    @abstractmethod
    def keys(self) -> dict[str, Key]:
        """API keys by id."""

    @property
    def session_secret(self) -> bytes:
        return self._vault.mac

    def note_use(self, key: str) -> None:  # noqa: B027
        """Note that a key was used; the keys of a server have no such note."""

    async def wake(self) -> None:  # noqa: B027
        """Prepare for a request; an experiment without requests suspends its upkeep."""

    @abstractmethod
    async def now(self) -> float:
        """Return the time by the clock of the database."""

    @abstractmethod
    async def end_sessions(self, key: str) -> None:
        """End every session of the dashboard that began with this key."""


class ExperimentAccess(Access):
    """Access to one experiment; without the ``members`` of a server it has its own."""

    def __init__(self, service: Service, members: Members | None = None) -> None:
        settings, state = service.settings, service.state
        super().__init__(state.log, settings.server, state.vault)
        self._service, self._state = service, state
        self.experiment = "" if members is None else settings.folder.name
        self.members = members or Members(
            state.database, state.vault, settings.server, state.read, state.write
        )
        self.public_releases = settings.public_releases
        self.storage_errors = state.database.lost

    @property
    def keys(self) -> dict[str, Key]:
        return self._state.keys

    def note_use(self, key: str) -> None:
        self._state.used.add(key)

    async def wake(self) -> None:
        if self._state.asleep:
            await self._service.upkeep.wake()
        self._state.last_request = perf_counter()

    async def now(self) -> float:
        query = f"SELECT {self._state.database.now}"
        return float(await self._state.read(lambda c: c.execute(query).fetchone()[0]))

    async def end_sessions(self, key: str) -> None:
        await self._service.end_sessions(key)


class ServerAccess(Access):
    """Access to the list of experiments; few keys, read for each request, and all members."""

    def __init__(self, settings: ServerSettings) -> None:
        folder = settings.folder
        super().__init__(Log(""), settings, Vault(folder / VAULT))
        self._database = Sqlite(folder / DATABASE)
        if not self._database.path.exists():
            raise StateClaimed(
                f"folder must have the keys of its server; {self._database.path} is missing. Put "
                f"it back, or make new keys: discreet serve --folder {folder} --init."
            )
        self._connection = self._database.connect()
        create_tables(self._database, self._connection)
        self.storage_errors = self._database.lost
        self._rare, self._changing = self._database.connect(), threading.Lock()
        write = partial(self._in_thread, write=True)
        self.members = Members(self._database, self._vault, settings, self._in_thread, write)

    async def _in_thread(self, operation: Callable[[Connection], T], write: bool = False) -> T:
        def run() -> T:
            with self._changing, self._database.transaction(self._rare) if write else nullcontext():
                return operation(self._rare)

        return await asyncio.to_thread(run)

    @property
    def keys(self) -> dict[str, Key]:
        return {key.id: key for key in api_keys.listed(self._database, self._connection)}

    async def now(self) -> float:
        return float(self._connection.execute(f"SELECT {self._database.now}").fetchone()[0])

    async def end_sessions(self, key: str) -> None:
        api_keys.end_sessions(self._database, self._connection, key)

    def close(self) -> None:
        self._connection.close()
        self._rare.close()
