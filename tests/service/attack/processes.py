"""Processes that are started quickly, watched, and never outlive their test."""

import json
import os
import subprocess
import sys
from pathlib import Path


class Launcher:
    """Starts serving processes quickly."""

    def __init__(self, example):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("launch.py"), example],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._process.stdout.readline() == "ready\n"

    def fork(self, **requested):
        print(json.dumps(requested), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def family(pid):
    """A process and all that it started."""
    found, new = set(), [pid]
    while new:
        each = new.pop()
        found.add(each)
        try:
            for thread in Path(f"/proc/{each}/task").iterdir():
                new += [int(child) for child in (thread / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found
