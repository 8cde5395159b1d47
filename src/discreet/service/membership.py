"""Sign-in of members: passphrases, wrong attempts, sessions, and the header of a trusted proxy."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Protocol, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from discreet.errors import InvalidInput, ServiceError
from discreet.service.secrets.vault import Vault
from discreet.service.settings import ServerSettings
from discreet.service.storage.database import Connection, Database
from discreet.service.storage.member_tables import Member, MemberTables, folded

T = TypeVar("T")
LEAST, MOST = 12, 1024
"""Characters of a passphrase."""
DIFFERENT = 5
"""Different characters that a passphrase has at least."""
RULE = (
    f"at least {LEAST} characters, {DIFFERENT} of them different, and not your name or e-mail "
    "address. Several words are easy to remember"
)
PER_NAME, PER_ADDRESS, RETURNS = 10, 30, 60.0
"""Wrong passphrases that a name and an address may have; each is forgotten after so many seconds,
one by one."""
COUNTED = 10_000
"""Names and addresses whose wrong passphrases are counted at once."""
HASHER = PasswordHasher()


class Run(Protocol):
    def __call__(self, operation: Callable[[Connection], T], /) -> Awaitable[T]: ...


def check_passphrase(text: str, *names: str) -> str:
    """Return a passphrase that obeys the rule; an error never repeats it."""
    plain = folded(text)
    weak = len({*plain}) < DIFFERENT or any(folded(name) == plain for name in names)
    if not LEAST <= len(text) <= MOST or weak:
        raise InvalidInput(f"passphrase must have {RULE}; this one does not. Choose another.")
    return text


def hashed(passphrase: str) -> str:
    """Return the argon2 hash of a passphrase, which contains its salt and parameters."""
    return HASHER.hash(passphrase)


@cache
def _nobody(hasher: PasswordHasher) -> str:
    return hasher.hash("nobody has this passphrase")


def verified(hash: str, passphrase: str) -> bool:
    """Return whether a passphrase has this hash; without a hash, take the same time."""
    try:
        return HASHER.verify(hash or _nobody(HASHER), passphrase) and bool(hash)
    except (VerificationError, InvalidHashError):
        return False


class Throttle:
    """Attempts by name or address: ``most`` at once, and one more every ``RETURNS`` seconds."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, who: str) -> float:
        return max(0.0, (self._count(who) - self._most + 1) * RETURNS)

    def add(self, who: str, attempts: float) -> None:
        """Add attempts; a negative number takes them back."""
        self._used[who] = (max(0.0, self._count(who) + attempts), self._clock())
        self._used.move_to_end(who)
        while len(self._used) > COUNTED:
            self._used.popitem(last=False)

    def _count(self, who: str) -> float:
        used, at = self._used.get(who, (0.0, 0.0))
        return max(0.0, used - (self._clock() - at) / RETURNS)


class Members:
    """Members of a server, or of an experiment that is served alone."""

    def __init__(
        self, database: Database, vault: Vault, settings: ServerSettings, read: Run, write: Run
    ) -> None:
        self.tables, self.prefix = MemberTables(database, vault), settings.prefix
        self.read, self._write, self._vault = read, write, vault
        self._settings, self._proxies = settings, [*map(ip_network, settings.sign_in_proxies)]
        self._names, self._addresses = Throttle(PER_NAME), Throttle(PER_ADDRESS)
        self._hashing = asyncio.Semaphore(1)  # one at a time: each takes a processor and 64 MiB

    @property
    def secret(self) -> bytes:
        return self._vault.mac

    async def write(self, operation: Callable[[Connection], T]) -> T:
        """Run a change and note it in the vault."""

        def changed(connection: Connection) -> T:
            self.tables.begin_change(connection)
            return operation(connection)

        made = await self._write(changed)
        await self.read(self.tables.record)
        return made

    async def hash(self, passphrase: str) -> str:
        async with self._hashing:
            return await asyncio.to_thread(hashed, passphrase)

    async def verify(self, name: str, passphrase: str, address: str) -> Member:
        """Return the member with this name or e-mail address and passphrase; 401 or 429 if not."""
        counted = (self._names, folded(name)[:256]), (self._addresses, address)
        if wait := max(throttle.wait(who) for throttle, who in counted):
            text = "Too many wrong passphrases for this name or from this address. Try again in "
            text += f"{math.ceil(wait / 60)} min."
            raise ServiceError(text, status=429, code="too_many_requests")
        for throttle, who in counted:  # before the check, so that attempts at once are counted
            throttle.add(who, 1)
        member = await self.read(lambda c: self.tables.find(c, name))
        known = member if member is not None and not member.outdated else None
        text = passphrase[: MOST + 1]
        async with self._hashing:
            right = await asyncio.to_thread(verified, known.hash if known else "", text)
        if known is None or not right:
            wrong = "Name and passphrase do not belong together. Check both, or ask an owner."
            raise ServiceError(wrong, status=401, code="unauthenticated")
        for throttle, who in counted:
            throttle.add(who, -1)
        if HASHER.check_needs_rehash(known.hash):
            stronger, id = await self.hash(text), known.id
            await self.write(lambda c: self.tables.rehash(c, id, stronger))
        return known

    async def named_by_proxy(
        self, headers: Sequence[tuple[bytes, bytes]], peer: str
    ) -> Member | None:
        """Return the member whom a declared proxy names; refuse the header of anybody else."""
        header, given = self._settings.sign_in_header, self.named(headers)
        if not given:
            return None
        if len(given) > 1 or not self._declared(peer):
            text = f"{header} must come once, from a proxy in sign_in_proxies; it did not. Sign in "
            text += "through the proxy, or send no such header."
            raise ServiceError(text, status=403, code="untrusted_proxy")
        name = given[0]
        member = await self.read(lambda c: self.tables.find(c, name))
        if member is None and (role := self._settings.sign_in_role) is not None:
            member = await self.write(
                lambda c: self.tables.find(c, name) or self.tables.add(c, name, "", "", role)
            )
        return member if member is not None and not member.outdated else None

    def named(self, headers: Sequence[tuple[bytes, bytes]]) -> list[str]:
        """Return the names in the header of single sign-on, whoever sent it."""
        wanted = (self._settings.sign_in_header or "").lower().encode()
        found = (
            value.decode("utf-8", "replace").strip() for name, value in headers if name == wanted
        )
        return [*filter(None, found)]

    def _declared(self, peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:  # a socket without an address
            return False
        return any(address in each for each in self._proxies)

    async def begin_session(self, member: Member, way: str) -> str:
        return await self.write(lambda c: self.tables.begin_session(c, member.id, way))
