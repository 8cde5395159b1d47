"""The page of all changes to the experiment, with time and key."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from discreet.service.dashboard import document_words
from discreet.service.dashboard.page_frame import PageRequest
from discreet.service.runtime.service import Service
from discreet.service.storage.api_keys import Key
from discreet.service.storage.history_tables import LIMIT, Change

MODES = {"online": "running", "shadow": "shadow", "frozen": "paused", "ended": "ended"}
"""Modes as the first page calls them."""


@dataclass(frozen=True)
class HistoryLine:
    """One change in words; ``document`` is what its page shows more of."""

    at: float
    who: str
    text: str
    document: int | None


async def history(page: PageRequest, service: Service) -> Response:
    state = service.state
    names = document_words.names(state.serving.chain.links)
    changes = await service.changes()
    lines = [
        HistoryLine(each.at, _who(each), _words(each, names, state.keys), each.document)
        for each in changes
    ]
    return page.render("history.html", lines=lines, cut=len(lines) == LIMIT)


def _who(change: Change) -> str:
    if change.what == "released":
        return "the clock"
    if not change.by:
        return "a command on the server"
    return f"{change.label} ({change.by})" if change.label else f"key {change.by}"


def _words(change: Change, names: dict[int, str], keys: dict[str, Key]) -> str:
    details, number = change.details, change.document
    if change.what == "serving changed":
        served = details["value"]
        return (
            "The newest release decides again"
            if served is None
            else f"Went back to {names.get(served, f'entry {served}')}"
        )
    if change.what in ("key created", "key revoked"):
        known = keys.get(details["key"])
        label = f"{known.label} " if known is not None and known.label else ""
        made = "made" if change.what == "key created" else "revoked"
        return f"Key {made}: {label}({details['key']})"
    if change.what == "released":
        return f"{names.get(number or 0, 'release').capitalize()}, of batch {details['batch']}"
    return {
        "begun": "The experiment began",
        "mode changed": f"Set to {MODES.get(details.get('value', ''), '')}",
        "batch burned": f"Batch {details.get('batch')} given up, its rows erased",
        "actions changed": "Actions joined or left",
        "restored": "A backup was restored",
    }.get(change.what, change.what)
