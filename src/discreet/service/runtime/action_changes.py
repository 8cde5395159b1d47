"""Let actions join and leave: one signed document, in one transaction with the chain."""

from __future__ import annotations

from typing import Any

from discreet.client.chain import Chain
from discreet.client.documents import actions_document
from discreet.errors import InvalidInput
from discreet.known_actions import changed_actions
from discreet.service.kill_points import step
from discreet.service.runtime.context_features import Invalid
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.storage import change_table, document_table
from discreet.service.storage.batches import under_way
from discreet.service.storage.database import Connection

SHOWN = 100
"""The most actions in one answer, unless a request asks for another number."""


async def change_actions(
    state: WorkerState, add: list[Any], remove: list[str], by: str = ""
) -> None:
    """Publish what joins and what leaves; all workers see it with their next look."""
    # A document that a dead process committed is confirmed before another one follows.
    await state.refresh()
    known = state.serving.chain
    await state.write(lambda c: _publish(state, c, known, add, remove, by))
    step("actions:committed")
    await state.refresh()


def _publish(
    state: WorkerState,
    connection: Connection,
    known: Chain,
    add: list[Any],
    remove: list[str],
    by: str,
) -> None:
    # Workers that change actions at the same time wait for each other: document 0 is the lock.
    locked = f"SELECT number FROM documents WHERE number = 0 {state.database.lock}"
    connection.execute(locked).fetchone()
    committed = known.extended(document_table.after(connection, known.number))
    # Batches that are open or waiting keep their actions; the next one to open has the new ones.
    coming = len(committed.releases) + len(under_way(connection)) + 1
    try:
        change = changed_actions(state.settings.plan, committed.deciding, add, remove, coming)
    except InvalidInput as error:
        field = "remove" if str(error).startswith("remove") else "add"
        raise Invalid(str(error), field) from None
    document = actions_document(document_table.newest(connection), change)
    mark = document_table.append(connection, document, state.vault.signing)
    change_table.note(state.database, connection, "actions changed", by, document=mark.number)
    step("actions:before-commit")
    state.anchor.intend(mark)
    step("actions:intended")


def listed_actions(state: WorkerState, wanted: str = "", limit: int = SHOWN) -> dict[str, Any]:
    """The actions in use whose name contains ``wanted``, the first ``limit`` of them."""
    names = [*state.serving.chain.known.places]
    found = [name for name in names if wanted.casefold() in str(name).casefold()]
    return {
        "release": state.serving.newest,
        "count": len(names),
        "found": len(found),
        "actions": found[:limit],
    }
