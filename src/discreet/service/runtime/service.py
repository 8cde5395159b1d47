"""Service of one worker, without HTTP: used by the HTTP app, the dashboard and tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from discreet.actions.available_actions import changed_actions
from discreet.client.chain import Chain
from discreet.client.documents import actions_document
from discreet.errors import CorruptRelease, InvalidInput
from discreet.releases.guardrails import GuardrailLift
from discreet.releases.lift import Lift, lift
from discreet.service.runtime import lifecycle, release_transaction
from discreet.service.runtime.decisions import WorkerDecisions
from discreet.service.runtime.fit_process import FitChild
from discreet.service.runtime.requests import InvalidField
from discreet.service.runtime.status import ServiceStatus, compared_guardrails, status
from discreet.service.runtime.upkeep import Upkeep
from discreet.service.runtime.worker_state import WorkerState
from discreet.service.settings import ENDED, MODES, Settings
from discreet.service.storage import api_keys, document_table
from discreet.service.storage.batches import under_way
from discreet.service.storage.database import Connection, safe_name, step
from discreet.service.storage.group_commit import CommitThread
from discreet.types import JsonObject
from discreet.validate import one_of

T = TypeVar("T")
SHOWN = 100
"""Default number of actions in one reply."""


class Service:
    """One experiment: decisions through ``decisions``, and the operations of operators.

    With the path of its settings file, fits run in a child process and the file is watched.
    Without a path, fits run in a thread. Services of one process may share a ``child`` that fits
    and a thread that ``commits``; ``pace`` returns the seconds between refreshes of such a service.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        config: Path | None = None,
        workers: int = 1,
        child: FitChild | None = None,
        commits: CommitThread | None = None,
        pace: Callable[[], float] | None = None,
    ) -> None:
        self.settings = settings
        self.state = WorkerState(settings, workers=workers, commits=commits)
        self.decisions = WorkerDecisions(self.state)
        if config is not None:
            self.state.file = lifecycle.ExperimentFile(config, settings, self.state.log)
            child = child or FitChild()
        self.upkeep = Upkeep(self.state, child=child, pace=pace)

    async def start(self, *, upkeep: bool = True, again: bool = False) -> None:
        """Open the database and start background tasks; ``again`` after a logged failure."""
        state = self.state
        try:
            await state.start()
        except Exception as error:
            if not again:
                if isinstance(error, lifecycle.PlanDiffers):
                    state.log.event("plan refused", keys=list(error.keys))
                state.log.event("start failed", kind=safe_name(error))
            raise
        state.log.event("started", epoch=state.epoch, release=state.serving.newest, mode=state.mode)
        if upkeep:
            self.upkeep.start()

    async def stop(self) -> None:
        """Finish the requests under way and close everything."""
        await self.upkeep.stop()
        with suppress(Exception):  # then the slots stay void, as after a crash
            await self.decisions.stop()
            await self.state.store_key_use()
            await self.state.store_traffic()
        await self.state.stop()
        self.state.log.write_counts(all=True)
        self.state.log.event("stopped")

    @property
    def newest(self) -> int:
        """Number of the newest document that may be shown."""
        return self.state.serving.newest

    async def status(self) -> ServiceStatus:
        """Return the public state in figures and sentences."""
        return await status(self.state)

    def lift(self) -> Lift | None:
        """Return the comparison of policy and control, from releases that may be shown; None
        without a control share, or before the first release of decisions."""
        released = self.state.serving.chain.deciding
        begun = len(released.items) > released.schedule.imported_batches  # a log is in neither part
        return lift(released) if self.settings.plan.control and begun else None

    def guardrails(self) -> tuple[GuardrailLift, ...]:
        """Return the comparisons by guardrails; none before the first lift."""
        return compared_guardrails(self.state)

    async def ledger(self) -> Mapping[str, object]:
        """Return every charge, and their total."""
        ledger = await self.state.ledger()
        spent = ledger.spent()
        reported = {
            "epsilon": repr(spent.epsilon),
            "delta": repr(spent.delta),
            "unit": spent.unit,
            "relation": spent.relation,
            "assumptions": list(spent.assumptions),
        }
        return ledger.to_json() | {"spent": reported}

    async def set_mode(self, mode: str, by: str = "") -> None:
        """Set ``online``, ``shadow`` or ``frozen`` for all workers; ``by`` is the id of a key."""
        await self._change_mode(one_of("mode", mode, MODES), by)
        self.state.log.event("mode changed", mode=mode, by=by)

    async def end(self, by: str = "") -> None:
        """End the experiment permanently; batches that wait are still released."""
        await self._change_mode(ENDED, by)
        self.state.log.event("experiment ended", by=by)

    async def _change_mode(self, mode: str, by: str) -> None:
        await self._write(lambda c: lifecycle.change_mode(self.state.database, c, mode, by))

    async def _write(self, operation: Callable[[Connection], T]) -> T:
        """Run a rare write, and read what follows from it."""
        done = await self.state.write(operation)
        await self.state.refresh()
        return done

    async def set_serving(self, number: int | None, by: str = "") -> None:
        """Serve an older document, or the newest again (None). Free: all of them are public."""
        state = self.state
        if number is not None:
            try:
                state.serving.at(number)
            except CorruptRelease:
                raise InvalidInput(
                    f"release must be a document of this service; got {number!r}. "
                    "GET /v1/releases lists them."
                ) from None

        def write(connection: Connection) -> None:
            connection.execute("UPDATE experiment SET serving = ?", (number,))
            document_table.note_change(
                state.database, connection, "serving changed", by, value=number
            )

        await self._write(write)
        state.log.event("served document changed", release=number, by=by)

    async def change_actions(
        self, add: Sequence[str | Mapping[str, object]], remove: list[str], by: str = ""
    ) -> None:
        """Add and remove actions by a public document; all workers see it at their next refresh."""
        state = self.state
        # A document that a dead process committed is confirmed before another one follows.
        await state.refresh()
        known = state.serving.chain
        await state.write(lambda c: _publish_actions(state, c, known, add, remove, by))
        step("actions:committed")
        await state.refresh()
        self.state.log.event("actions changed", added=len(add), removed=len(remove), by=by)

    def list_actions(self, text: str = "", limit: int = SHOWN) -> dict[str, object]:
        """Return the actions in use whose name contains ``text``, at most ``limit`` of them."""
        names = [*self.state.serving.chain.available_actions.places]
        found = [name for name in names if text.casefold() in str(name).casefold()]
        return {
            "release": self.newest,
            "count": len(names),
            "found": len(found),
            "actions": found[:limit],
        }

    async def burn(self, batch: int, by: str = "") -> None:
        """Erase the rows of a batch without a release."""
        state = self.state
        parts = state.vault, state.anchor, batch, by
        await state.write(lambda c: release_transaction.burn(state.database, c, *parts))
        step("burn:committed")
        state.log.event("batch burned", batch=batch, epoch=state.epoch, by=by)
        await state.refresh()
        await self.upkeep.erase()

    async def erase(self, user: str, by: str = "") -> None:
        """Exclude all later slots of a user, whether or not they are known."""
        people, owner = self.state.people, self.decisions.owners.owner(user)
        if people is not None and owner is not None:
            await self.state.write(lambda c: people.use_up(c, owner.person))
            self.state.log.event("user erased", by=by)

    async def create_key(
        self,
        scopes: list[str],
        label: str,
        expires_in: str | None = None,
        rate: int | None = None,
        by: str = "",
    ) -> JsonObject:
        """Create an API key; its text is shown only here."""
        database = self.state.database
        text, key = await self._write(
            lambda c: api_keys.create(
                database, c, scopes, label, expires_in=expires_in, rate=rate, by=by
            )
        )
        self.state.log.event("key created", key=key.id, scopes=key.shown()["scopes"], by=by)
        return {**key.shown(), "key": text}

    async def revoke_key(self, id: str, by: str = "") -> JsonObject:
        """Revoke a key; it stops working."""
        key = await self._write(lambda c: api_keys.revoke(self.state.database, c, id, by))
        self.state.log.event("key revoked", key=key.id, by=by)
        return key.shown()

    async def list_keys(self) -> list[api_keys.Key]:
        """Return all keys, without their secrets."""
        await self.state.store_key_use()
        return await self.state.read(lambda c: api_keys.listed(self.state.database, c))

    async def changes(self) -> list[document_table.Change]:
        """Return the history of changes, the newest first, up to the newest document shown."""
        newest = self.state.serving.newest
        return await self.state.read(lambda c: document_table.list_changes(c, newest))

    async def end_sessions(self, id: str) -> None:
        """End every session of the dashboard that began with this key."""
        await self._write(lambda c: api_keys.end_sessions(self.state.database, c, id))


def _publish_actions(
    state: WorkerState,
    connection: Connection,
    known: Chain,
    add: Sequence[str | Mapping[str, object]],
    remove: list[str],
    by: str,
) -> None:
    """Publish a document that adds and removes actions, in one transaction with the chain."""
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
        raise InvalidField(str(error), field) from None
    document = actions_document(document_table.newest(connection), change)
    mark = document_table.append(connection, document, state.vault.signing)
    document_table.note_change(
        state.database, connection, "actions changed", by, document=mark.number
    )
    step("actions:before-commit")
    state.anchor.intend(mark)
    step("actions:intended")
