"""The experiments of a folder in one worker: start, watch, stop.

They share the process, the child that fits, the thread that commits, and the counters of requests;
nothing else.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from discreet.errors import DiscreetError, InvalidInput
from discreet.service.http.app import experiment_app, settle_memory
from discreet.service.http.endpoint import ExperimentApp
from discreet.service.http.tracing import Traces
from discreet.service.logs import Log
from discreet.service.metrics import Families, Metrics
from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.runtime.fit_process import FitChild
from discreet.service.runtime.service import Service
from discreet.service.settings import Settings
from discreet.service.storage.database import safe_name
from discreet.service.storage.group_commit import CommitThread

LOOK = 0.5
"""Seconds between two looks at the folder."""
AGAIN = 10.0
"""Seconds after which an experiment that could not start is tried again."""
TOGETHER = 8
"""Experiments that start at the same time."""
SHARE = 0.02
"""Seconds that each experiment in use adds to the time between two looks at its database: all looks
together take a fixed part of the processor, however many there are."""
THREADS = 64
"""Threads that wait for disks and fits, in addition to those of each experiment."""


@dataclass
class Hosted:
    """An experiment that is served."""

    service: Service
    app: ExperimentApp


@dataclass(frozen=True)
class Broken:
    """An experiment that could not start, and when it was tried."""

    kind: str
    reason: str
    tried: float


class HostedExperiments:
    """Every experiment of a folder: those that are served, and those that could not start."""

    def __init__(
        self, folder: ExperimentFolder, *, workers: int = 1, traces: Traces | None = None
    ) -> None:
        self.folder, self._workers, self._traces = folder, workers, traces
        self.families = Families(named=True)
        self.served: dict[str, Hosted] = {}
        self.broken: dict[str, Broken] = {}
        self._child, self._pace = FitChild(), 0.0
        self._looking = asyncio.Lock()
        self._stopping = asyncio.Event()

    async def start(self) -> None:
        """Start all that can be started, and watch the folder from now on."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
        self._commits = CommitThread()
        await self.look()
        settle_memory()
        self._watch = asyncio.create_task(self._watching())

    async def stop(self) -> None:
        """Stop all; each finishes what is under way."""
        self._stopping.set()
        await self._watch
        await asyncio.gather(*(self._stop(name) for name in [*self.served]))
        await asyncio.to_thread(self._commits.close)

    async def _watching(self) -> None:
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), LOOK)
            with suppress(OSError):  # the next look may find the folder again
                await self.look()

    async def look(self) -> None:
        """Serve experiments that are new in the folder, and stop those that have left it."""
        async with self._looking:
            names = await asyncio.to_thread(self.folder.names)
            for name in set(self.broken) - set(names):
                del self.broken[name]
            for name in set(self.served) - set(names):
                await self._stop(name)
            now = time.monotonic()
            new = [
                name
                for name in names
                if name not in self.served
                and (name not in self.broken or now - self.broken[name].tried >= AGAIN)
            ]
            for first in range(0, len(new), TOGETHER):  # they wait for the disk side by side
                if not self._stopping.is_set():
                    await asyncio.gather(*map(self._serve, new[first : first + TOGETHER]))
            awake = sum(not each.service.state.asleep for each in self.served.values())
            self._pace = SHARE * awake

    async def _serve(self, name: str) -> None:
        before = self.broken.get(name)
        service = None
        try:
            service = await asyncio.to_thread(self._made, name)
            await service.start(again=before is not None)
        except Exception as error:
            reason = str(error) if isinstance(error, DiscreetError) else "a fault of its storage"
            kind = safe_name(error)
            if service is None and before is None:  # else the service has logged it
                Log(name).event("start failed", kind=kind)
            self.broken[name] = Broken(kind, reason, time.monotonic())
            return
        self.broken.pop(name, None)
        metrics = Metrics(
            internal=service.settings.internal_metrics, families=self.families, experiment=name
        )
        self.served[name] = Hosted(service, experiment_app(service, metrics, self._traces))

    def _made(self, name: str) -> Service:
        path = self.folder.file(name)
        settings = Settings.read(path)
        if self._workers > 1 and not settings.postgres:
            raise InvalidInput(
                f"experiment must have a PostgreSQL database for several workers; {name!r} has "
                "SQLite. Serve this folder with one worker."
            )
        return Service(
            settings,
            config=path,
            workers=self._workers,
            child=self._child,
            commits=self._commits,
            pace=lambda: self._pace,
        )

    def only(self) -> str | None:
        """The name of the only experiment; None where there are none or several."""
        names = [*self.served, *self.broken]
        return names[0] if len(names) == 1 else None

    async def _stop(self, name: str) -> None:
        hosted = self.served.pop(name)
        with suppress(Exception):  # one that fails to stop does not keep the others
            await hosted.service.stop()
