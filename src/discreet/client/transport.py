"""HTTP with persistent connections, timeouts, retries and a deadline."""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import random
import re
import ssl
import time
import urllib.parse
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from discreet.errors import InvalidInput, ServiceError

BUSY = (429, 503)
"""Statuses of a busy service: the request is sent again later."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0
UNREADABLE = "unreadable"
"""The code of an error about an answer that is not JSON; the service itself never sends it."""
LARGEST_ANSWER = 2**28
"""Bytes; more than any release needs, so that a hostile server cannot fill the memory."""


class Transport:
    """Requests to one service, from any number of threads.

    A request that fails before its answer arrives, or finds the service too busy, is sent again
    after 0.1, 0.2, 0.4 … seconds. That is safe: a decision has an idempotency key, a lost ticket
    leaves a void slot, and repeating any other request changes nothing.
    """

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        timeout: float,
        retries: int,
        deadline: float | None = None,
    ) -> None:
        self._secure, self._host, self._port, self._base = _address(url)
        self._headers = {"Accept": "application/json"}
        if key is not None:
            if re.fullmatch(r"[!-~]+", key) is None:  # the error of http.client would show the key
                raise InvalidInput(
                    "key must be an API key without blanks or line ends; this key has some. "
                    "Strip the surrounding text."
                )
            self._headers["Authorization"] = f"Bearer {key}"
        self._timeout, self._retries = timeout, retries
        self._deadline = math.inf if deadline is None else deadline
        self._idle: deque[http.client.HTTPConnection] = deque()  # safe for threads

    def get(self, path: str) -> bytes:
        """Return the body of a successful response; ServiceError otherwise."""
        return self._request("GET", path, None, {})

    def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Any:
        """Send a JSON body and return the JSON of a successful response."""
        sent = {"Content-Type": "application/json", **(headers or {})}
        return as_json(self._request("POST", path, _encoded(body), sent))

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> bytes:
        end = time.monotonic() + self._deadline
        attempt = 0
        while True:
            attempt += 1
            retry_after = ""
            timeout = min(self._timeout, max(end - time.monotonic(), 1e-3))
            cause: Exception | None = None
            try:
                status, retry_after, content = self._attempt(method, path, body, headers, timeout)
            except (OSError, http.client.HTTPException) as error:
                cause = error
                failure = ServiceError(
                    f"service must answer; {method} {path} failed {attempt} times "
                    f"({type(error).__name__}). Check that it runs and the address is right."
                )
            else:
                if status < 300:
                    return content
                failure = _refusal(status, content)
                if status not in BUSY:
                    raise failure
            wait = _wait(attempt, retry_after)
            if attempt > self._retries or time.monotonic() + wait >= end:
                raise failure from cause
            time.sleep(wait)

    def _attempt(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float
    ) -> tuple[int, str, bytes]:
        """Return status, Retry-After and body of one attempt."""
        connection = self._connection()
        connection.timeout = timeout
        reused = connection.sock is not None
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request(method, self._base + path, body, {**self._headers, **headers})
            answer = connection.getresponse()
            content = answer.read(LARGEST_ANSWER)
            if not answer.isclosed():
                raise http.client.HTTPException("the answer has no end")
        except BaseException as error:
            connection.close()
            # The service had closed the persistent connection: this was no attempt.
            if reused and isinstance(error, (ConnectionError, ssl.SSLError)):
                return self._attempt(method, path, body, headers, timeout)
            raise
        self._idle.append(connection)
        return answer.status, answer.getheader("Retry-After") or "", content

    def _connection(self) -> http.client.HTTPConnection:
        """Return an idle connection, or a new one."""
        with suppress(IndexError):
            return self._idle.pop()
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout)


def _address(url: str) -> tuple[bool, str, int | None, str]:
    """Return the encryption flag, host, port and base path."""
    with suppress(ValueError):  # an invalid port, or an incomplete IPv6 address
        parts = urllib.parse.urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts.scheme == "https", parts.hostname, parts.port, parts.path.rstrip("/")
    raise InvalidInput(
        f"url must begin with http:// or https:// and name a host; got {url!r}. "
        "Give the address at which discreet serve listens."
    )


def as_json(content: bytes) -> Any:
    """JSON of an answer, or ServiceError."""
    try:
        return json.loads(content)
    except ValueError:
        raise ServiceError(
            "answer must be JSON; this is not. Check that discreet serve runs at the address.",
            code=UNREADABLE,
        ) from None


def _encoded(body: object) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError):
        raise InvalidInput(
            "context and losses must be finite numbers, text, lists and dicts; some are not. "
            "Send what the schema of the service declares."
        ) from None


def _plain(value: object) -> object:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError


def _wait(attempt: int, retry_after: str) -> float:
    """Return the seconds until the next attempt: doubling with jitter, or ``Retry-After``."""
    wait = math.ldexp(FIRST_WAIT, attempt - 1) * random.uniform(0.5, 1.0)
    return min(max(wait, float(retry_after) if retry_after.isdecimal() else 0.0), LONGEST_WAIT)


def _refusal(status: int, content: bytes) -> ServiceError:
    """The error that the service sent, or one for an answer of another shape."""
    try:
        error = json.loads(content)["error"]
        message, code, of = (error.get(name) for name in ("message", "code", "field"))
    except (ValueError, LookupError, TypeError, AttributeError):
        message = f"request must succeed; the service answered {status}. Ask its operator."
        code = of = None
    return ServiceError(str(message), status=status, code=code, field=of)


T = TypeVar("T")


class Deadline:
    """Runs up to 32 requests in threads and gives up waiting after ``seconds``, if not None."""

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None and not seconds > 0.0:
            raise InvalidInput(
                f"deadline must be a positive number of seconds; got {seconds!r}. "
                "Write deadline=0.2, or None to wait as long as the retries last."
            )
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(32, "discreet-client")  # starts no thread yet

    def wait(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``; ServiceError if it is not done in time."""
        if self._seconds is None:
            return work()
        future = self._threads.submit(work)
        try:
            return future.result(self._seconds)
        except TimeoutError:
            future.cancel()
            raise self._late() from None

    async def wait_async(self, work: Callable[[], T]) -> T:
        """Return the result of ``work`` without blocking other tasks."""
        future = asyncio.wrap_future(self._threads.submit(work))
        try:
            return await asyncio.wait_for(future, self._seconds)
        except TimeoutError:
            raise self._late() from None

    def close(self) -> None:
        """End idle threads; what is under way ends by itself, and the next request starts one."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = ThreadPoolExecutor(32, "discreet-client")

    def _late(self) -> ServiceError:
        return ServiceError(
            f"service must answer within the deadline of {self._seconds:g} seconds; it did not. "
            "Show a fallback action, or raise the deadline."
        )
