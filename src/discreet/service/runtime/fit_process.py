"""Child process that fits batches: the only code that decrypts the rows of a whole batch.

Decisions continue while it works. The process that answers requests
sees private data one request at a time: it receives contexts and losses, seals them, and opens a
sealed row or loss only to answer the request that names it. The child reads one line per batch,
with the plan and the places of its experiment, and answers with one line, the release. One child
fits for all experiments of a process. It never reads an experiment file, which may have changed
since the start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from discreet.batches.release_batch import release_batch
from discreet.client.chain import Chain
from discreet.client.documents import public_key
from discreet.errors import NotReady
from discreet.plan.plan import Plan
from discreet.privacy.noise import SecureNoise
from discreet.releases.canonical import canonical
from discreet.releases.release import Release
from discreet.service.runtime.release_transaction import LATE, ReleaseRefused
from discreet.service.secrets.sealing import Sealer
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage import document_table as documents
from discreet.service.storage.batches import opened_after
from discreet.service.storage.database import Connection, Database, step
from discreet.service.storage.locations import open_database
from discreet.service.storage.sealed_batch import read_batch

# Decisions come first, also while the child imports libraries: one thread, low priority.
# Not SCHED_IDLE: on a machine that is always busy it gets a third of a per cent of a core, where
# the lowest niceness gets 1.5 per cent, so that a release is still made.
CHILD = """
import os, sys
os.nice(19)
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
from discreet.service.runtime.fit_process import main
main()
"""
HELD = 8
"""Experiments whose verified chains the child keeps in memory."""
DEADLINE = 3600.0
"""Seconds after which a child that does not answer is killed and replaced. The same for every
batch, so it is public; a hundred times the duration of large fits, since the child has 1.5 per cent
of a core on a machine that is always busy."""


class VerifiedChain:
    """Committed chain as far as this process has verified it.

    A fit needs the statistics of all releases, which are large: each document is read once.
    """

    def __init__(self, vault: Vault) -> None:
        self._chain = Chain(public_key(vault.signing))

    def extended(self, connection: Connection) -> Chain:
        """Return the chain with documents that were committed since the last call."""
        self._chain = self._chain.extended(documents.after(connection, self._chain.number))
        return self._chain


def fit(
    settings: Settings,
    database: Database,
    vault: Vault,
    epoch: int,
    batch: int,
    size: int,
    verified: VerifiedChain | None = None,
) -> Release:
    """Decrypt a sealed batch, fit it and add the noise."""
    key = vault.batch(epoch, batch)
    if key is None:
        raise NotReady(
            f"key of batch {batch} must be in the vault; the key is missing. "
            "Without it the rows cannot be read: burn the batch."
        )
    with closing(database.connect()) as connection:
        chain = (verified or VerifiedChain(vault)).extended(connection)
        ledger = documents.ledger_of(connection, settings)
        sealer = Sealer(key, epoch, batch)
        blocks = chain.blocks_at(opened_after(connection, epoch, batch))
        rows = read_batch(connection, settings.plan, sealer, epoch, batch, size, blocks)
    step("fit:read")
    part, plan = documents.part(epoch, batch), settings.plan
    return release_batch(plan, SecureNoise(), rows, chain.released, ledger, part)[0]


class FitChild:
    """Child process of all experiments that a process serves; they take turns.

    It is started when a batch is sealed, and ended by closing its input, or after ``DEADLINE``
    seconds without an answer, by a timer that ``timer`` creates.
    """

    def __init__(
        self, timer: Callable[[float, Callable[[], None]], threading.Timer] = threading.Timer
    ) -> None:
        self._timer, self.late = timer, False
        self._child: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._current: object = None
        self._clients: set[object] = set()  # whose chains it began to verify
        self._environment = dict(os.environ)

    def request(self, who: object, content: Mapping[str, object]) -> dict[str, Any] | None:
        """Send a request and return the answer; None if the child failed or ended, and ``late`` is
        set if it did not answer in time."""
        with self._lock:
            self._current, self.late = who, False
            timer = self._timer(DEADLINE, self._end_late)
            timer.daemon = True
            try:
                child = self._started()
                self._clients.add(who)
                timer.start()
                print(json.dumps(content), file=child.stdin, flush=True)
                assert child.stdout is not None
                answer: dict[str, Any] | None = json.loads(child.stdout.readline() or "null")
                return answer
            except (OSError, ValueError):
                return None
            finally:
                timer.cancel()
                self._current = None

    def _end_late(self) -> None:
        # Privacy: nothing of the fit was written, so only the noise of the next fit is published.
        # [docs/privacy/service.md, "One fit for each batch"]
        child = self._child
        if child is not None:
            self.late = True
            child.kill()  # its output ends, and with it the wait for an answer

    def has_served(self, who: object) -> bool:
        """Return whether the running child has received a request of ``who``."""
        child = self._child
        return child is not None and child.poll() is None and who in self._clients

    def _started(self) -> subprocess.Popen[str]:
        if self._child is None or self._child.poll() is not None:
            self._clients.clear()
            self._child = subprocess.Popen(
                [sys.executable, "-c", CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # a warning of a library could contain rows
                text=True,
                # Ctrl-C goes to the parent, which ends the child. Not a session of its own: Linux
                # shares processors out among sessions first, and niceness counts inside one only.
                process_group=0,
                env=self._environment,
            )
            self._environment.pop("DISCREET_STEP", None)  # a test kills one child only
        return self._child

    def close(self, who: object) -> None:
        """End the child, unless others use it; a fit under way is dropped, and made again after the
        next start."""
        self._clients.discard(who)
        if self._current is not who and (self._current is not None or self._clients):
            return
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()


class Fitter:
    """Client of the child process for the releases of one experiment."""

    def __init__(self, settings: Settings, child: FitChild) -> None:
        # Not as an argument: everyone can read arguments, and an address may hold a password.
        self._terms, self._child = _written(settings), child

    def __call__(self, epoch: int, batch: int, size: int) -> Release:
        place = {"epoch": epoch, "batch": batch, "size": size}
        answer = self._child.request(self, place | {"terms": self._terms})
        if answer is None and self._child.late:
            raise ReleaseRefused(LATE)
        if answer is None:
            raise NotReady(
                f"the child process must return a release of batch {batch}; it failed or ended. "
                "The service tries again; if this repeats, restart the service."
            )
        return Release.from_json(answer)

    def start(self) -> None:
        """Start the child and let it verify the chain, before a fit is due."""
        if not self._child.has_served(self):
            self._child.request(self, {"terms": self._terms})

    def close(self) -> None:
        """End the child, unless it works for another experiment."""
        self._child.close(self)


def _written(settings: Settings) -> str:
    """Return the settings that a fit needs, in one line."""
    names = ("experiment", "database", "vault", "allow_idealised")
    terms: dict[str, object] = {name: getattr(settings, name) for name in names}
    terms |= {"plan": settings.plan.to_config(), "folder": str(settings.folder.resolve())}
    return canonical(terms).decode()


@lru_cache(maxsize=HELD)
def _read(terms: str) -> tuple[Settings, Database, Vault, VerifiedChain]:
    """Parse the settings of an experiment; the child remembers the latest few."""
    given = json.loads(terms)
    plan, folder = Plan.from_config(given.pop("plan")), Path(given.pop("folder"))
    settings = Settings(plan=plan, folder=folder, **given)
    vault = Vault(settings.place(settings.vault))
    return settings, open_database(settings), vault, VerifiedChain(vault)


def main() -> None:
    """Answer until the input ends, which also happens when the parent dies."""
    for line in sys.stdin:
        request, answer = json.loads(line), None
        # The child reports no reason for a failure: the reason could depend on rows.
        with suppress(Exception):
            settings, database, vault, verified = _read(request["terms"])
            if "batch" in request:
                place = request["epoch"], request["batch"], request["size"]
                try:
                    answer = fit(settings, database, vault, *place, verified).to_json()
                finally:
                    vault.forget(*place[:2])
            else:  # a long chain takes a while: begin before a fit is due
                with closing(database.connect()) as connection:
                    verified.extended(connection)
        print(json.dumps(answer), flush=True)
