"""Experiments that a worker serves: all of a folder, or a single one; start, watch, change, stop.

Experiments of a folder share the process, the child that fits, the thread that commits, and the
counters of requests; nothing else.
"""

from __future__ import annotations

import asyncio
import gc
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from discreet.errors import DiscreetError, InvalidInput, ServiceError
from discreet.plan.plan import Plan
from discreet.service.experiment_file import rewritten
from discreet.service.logs import Log
from discreet.service.runtime.experiment_folder import ExperimentFolder, resumed
from discreet.service.runtime.fit_process import FitChild
from discreet.service.runtime.service import Service
from discreet.service.settings import ENDED, Settings, read_experiment_file
from discreet.service.storage.database import safe_name
from discreet.service.storage.group_commit import CommitThread
from discreet.text import parse_toml

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
USUAL = {"database": "discreet.db", "vault": "vault", "anchor": None}
"""Default places of the files of an experiment."""
Mount = Callable[[str, Service], ASGIApp]
"""Makes the application of an experiment, by its name and service."""


ExperimentEntry = dict[str, Any]
"""Public state of an experiment in the list of a server."""
CreationReply = dict[str, str]
"""Name, keys and path of a new experiment."""


@dataclass
class Hosted:
    """An experiment that is served."""

    service: Service
    app: ASGIApp


@dataclass(frozen=True)
class Broken:
    """An experiment that could not start, and when it was tried."""

    kind: str
    reason: str
    tried: float


class HostedExperiments:
    """Experiments that are served, and those that could not start; ``mount`` makes applications.

    In methods that change an experiment, ``by`` is the id of the key that requests the change.
    """

    def __init__(self, folder: ExperimentFolder, mount: Mount, *, workers: int = 1) -> None:
        self.folder, self._mount, self._workers = folder, mount, workers
        self.served: dict[str, Hosted] = {}
        self.broken: dict[str, Broken] = {}
        self.archived: dict[str, Hosted] = {}
        """Archived experiments that somebody has read since the start."""
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
        await asyncio.gather(
            *(self._stop(each, name) for each in (self.served, self.archived) for name in [*each])
        )
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
            self.broken = {name: each for name, each in self.broken.items() if name in names}
            kept = await asyncio.to_thread(self.folder.archived) if self.archived else []
            for among, stay in ((self.served, names), (self.archived, kept)):
                for name in set(among) - set(stay):
                    await self._stop(among, name)
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
            service = await asyncio.to_thread(self._made, name, self.folder.file(name))
            await service.start(again=before is not None)
        except Exception as error:
            reason = str(error) if isinstance(error, DiscreetError) else "a fault of its storage"
            kind = safe_name(error)
            if service is None and before is None:  # else the service has logged it
                Log(name).event("start failed", kind=kind)
            self.broken[name] = Broken(kind, reason, time.monotonic())
            return
        self.broken.pop(name, None)
        self.served[name] = Hosted(service, self._mount(name, service))

    async def read_archived(self, name: str, path: Path) -> Hosted | None:
        """Return an archived experiment, which is opened when it is first read."""
        if name not in self.archived:
            async with self._looking:
                if name not in self.archived and not self._stopping.is_set():
                    service = await asyncio.to_thread(self._made, name, path)
                    await service.start()
                    self.archived[name] = Hosted(service, self._mount(name, service))
        return self.archived.get(name)

    def _made(self, name: str, path: Path) -> Service:
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
        """Return the name of the only experiment; None if there are none or several."""
        names = [*self.served, *self.broken]
        return names[0] if len(names) == 1 else None

    @staticmethod
    async def _stop(among: dict[str, Hosted], name: str) -> None:
        hosted = among.pop(name)
        with suppress(Exception):  # one that fails to stop does not keep the others
            await hosted.service.stop()

    async def listed(self) -> list[ExperimentEntry]:
        """Return every experiment: whether it can decide, its mode, what it published."""
        broken = [
            {"name": name, "state": "broken", "reason": each.reason}
            for name, each in self.broken.items()
        ]
        running = [_shown(name, each.service) for name, each in self.served.items()]
        return sorted([*broken, *running], key=itemgetter("name"))

    def serving(self) -> dict[str, Service]:
        """Return the experiments that could start, in the order of their names."""
        return {name: self.served[name].service for name in sorted(self.served)}

    async def create(self, name: str, text: str | None, by: str) -> CreationReply:
        """Create an experiment; its admin key is in this answer and nowhere else."""
        if text is not None:
            _refuse_places(text)
        begun = await asyncio.to_thread(self.folder.new, name, text, None, by)
        Log(name).event("experiment created", by=by)
        await self.look()
        return {
            "name": name,
            "admin_key": begun.admin_key,
            "public_key": begun.public_key,
            "path": self.folder.server.address(name),
        }

    def checked(self, name: str, text: str) -> Settings:
        """Return the settings of a new experiment; refuse what ``create`` would refuse."""
        _refuse_places(text)
        return self.folder.checked(name, text)

    def plan_of(self, text: str) -> Plan:
        """Return the plan of a file that may still lack a name."""
        _refuse_places(text)
        document = parse_toml(text, "this text", "experiment")
        return Settings.from_config(document | {"experiment": "unnamed"}, self.folder.path).plan

    def copied(self, name: str) -> str:
        """Return the file of an experiment for a new one, without the places of its own files."""
        known = name in self.folder.names()
        path = self.folder.file(name) if known else self.folder.archived_file(name)
        if path is None:
            raise _unknown(name)
        text = read_experiment_file(path)
        document = parse_toml(text, path, "experiment")
        taken = {*self.folder.names(), *self.folder.archived()}
        stem = re.sub(r"-\d+$", "", name)[:44]
        free = next(new for i in count(2) if (new := f"{stem}-{i}") not in taken)
        kept = {key: document[key] for key in document if key not in USUAL}
        return rewritten(text, kept | {"experiment": free})

    async def pause(self, name: str, by: str) -> ExperimentEntry:
        service = self._service(name)
        await service.set_mode("frozen", by)
        return _shown(name, service)

    async def resume(self, name: str, by: str) -> ExperimentEntry:
        service = self._service(name)
        await service.set_mode(resumed(service.settings), by)
        return _shown(name, service)

    async def end(self, name: str, by: str) -> ExperimentEntry:
        service = self._service(name)
        await service.end(by)
        return _shown(name, service)

    async def archive(self, name: str, burn: bool, by: str) -> dict[str, str]:
        """End it and put its folder away; all workers let it go first."""
        self._service(name)
        place = await asyncio.to_thread(self.folder.archive, name, burn=burn, by=by)
        Log(name).event("experiment archived", by=by)
        await self.look()
        return {"name": name, "archived": str(place.relative_to(self.folder.path))}

    def _service(self, name: str) -> Service:
        if name in self.served:
            return self.served[name].service
        if name in self.broken:
            raise InvalidInput(
                f"experiment must be able to start to be changed; {name!r} is not. Repair it "
                "first: the list says what is wrong."
            )
        raise _unknown(name)


def _unknown(name: str) -> ServiceError:
    return ServiceError(
        f"experiment must be one of this server; there is no {name[:48]!r}. GET /v1/experiments "
        "lists them.",
        status=404,
        code="unknown_experiment",
    )


def _refuse_places(text: str) -> None:
    """Refuse a text that names files: a key of the server must not read or write its disk."""
    document = parse_toml(text, "this text", "experiment")
    plan = document.get("plan")
    plan = plan if isinstance(plan, dict) else {}
    actions = plan.get("actions")
    items = actions.get("items") if isinstance(actions, dict) else None
    files = {"plan.prior": plan.get("prior"), "plan.actions.items": items}
    named = [name for name in USUAL if document.get(name, USUAL[name]) != USUAL[name]]
    named += [name for name, value in files.items() if isinstance(value, str)]
    if named:
        raise InvalidInput(
            f"{', '.join(named)} must be left out of an experiment that is sent; it names "
            "a place on the server. Begin this one there: discreet experiment new NAME --from FILE."
        )


def _shown(name: str, service: Service) -> ExperimentEntry:
    state = service.state
    return {
        "name": name,
        "experiment": service.settings.experiment,
        "question": service.settings.question,
        "state": {"frozen": "paused", ENDED: "ended"}.get(state.mode, "running"),
        "mode": state.mode,
        "ready": not state.unready,
        "documents": len(state.serving.chain.links),
        "under_way": len(state.live),
        "path": service.settings.server.prefix,
    }


def settle_memory() -> None:
    """Exclude existing objects from garbage collection, and let it run less often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
