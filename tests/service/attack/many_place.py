"""A folder of experiments that are served by processes which can be killed at any moment."""

import json
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from discreet.service.runtime.experiment_folder import ExperimentFolder
from discreet.service.storage.api_keys import begin_server
from ports import free_port
from service.attack.harness import Place
from service.attack.processes import alive, family
from service.attack.witness import OFTEN
from waiting import until

NAMED = {"actions": ["none", "mail", "call"]}
KINDS = {
    "plain": ({"waiting": "gap"}, NAMED, {}),
    "tokens": ({"journal": "observe"}, NAMED, {}),
    "clock": ({}, {"n_actions": 3, "close_every": "0.4s"}, {}),
    "control": ({}, {"n_actions": 3}, {"control": {"share": 0.25, "action": 2}}),
    "users": ({"unit": "user", **OFTEN}, {"n_actions": 3}, {}),
}
"""Five experiments: what is said at the top of their files, of their plans, and in tables."""
EXACT = ("plain", "tokens", "clock")
"""Those without noise, so that sums can be compared."""
CHANGING = ("plain", "tokens")
"""Those whose actions have names, and change."""


def text_of(kind):
    """The file of an experiment; short windows, and batches that stay short."""
    top, plan, tables = KINDS[kind]
    top = {"window": 0.3, "settle": 0.1, "rate_limit": 0, "lease": 4} | top
    top |= {"allow_idealised": True} if kind in EXACT else {}
    epsilon = "inf" if kind in EXACT else "1.0"
    tables = {
        "plan": {"first_batch": 8, "longest_batch": 32} | plan,
        "plan.oracle": {"kind": "PooledRidge", "geometry": "plain"},
        "plan.features": {"kind": "UnitBall", "dimension": 2},
    } | {f"plan.{name}": table for name, table in tables.items()}
    lines = [_lines(top)] + [f"[{name}]\n{_lines(table)}" for name, table in tables.items()]
    return "\n".join([*lines, "[plan.budget]", f"epsilon = {epsilon}", "delta = 1e-6"])


def _lines(stated):
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in stated.items())


class ManyPlace(Place):
    """A server of many experiments: the key of each, and that of the server."""

    def __init__(self, folder, launcher, kinds, url=None, prefix=""):
        self.folder, self._launcher, self.url = folder, launcher, url
        folder.mkdir(parents=True)
        stated = {"anchors": str(folder.parent / "anchors")} | ({"database": url} if url else {})
        (folder / "server.toml").write_text(_lines(stated))
        self.admin = begin_server(folder)
        self.prefix, self.keys = prefix, {}
        for kind in kinds:
            self.keys[prefix + kind] = (
                ExperimentFolder(folder).new(prefix + kind, text_of(kind)).admin_key
            )
        self.port, self.log = free_port(), folder.parent / f"{folder.name}.log"
        self.tree, self._children = set(), set()

    def _discreet(self, command, *words, step, **requested):
        return self._launcher.fork(
            arguments=[command, "--folder", str(self.folder), *words],
            environment={"DISCREET_STEP": step},
            log=str(self.log),
            **requested,
        )

    def start(self, **options):
        self.tree, self._children = set(), set()
        return super().start(**options)

    def look(self):
        """Note all processes, and which of them fit."""
        self.tree |= family(self.pid)
        for pid in self.tree - self._children:
            with suppress(OSError):
                if b"fit_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    self._children.add(pid)

    @property
    def wounded(self):
        """Whether a process that serves has died; children that fit end with an experiment too."""
        self.look()
        return any(not alive(pid) for pid in self.tree - self._children)

    @property
    def child(self):
        """A process that fits, if there is one."""
        self.look()
        return next(filter(alive, self._children), None)

    @property
    def child_died(self):
        self.look()
        return any(not alive(pid) for pid in self._children)

    def kill_child(self):
        """The process that fits, alone."""
        pid = until(lambda: self.child, "no child was started")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def unmark(self):
        """As ``discreet experiment list`` says of what a crash left half put away; how many."""
        marks = list(self.folder.glob("*/*/not-served"))
        for mark in marks:
            mark.unlink()
        return len(marks)

    def remove(self, path):
        """The folder of an experiment that never began."""
        shutil.rmtree(path)
