"""Pages of operators: batches, releases, ledger, label, history, settings, keys."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import replace

from starlette.responses import Response

from discreet.client.documents import digest, verify
from discreet.errors import CorruptRelease, InvalidInput, ServiceError
from discreet.privacy.accounting import epsilon
from discreet.privacy.events import Composed
from discreet.privacy.ledger import Ledger
from discreet.releases.quality import quality
from discreet.service.dashboard.experiment_summary import (
    MODES,
    document_names,
    summary,
)
from discreet.service.dashboard.page_frame import AnyPage, ExperimentPage, label_of
from discreet.service.runtime.service import Service
from discreet.service.runtime.status import control_words
from discreet.service.storage.api_keys import Key
from discreet.service.storage.batches import COLUMNS, BatchState
from discreet.service.storage.database import Connection
from discreet.service.storage.document_table import LIMIT, Change, list_changes
from discreet.types import JsonObject


def every_batch(connection: Connection) -> list[BatchState]:
    rows = connection.execute(f"SELECT {COLUMNS} FROM batches ORDER BY epoch, id").fetchall()
    return [BatchState(*row) for row in rows]


def bodies(connection: Connection) -> list[tuple[int, bytes]]:
    """Number and stored bytes of every document, even those that may not be shown yet."""
    rows = connection.execute("SELECT number, body FROM documents ORDER BY number").fetchall()
    return [(int(row[0]), bytes(row[1])) for row in rows]


async def batches(page: ExperimentPage) -> Response:
    service = page.site
    found, slots = await service.state.read(every_batch), service.state.slots
    unburned = sum(batch.state != "burned" for batch in found)
    sizes = [slots.size(unburned + step) for step in (1, 2, 3)]  # which the plan fixes
    return page.render(
        "batches.html",
        batches=found[::-1],
        words={"open": "open", "sealed": "waiting"},
        status=await service.status(),
        ahead=[size for size in sizes if size],
    )


async def _checked(service: Service) -> list[JsonObject]:
    """Return the stored documents and what is wrong with each: its signature, or bytes that
    differ from those that were published."""
    known, key = service.state.confirmed(), service.state.serving.chain.key
    stored = await service.state.read(bodies)

    def check(number: int, body: bytes) -> JsonObject:
        found, content, wrong = digest(body), {"kind": "unreadable", "epoch": "–"}, ""
        try:
            document = verify(body, key)
            if known[number] == found:  # unconfirmed bytes are not shown, even if signed
                content = document
            else:
                wrong = "The bytes differ from those that are served."
        except CorruptRelease as error:
            wrong = str(error)
        return {"number": number, "digest": found, "content": content, "wrong": wrong}

    return await asyncio.to_thread(lambda: [check(*each) for each in stored if each[0] in known])


async def releases(page: ExperimentPage) -> Response:
    service = page.site
    checked, chain = await _checked(service), service.state.serving.chain
    numbers = [link.number for link in chain.links if link.release is not None]
    return page.render(
        "releases.html",
        documents=checked[::-1],
        served=service.state.deciding(),
        public_key=chain.key,
        mean_losses={numbers[each.number - 1]: each for each in quality(chain.deciding)},
        summary=await summary(service),
        names=document_names(chain.links),
    )


async def release(page: ExperimentPage) -> Response:
    service, wanted = page.site, page.request.path_params["number"]
    document = next((each for each in await _checked(service) if each["number"] == wanted), None)
    if document is None:
        raise _no_document()
    return page.render(
        "release.html",
        document=document,
        served=service.state.deciding(),
        names=document_names(service.state.serving.chain.links),
    )


async def document(page: ExperimentPage) -> Response:
    """Return the signed bytes, to check them elsewhere."""
    number = page.request.path_params["number"]
    found = await page.site.state.document(number)
    if found is None:
        raise _no_document()
    named = {"Content-Disposition": f'attachment; filename="document-{number}.json"'}
    return Response(found, media_type="application/json", headers=named)


def _no_document() -> ServiceError:
    text = "entry must be one of those listed; none has this number. See the page Releases."
    return ServiceError(text, status=404, code="unknown_release")


def charges(ledger: Ledger) -> list[tuple[str, str, float, float]]:
    """Return whose data each charge is for, its noise, its cost, and the total cost so far."""
    lines = []
    for count, entry in enumerate(ledger.entries, start=1):
        event = entry.event
        so_far = replace(ledger, entries=ledger.entries[:count]).spent().epsilon
        parts = event.events if isinstance(event, Composed) else (event,)
        names = " and ".join(dict.fromkeys(type(part).__name__ for part in parts))
        lines.append((entry.partition, names, epsilon(event, ledger.budget.delta), so_far))
    return lines


async def ledger(page: ExperimentPage) -> Response:
    found = await page.site.state.ledger()
    lines = await asyncio.to_thread(charges, found)
    return page.render(
        "ledger.html",
        lines=lines[::-1],
        spent=found.spent(),
        budget=found.budget,
        often=found.participation,
    )


async def label(page: ExperimentPage) -> Response:
    """Show the privacy label of everything that was published."""
    return page.render("label.html", **await label_of(page.access, page.site))


CHANGES = {
    "invited": "Invited somebody as {role}{where}",
    "member joined": "{member} joined",
    "member removed": "{member} removed",
    "role changed": "Role of {member}{where}: {role}",
    "passphrase set": "New passphrase of {member}",
    "passphrase link": "Link for a new passphrase of {member}",
    "begun": "The experiment began",
    "archived": "Archived: it decides nothing any more",
    "mode changed": "Set to {mode}",
    "batch burned": "Batch {batch} given up, its records erased",
    "actions changed": "Actions joined or left",
    "restored": "A backup was restored",
    "serving changed": "{serving}",
    "key created": "Key made: {label}({key})",
    "key revoked": "Key revoked: {label}({key})",
    "released": "{name}, of batch {batch}",
}
"""Lines of the history."""


async def history(page: AnyPage) -> Response:
    """List changes of an experiment, or those to the members and keys of a server."""
    if isinstance(page.site, Service):
        names = document_names(page.site.state.serving.chain.links)
        changes = await page.site.changes()
    else:
        names, changes = {}, await page.access.members.read(lambda c: list_changes(c, 0))
    lines = [(each, _who(each), _words(each, names, page.access.keys)) for each in changes]
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
    details = change.details
    value, known = details.get("value"), keys.get(details.get("key", ""))
    back = "The newest release decides again"
    words = details | {
        "where": f" for {details['experiment']}" if details.get("experiment") else "",
        "mode": MODES.get(str(value), ""),
        "serving": back if value is None else f"Went back to {names.get(value, f'entry {value}')}",
        "label": f"{known.label} " if known and known.label else "",
        "name": names.get(change.document or 0, "release").capitalize(),
    }
    return CHANGES.get(change.what, change.what).format_map(defaultdict(str, words))


async def settings(page: ExperimentPage) -> Response:
    service = page.site
    return page.render(
        "settings.html",
        status=await service.status(),
        settings=service.settings,
        default_action=service.settings.default_name,
        control=control_words(service.settings.plan) or "none",
        alias=service.state.serving.chosen,
        names=dict(reversed(document_names(service.state.serving.chain.links).items())),
    )


async def change_mode(page: ExperimentPage) -> Response:
    await page.site.set_mode(page.given("mode"), page.by)
    return page.redirect("/ui/settings?done=mode")


async def change_serving(page: ExperimentPage) -> Response:
    """Let an older release decide, or the newest again."""
    text = page.given("release")
    await page.site.set_serving(None if text == "newest" else _whole("release", text), page.by)
    return page.redirect("/ui/settings?done=serving")


async def burn(page: ExperimentPage) -> Response:
    """Burn a batch for good; its number is typed to confirm."""
    if page.given("batch") != page.given("typed").strip():
        raise InvalidInput(
            "batch must be confirmed by typing its number; the numbers differ. Nothing was burned."
        )
    await page.site.burn(_whole("batch", page.given("batch")), page.by)
    return page.redirect("/ui/settings?done=burn")


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"{name} must be a whole number; got text. Choose it from the list.")
    return int(text)


async def keys(page: ExperimentPage) -> Response:
    """List all keys; the form creates one, and only this answer shows its text."""
    made = None
    if page.request.method == "POST":
        label = page.given("label")[:200]
        lasts = page.given("expires_in").strip() or None
        made = await page.site.create_key(page.fields.get("scope", []), label, lasts, by=page.by)
    shown = [key.shown() for key in await page.site.list_keys()]
    return page.render("keys.html", keys=shown[::-1], made=made)


async def revoke(page: ExperimentPage) -> Response:
    await page.site.revoke_key(page.given("id"), page.by)
    return page.redirect("/ui/keys")
