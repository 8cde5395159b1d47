"""Hardware of a campaign: device, memory, threads, and several processes on one GPU.

Most runs are too short to fill a GPU from one process, and separate processes take turns.
NVIDIA's multi-process service runs their work concurrently. It is started for the time of a
campaign where it is installed; without it results are the same, only slower.

Triton compiles a kernel for each size of its tiles at the first call and keeps it in a folder that
processes share (``TRITON_CACHE_DIR``, or ``~/.triton/cache``). In a campaign each process compiles
some kernels first, so that none is compiled many times.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from inspect import getsource
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.releases.release import Predictor, Release
from discreet.releases.released import Released
from discreet.simulate.engine import Machine
from discreet.validate import one_of

DEVICES = ("auto", "numpy", "cpu", "cuda")
DTYPE = "float32"
"""Precision of runs: a loss is a mean of many rounds, and the engine adds long sums in float64."""
SHARE = {"numpy": 0.5, "cpu": 0.5, "cuda": 0.76}
"""Share of the free memory of a GPU, or of the memory of the machine, which others use as well.
The engine's budget is an estimate; on a GPU torch holds up to 1.3 times the budget."""
ENOUGH = 2**27
"""Bytes for a job on a CPU: some dozens of runs at once, beyond which more memory gains little."""
LEAST = 2**24
"""Least memory of a job: a data set and its fits take at least this."""
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def machine(device: str, jobs: int, memory: float | None = None) -> Machine:
    """Return the machine of one job, with its share of ``memory`` (GiB) or of the free memory.

    Results must not depend on other programs, so a budget that is not given is a power of two.
    """
    device = choose(device)
    if memory is not None:
        return Machine(device, DTYPE, max(LEAST, int(memory * 2**30) // jobs))
    share = int(SHARE[device] * free_memory(device)) // jobs
    rounded = 1 << max(share, LEAST).bit_length() - 1
    return Machine(device, DTYPE, rounded if device == "cuda" else min(rounded, ENOUGH))


def choose(device: str) -> str:
    """Return ``numpy``, ``cpu`` or ``cuda``; ``auto`` takes the fastest available one."""
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
    """Return the free bytes of a GPU, or the bytes of the machine; 4 GiB where that is unknown."""
    if device == "cuda":
        return int(_torch().cuda.mem_get_info()[0])
    pages = getattr(os, "sysconf_names", {}).get("SC_PHYS_PAGES")
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE") if pages else 2**32


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def described(device: str) -> str:
    """Return a class of hardware, such as "two x86 cores": never a host or a user."""
    if device == "cuda":
        return f"one {_torch().cuda.get_device_name()}"
    names = {"x86_64": "x86", "amd64": "x86", "aarch64": "ARM", "arm64": "ARM"}
    kind = names.get(platform.machine().lower(), platform.machine() or "unknown")
    count = cores()
    number = WORDS[count] if count < len(WORDS) else str(count)
    return f"{number} {kind} core{'s' * (count != 1)}"


@contextmanager
def one_thread(device: str) -> Iterator[None]:
    """Limit a job to one thread, so that jobs share the cores and results do not depend on them.

    A product that threads split is summed in another order, and jobs with more threads than
    cores wait for each other.
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


CONTROL = "nvidia-cuda-mps-control"
PIPE = "CUDA_MPS_PIPE_DIRECTORY"
LOG = "CUDA_MPS_LOG_DIRECTORY"
SECONDS = 30.0
PROCESSES = 12
"""Largest default number of processes on a GPU: more gain little."""


def open_gpu() -> int:
    """Open the GPU in this process, while other threads go on; return CUDA's error, 0 for none."""
    import ctypes

    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    return int(cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))


PROBE = f"{getsource(open_gpu)}\nraise SystemExit(open_gpu())"
"""Program that says whether another process can open the GPU."""


@contextmanager
def shared_gpu(device: str, jobs: int) -> Iterator[bool]:
    """Yield True if processes that are started meanwhile run concurrently on the GPU."""
    control = shutil.which(CONTROL)
    if device != "cuda" or jobs == 1 or control is None or PIPE in os.environ:
        yield PIPE in os.environ
        return
    with TemporaryDirectory(prefix="discreet-mps-") as folder:
        places = {PIPE: folder, LOG: folder}
        try:
            commands = [control, "-d"], [sys.executable, "-c", PROBE]
            serves = all(_succeeds(command, places) for command in commands)
            os.environ.update(places if serves else {})
            yield serves
        finally:
            for name in places:
                os.environ.pop(name, None)
            _succeeds([control], {PIPE: folder}, "quit\n")


Kernel = tuple[str, int]
"""A kernel, and a number of features or actions that determines its tile."""


def kernels(shapes: Iterable[tuple[int, int]]) -> list[Kernel]:
    """Return the kernels for these numbers of features and actions, the slowest first."""
    from discreet.arrays.triton_kernels import LARGEST, tile, triton

    if triton is None:
        return []
    shapes = list(shapes)
    sides = sorted({sum(tile(p)) for p, _ in shapes if p <= LARGEST}, reverse=True)
    wide = sorted({triton.next_power_of_2(actions) for _, actions in shapes})
    systems = [(name, p) for p in sides for name in ("newton", "inverse", "solution")]
    policies = [(name, actions) for name in ("replay", "rule") for actions in wide]
    return [*systems, *policies, ("draw", 2), ("products", 2)]


def compile_kernel(kernel: Kernel) -> None:
    """Compile a kernel into the shared folder, by a tiny call."""
    import torch

    from discreet.arrays import triton_kernels
    from discreet.arrays.linear_algebra import pack_products
    from discreet.oracles.mechanisms import newton_kernel
    from discreet.policies import kernels as policy_kernels

    name, size = kernel
    ones = partial(torch.ones, device="cuda")
    if name == "newton":
        problem = (ones(1, 1, 1, size), ones(1, 1, 1, 1, dtype=torch.bool), ones(1, 1, 1, 1))
        newton_kernel.minimised(*problem, ones(1, 1, 1), ones(1, 1, 1, size), 1, 1e-3, 1e-3)
    elif name == "inverse":
        triton_kernels.inverted(ones(1, size).diag_embed(), ones(1), ones(1))
    elif name == "solution":
        triton_kernels.solved(ones(1, size).diag_embed(), ones(1), ones(1), ones(1, size))
    elif name in ("replay", "rule"):
        predictor = Predictor(ones(1, 1, size, 2), "clip")
        released = Released(size).add(Release(1, 1, predictor))
        x, u, one = ones(1, 1, 1, 2), ones(1, 1, 1, 2), np.ones(1)
        if name == "replay":
            policy_kernels.replayed(released, x, u[..., 0], one, one)
        else:
            policy_kernels.ruled("gaps", released, x, u, one, one, 1)
    elif name == "products":
        pack_products(ones(1, size))
    else:
        policy_kernels.drawn(ones(1, 1, 1, size), 0.5 * ones(1, 1, 1))


def _succeeds(command: list[str], extra: dict[str, str], sent: str = "") -> bool:
    quiet = subprocess.DEVNULL
    options: dict[str, Any] = {"stdout": quiet, "stderr": quiet, "env": {**os.environ, **extra}}
    try:
        done = subprocess.run(command, input=sent, text=True, timeout=SECONDS, **options)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
