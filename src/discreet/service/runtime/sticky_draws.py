"""Sticky decisions: the draw of a person is a keyed hash, so that they are shown the same again."""

from __future__ import annotations

import hmac

from discreet.service.runtime.policy_versions import Draw

_BITS = 53
"""Of a double in [0, 1)."""


def sticky_draw(key: bytes, sticky: str | None, release: int) -> Draw | None:
    """Two numbers in [0, 1), the same for the same text and release; None without a text.

    Whoever lacks the key sees uniform numbers, independent from person to person and from release
    to release: the chances of actions stay those of the policy.
    """
    if sticky is None:
        return None
    # Privacy: releases are private for every fixed draw, also for one that follows from an id.
    # [docs/privacy/transcript.md, "Action draws"]
    told = release.to_bytes(8, "big") + sticky.encode("utf-8", "surrogatepass")
    hashed = hmac.digest(key, told, "sha256")
    first, second = (int.from_bytes(hashed[at : at + 8], "big") for at in (0, 8))
    return _uniform(first), _uniform(second)


def _uniform(word: int) -> float:
    return (word >> (64 - _BITS)) / 2.0**_BITS
