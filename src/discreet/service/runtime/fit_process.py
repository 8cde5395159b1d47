"""The only code of the service that decrypts the rows of a whole batch.

It runs in a child process, so decisions go on while it works. The process that answers requests
sees private data one request at a time: it receives contexts and losses, seals them, and opens a
sealed row or loss only to answer the request that names it. The child reads one line with the plan
and the places, then one line per batch; it answers each batch with one line, the release. It never
reads the experiment file, which may have changed since the start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from discreet.billboard.chain import Chain
from discreet.billboard.signing import public_key
from discreet.errors import NotReady
from discreet.plan import Plan
from discreet.privacy.noise import SecureNoise
from discreet.private_release import private_release
from discreet.releases.canonical import canonical
from discreet.releases.release import Release
from discreet.service.kill_points import step
from discreet.service.secrets.sealing import Sealer
from discreet.service.secrets.vault import Vault
from discreet.service.settings import Settings
from discreet.service.storage import document_table as documents
from discreet.service.storage.batches import opened_after
from discreet.service.storage.database import Connection, Database
from discreet.service.storage.locations import open_database
from discreet.service.storage.sealed_batch import read_batch

# Decisions come first, also while the child imports what it needs: one thread, and not urgent.
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


class Verified:
    """The committed chain as far as this process has verified it.

    A fit needs the statistics of all releases, which are large: each document is read once.
    """

    def __init__(self, vault: Vault) -> None:
        self._chain = Chain(public_key(vault.signing))

    def extended(self, connection: Connection) -> Chain:
        """The chain with what was committed since the last call."""
        self._chain = self._chain.extended(documents.after(connection, self._chain.number))
        return self._chain


def fit(
    settings: Settings,
    database: Database,
    vault: Vault,
    epoch: int,
    batch: int,
    size: int,
    verified: Verified | None = None,
) -> Release:
    """Read a sealed batch, fit it, add the noise."""
    key = vault.batch(epoch, batch)
    if key is None:
        raise NotReady(
            f"key of batch {batch} must be in the vault; the key is missing. "
            "Without it the rows cannot be read: burn the batch."
        )
    with closing(database.connect()) as connection:
        chain = (verified or Verified(vault)).extended(connection)
        ledger = documents.ledger_of(connection, settings)
        sealer = Sealer(key, epoch, batch)
        blocks = chain.blocks_at(opened_after(connection, epoch, batch))
        rows = read_batch(connection, settings.plan, sealer, epoch, batch, size, blocks)
    step("fit:read")
    part = documents.part(epoch, batch)
    noise = SecureNoise()
    release, _ = private_release(settings.plan, noise, rows, chain.released, ledger, part)
    return release


class Fitter:
    """A child process that fits; started when a batch is sealed, ended by closing its input."""

    def __init__(self, settings: Settings) -> None:
        self._terms = _written(settings)
        self._child: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._environment = dict(os.environ)

    def __call__(self, epoch: int, batch: int, size: int) -> Release:
        with self._lock:
            answer = self._ask({"epoch": epoch, "batch": batch, "size": size})
        if answer is None:
            raise NotReady(
                f"the child process must return a release of batch {batch}; it failed or ended. "
                "The service tries again; if this repeats, restart the service."
            )
        return Release.from_json(answer)

    def _ask(self, question: dict[str, int]) -> Any:
        try:
            child = self._started()
            print(json.dumps(question), file=child.stdin, flush=True)
            return json.loads((child.stdout and child.stdout.readline()) or "null")
        except (OSError, ValueError):
            return None

    def start(self) -> None:
        """Start the child before a fit is due, so that its imports are done; once only."""
        if self._child is None:
            with self._lock:
                self._started()

    def _started(self) -> subprocess.Popen[str]:
        if self._child is None or self._child.poll() is not None:
            self._child = subprocess.Popen(
                [sys.executable, "-c", CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # a warning of a library could contain rows
                text=True,
                start_new_session=True,  # Ctrl-C goes to the parent, which ends the child
                env=self._environment,
            )
            self._environment.pop("DISCREET_STEP", None)  # a test kills one child only
            # Not as an argument: everyone can read arguments, and an address may hold a password.
            print(self._terms, file=self._child.stdin, flush=True)
        return self._child

    def close(self) -> None:
        """End the child; a fit under way is dropped, and made again after the next start."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()


def _written(settings: Settings) -> str:
    """The settings that a fit needs, in one line."""
    names = ("experiment", "database", "vault", "allow_idealised")
    terms: dict[str, Any] = {name: getattr(settings, name) for name in names}
    terms |= {"plan": settings.plan.to_config(), "folder": str(settings.folder.resolve())}
    return canonical(terms).decode()


def _read(line: str) -> Settings:
    terms = json.loads(line)
    plan, folder = Plan.from_config(terms.pop("plan")), Path(terms.pop("folder"))
    return Settings(plan=plan, folder=folder, **terms)


def main() -> None:
    """Answer until the input ends, which also happens when the parent dies."""
    settings = _read(sys.stdin.readline())
    database, vault = open_database(settings), Vault(settings.place(settings.vault))
    verified = Verified(vault)
    with suppress(Exception), closing(database.connect()) as connection:
        verified.extended(connection)  # a long chain takes a while: begin before a fit is due
    for line in sys.stdin:
        asked = json.loads(line)
        # The child reports no reason for a failure: the reason could depend on rows.
        answer = None
        try:
            place = asked["epoch"], asked["batch"], asked["size"]
            answer = fit(settings, database, vault, *place, verified).to_json()
        except Exception:
            answer = None
        vault.forget(asked["epoch"], asked["batch"])
        print(json.dumps(answer), flush=True)
