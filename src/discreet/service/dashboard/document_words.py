"""Names of the documents of a chain on pages: start, release 2, actions changed."""

from __future__ import annotations

from collections.abc import Iterable

from discreet.client.chain import Link

KINDS = {
    "genesis": "start",
    "release": "release",
    "burn": "batch given up",
    "restore": "backup restored",
    "actions": "actions changed",
}


def names(links: Iterable[Link]) -> dict[int, str]:
    """Return the names by number; a document between two releases names the release before it."""
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
    """Return the count of releases up to each document, by number."""
    found, count = {}, 0
    for link in links:
        count = link.release.number if link.release is not None else count
        found[link.number] = count
    return found
