"""What pages call a document of the chain: start, release 2, actions changed."""

from __future__ import annotations

from collections.abc import Iterable

from discreet.billboard.chain import Link

KINDS = {
    "genesis": "start",
    "release": "release",
    "burn": "batch given up",
    "restore": "backup restored",
    "actions": "actions changed",
}


def names(links: Iterable[Link]) -> dict[int, str]:
    """By number: releases are counted, and whatever lies between two of them says where."""
    found, count = {}, 0
    for link in links:
        if link.release is not None:
            count = link.release.number
            found[link.number] = f"release {count}"
        else:
            after = f" after release {count}" if count else ""
            found[link.number] = KINDS.get(link.kind, link.kind) + after
    return found


def counts(links: Iterable[Link]) -> dict[int, int]:
    """By number: how many releases there were with that document."""
    found, count = {}, 0
    for link in links:
        count = link.release.number if link.release is not None else count
        found[link.number] = count
    return found
