"""The head of a request that a connection sends again and again: only the length of the body
differs, so that the parser, which costs more than the rest of reading, need not see it again."""

from __future__ import annotations

import re
from typing import NamedTuple

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,8})\r\n", re.IGNORECASE)
DIGITS = 8
"""The longest length that is looked at."""


class RepeatedHead(NamedTuple):
    """A head that the parser accepted, apart from the digits of its length.

    The parser begins every message of a connection that is kept in the same state, so the same
    bytes mean the same again.
    """

    before: bytes
    after: bytes
    """From the end of the digits to the end of the head."""
    route: tuple[bytes, bytes]
    """Method and path."""
    headers: dict[bytes, bytes]
    old: bool
    """Whether it is HTTP/1.0."""

    def body(self, data: bytes) -> bytes | None:
        """The body, if the data are this head and a whole body, and nothing else."""
        before, after = self.before, self.after
        if not data.startswith(before):
            return None
        end = data.find(b"\r", len(before), len(before) + DIGITS + 1)
        digits = data[len(before) : end]
        if end < 0 or not digits.isdigit() or not data.startswith(after, end):
            return None
        body = data[end + len(after) :]
        return body if len(body) == int(digits) else None


def learned(
    data: bytes, length: int, route: tuple[bytes, bytes], headers: dict[bytes, bytes], *, old: bool
) -> RepeatedHead | None:
    """What to expect next, after data that were one whole request with a body of this length."""
    end = len(data) - length
    found = _LENGTH.search(data, 0, end)
    if found is None or data.find(b"\r\n\r\n") != end - 4 or int(found[1]) != length:
        return None
    kept = {name: value for name, value in headers.items() if name != b"content-length"}
    return RepeatedHead(data[: found.start(1)], data[found.end(1) : end], route, kept, old)
