"""Pages of operators that only show: batches, releases, ledger, label, history."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.responses import Response

from discreet.client.label import label_document, label_values
from discreet.errors import ServiceError
from discreet.releases.quality import Quality, quality
from discreet.service.dashboard import experiment_summary, page_data
from discreet.service.dashboard.page_frame import PageRequest
from discreet.service.runtime.service import Service
from discreet.service.storage.api_keys import Key
from discreet.service.storage.batches import BatchState
from discreet.service.storage.document_table import LIMIT, Change, list_changes
from discreet.types import JsonObject


async def batches(page: PageRequest, service: Service) -> Response:
    found = await service.state.read(page_data.batches)
    status = await service.status()
    return page.render(
        "batches.html",
        batches=found[::-1],
        words={"open": "open", "sealed": "waiting"},
        status=status,
        settings=service.settings,
        ahead=_ahead(service, found),
    )


def _ahead(service: Service, found: list[BatchState]) -> list[int]:
    """Sizes of the next batches, which the plan fixes."""
    slots = service.state.slots
    kept = sum(batch.state != "burned" for batch in found)
    sizes = [slots.size(kept + step) for step in (1, 2, 3)]
    return [size for size in sizes if size]


async def releases(page: PageRequest, service: Service) -> Response:
    checked = await _checked(service)
    return page.render(
        "releases.html",
        documents=checked[::-1],
        served=service.state.deciding(),
        public_key=service.state.serving.chain.key,
        mean_losses=_mean_losses(service),
        summary=await experiment_summary.summary(service),
        names=page_data.document_names(service.state.serving.chain.links),
    )


def _mean_losses(service: Service) -> dict[int, Quality]:
    """Mean losses by document, computed from public releases."""
    chain = service.state.serving.chain
    numbers = [link.number for link in chain.links if link.release is not None]
    return {numbers[each.number - 1]: each for each in quality(chain.deciding)}


async def release(page: PageRequest, service: Service) -> Response:
    document = next(
        (each for each in await _checked(service) if each.number == _number(page)), None
    )
    if document is None:
        raise _no_document()
    return page.render(
        "release.html",
        document=document,
        served=service.state.deciding(),
        plan=service.settings.plan,
        names=page_data.document_names(service.state.serving.chain.links),
    )


async def document(page: PageRequest, service: Service) -> Response:
    """Return the signed bytes, to check them elsewhere."""
    number = _number(page)
    found = await service.state.document(number)
    if found is None:
        raise _no_document()
    named = {"Content-Disposition": f'attachment; filename="document-{number}.json"'}
    return Response(found, media_type="application/json", headers=named)


async def ledger(page: PageRequest, service: Service) -> Response:
    found = await service.state.ledger()
    lines = await asyncio.to_thread(page_data.charges, found)
    return page.render(
        "ledger.html",
        lines=lines[::-1],
        spent=found.spent(),
        budget=found.budget,
        privacy=experiment_summary.privacy(found.spent(), found.budget, found.participation),
    )


async def label(page: PageRequest, service: Service) -> Response:
    """Show the privacy label of everything that was published."""
    return page.render("label.html", **label_values(await _label(service)))


async def privacy_words(service: Service) -> str:
    """Return what an attacker can tell from all releases, in one sentence."""
    if not service.state.serving.newest:
        return "Nothing was published yet, so nobody can learn anything from it."
    return str(label_values(await _label(service))["odds"])


async def _label(service: Service) -> JsonObject:
    """Return the label, kept until there is another document."""
    chain, experiment = service.state.serving.chain, service.settings.experiment
    newest = chain.links[-1]
    if newest.digest not in _LABELS:
        ledger = await service.state.ledger()
        releases = page_data.release_counts(chain.links)[newest.number]
        about = {"experiment": experiment, "releases": releases, "head": newest.digest}
        made = datetime.now(UTC).date().isoformat()
        _LABELS[newest.digest] = await asyncio.to_thread(
            lambda: label_document(ledger, {**about, "key": chain.key}, made=made)
        )
        while len(_LABELS) > KEPT:
            del _LABELS[next(iter(_LABELS))]
    return _LABELS[newest.digest]


KEPT = 256
"""Labels in memory, by the digest of the newest document: one for each experiment."""
_LABELS: dict[str, JsonObject] = {}


async def _checked(service: Service) -> list[page_data.Checked]:
    state = service.state
    known, key = state.confirmed(), state.serving.chain.key
    stored = await state.read(page_data.bodies)

    def check() -> list[page_data.Checked]:
        return [
            page_data.check(number, body, key, known[number])
            for number, body in stored
            if number in known
        ]

    return await asyncio.to_thread(check)


def _number(page: PageRequest) -> int:
    return int(page.request.path_params["number"])


def _no_document() -> ServiceError:
    return ServiceError(
        "entry must be one of those listed; none has this number. See the page Releases.",
        status=404,
        code="unknown_release",
    )


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
    names = page_data.document_names(state.serving.chain.links)
    changes = await service.changes()
    return _history(page, changes, names, state.keys)


async def server_history(page: PageRequest) -> Response:
    """List changes to the members and keys of a server; experiments have their own history."""
    changes = await page.access.members.read(lambda c: list_changes(c, 0))
    return _history(page, changes, {}, page.access.keys)


def _history(
    page: PageRequest, changes: list[Change], names: dict[int, str], keys: dict[str, Key]
) -> Response:
    lines = [
        HistoryLine(each.at, _who(each), _words(each, names, keys), each.document)
        for each in changes
    ]
    return page.render("history.html", lines=lines, cut=len(lines) == LIMIT)


def _who(change: Change) -> str:
    if change.what == "released":
        return "the service"
    if not change.by:
        return "a command on the server"
    if change.by.startswith("m_"):  # a member
        return change.label
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
    member, role = details.get("member", ""), details.get("role", "")
    where = f" for {details['experiment']}" if details.get("experiment") else ""
    return {
        "invited": f"Invited somebody as {role}{where}",
        "member joined": f"{member} joined",
        "member removed": f"{member} removed",
        "role changed": f"Role of {member}{where}: {role}",
        "passphrase set": f"New passphrase of {member}",
        "passphrase link": f"Link for a new passphrase of {member}",
        "begun": "The experiment began",
        "archived": "Archived: it decides nothing any more",
        "mode changed": f"Set to {MODES.get(details.get('value', ''), '')}",
        "batch burned": f"Batch {details.get('batch')} given up, its records erased",
        "actions changed": "Actions joined or left",
        "restored": "A backup was restored",
    }.get(change.what, change.what)
