"""Where a campaign computes: device, memory and threads, and public words for them."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from discreet.errors import InvalidInput
from discreet.simulate.engine import Machine
from discreet.validate import one_of

DEVICES = ("auto", "numpy", "cpu", "cuda")
DTYPE = "float32"
"""A loss is a mean of many rounds; the engine sums in float64 where sums are long."""
SHARE = {"numpy": 0.5, "cpu": 0.5, "cuda": 0.76}
"""Share of the free memory of a GPU, or of the memory of the machine, which others use as well.
The engine's budget is an estimate; on a GPU torch holds up to 1.3 times the budget."""
ENOUGH = 2**27
"""Bytes for a job on a CPU: some dozens of runs at once, beyond which more gain little."""
LEAST = 2**24
"""Below this, less memory does not help: a data set and its fits take more."""
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def machine(device: str, jobs: int, memory: float | None = None) -> Machine:
    """The machine of one job: ``memory`` (GiB, for all jobs) or what is free, shared out.

    Results must not depend on what else is running, so a budget of our own is a power of two.
    """
    device = choose(device)
    if memory is not None:
        return Machine(device, DTYPE, max(LEAST, int(memory * 2**30) // jobs))
    share = int(SHARE[device] * free_memory(device)) // jobs
    rounded = 1 << max(share, LEAST).bit_length() - 1
    return Machine(device, DTYPE, rounded if device == "cuda" else min(rounded, ENOUGH))


def choose(device: str) -> str:
    """``numpy``, ``cpu`` or ``cuda``; ``auto`` takes the fastest that is there."""
    one_of("device", device, DEVICES)
    torch: Any = _torch() if device != "numpy" else None
    if device == "auto":
        return "numpy" if torch is None else "cuda" if torch.cuda.is_available() else "cpu"
    if device != "numpy" and torch is None:
        raise InvalidInput(
            f"torch must be installed for device {device!r}; this Python lacks it. "
            "Run pip install 'discreet[torch]', or choose --device numpy."
        )
    if device == "cuda" and not torch.cuda.is_available():
        raise InvalidInput(
            "device must be one that is here; torch finds no CUDA device. "
            "Choose --device auto, cpu or numpy."
        )
    return device


def free_memory(device: str) -> int:
    """Bytes that are free on a GPU now, or that the machine has; 4 GiB where that is unknown."""
    if device == "cuda":
        return int(_torch().cuda.mem_get_info()[0])
    pages = getattr(os, "sysconf_names", {}).get("SC_PHYS_PAGES")
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE") if pages else 2**32


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def described(device: str) -> str:
    """A class of hardware, such as "two x86 cores": never a host or a user."""
    if device == "cuda":
        return f"one {_torch().cuda.get_device_name()}"
    names = {"x86_64": "x86", "amd64": "x86", "aarch64": "ARM", "arm64": "ARM"}
    kind = names.get(platform.machine().lower(), platform.machine() or "unknown")
    count = cores()
    number = WORDS[count] if count < len(WORDS) else str(count)
    return f"{number} {kind} core{'s' * (count != 1)}"


@contextmanager
def one_thread(device: str) -> Iterator[None]:
    """One thread a job: jobs share out the cores, and results do not depend on how many.

    A product that threads split is summed in another order; and several jobs whose threads
    outnumber the cores wait for each other.
    """
    from threadpoolctl import threadpool_limits

    torch = None if device == "numpy" else _torch()
    before = torch.get_num_threads() if torch else 0
    if torch:
        torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        if torch:
            torch.set_num_threads(before)


def _torch() -> Any:
    if find_spec("torch") is None:
        return None
    import torch

    return torch
