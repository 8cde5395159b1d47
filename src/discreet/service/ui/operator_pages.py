"""Pages of operators that only show: batches, releases, ledger."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from discreet.errors import ServiceError
from discreet.releases.quality import Quality, quality
from discreet.service.storage.batches import BatchState
from discreet.service.ui import document_words, overview_words, page_data
from discreet.service.ui.page_frame import Asked


async def batches(asked: Asked) -> Response:
    found = await asked.service.state.read(page_data.batches)
    status = await asked.service.status()
    return asked.page(
        "batches.html",
        batches=found[::-1],
        words={"open": "open", "sealed": "waiting"},
        chart_values=page_data.timeline(found, status["now"]),
        status=status,
        settings=asked.service.settings,
        ahead=_ahead(asked, found),
    )


def _ahead(asked: Asked, found: list[BatchState]) -> list[int]:
    """Sizes of the next batches, which the plan fixes."""
    slots = asked.service.state.slots
    kept = sum(batch.state != "burned" for batch in found)
    sizes = [slots.size(kept + step) for step in (1, 2, 3)]
    return [size for size in sizes if size]


async def releases(asked: Asked) -> Response:
    checked = await _checked(asked)
    return asked.page(
        "releases.html",
        documents=checked[::-1],
        served=asked.service.state.deciding(),
        public_key=asked.service.state.serving.chain.key,
        fared=_how_people_fared(asked),
        chosen=asked.service.state.alias is not None,
        names=document_words.names(asked.service.state.serving.chain.links),
    )


def _how_people_fared(asked: Asked) -> dict[int, Quality]:
    """Mean losses by document, computed from public releases."""
    chain = asked.service.state.serving.chain
    numbers = [link.number for link in chain.links if link.release is not None]
    return {numbers[each.number - 1]: each for each in quality(chain.deciding.as_released)}


async def release(asked: Asked) -> Response:
    document = next((each for each in await _checked(asked) if each.number == _number(asked)), None)
    if document is None:
        raise _no_document()
    return asked.page(
        "release.html",
        document=document,
        served=asked.service.state.deciding(),
        plan=asked.service.settings.plan,
        names=document_words.names(asked.service.state.serving.chain.links),
    )


async def document(asked: Asked) -> Response:
    """The signed bytes, to check them elsewhere."""
    number = _number(asked)
    found = await asked.service.state.document(number)
    if found is None:
        raise _no_document()
    named = {"Content-Disposition": f'attachment; filename="document-{number}.json"'}
    return Response(found, media_type="application/json", headers=named)


async def ledger(asked: Asked) -> Response:
    found = await asked.service.state.ledger()
    lines = await asyncio.to_thread(page_data.charges, found)
    return asked.page(
        "ledger.html",
        lines=lines[::-1],
        spent=found.spent(),
        budget=found.budget,
        privacy=overview_words.privacy(found.spent(), found.budget, found.participation),
    )


async def _checked(asked: Asked) -> list[page_data.Checked]:
    state = asked.service.state
    known, key = state.confirmed(), state.serving.chain.key
    stored = await state.read(page_data.bodies)

    def check() -> list[page_data.Checked]:
        return [
            page_data.check(number, body, key, known[number])
            for number, body in stored
            if number in known
        ]

    return await asyncio.to_thread(check)


def _number(asked: Asked) -> int:
    return int(asked.request.path_params["number"])


def _no_document() -> ServiceError:
    return ServiceError(
        "entry must be one of those listed; none has this number. See the page Releases.",
        status=404,
        code="unknown_release",
    )
