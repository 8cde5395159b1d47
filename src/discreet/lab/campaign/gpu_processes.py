"""Several processes at once on one GPU.

Most runs are too short to fill a GPU from one process, and processes of their own take turns.
NVIDIA's multi-process service lets their work run side by side. It is started for the time of a
campaign where it is installed; without it everything is the same, only slower.

Triton compiles a kernel for each size of its tiles when it is first called, and keeps it in a
folder that processes share (``TRITON_CACHE_DIR``, or ``~/.triton/cache``). A campaign lets each
process compile some kernels first, so that none of them is compiled many times.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np

from discreet.releases.release import Predictor, Release
from discreet.releases.released import Released

CONTROL = "nvidia-cuda-mps-control"
PIPE = "CUDA_MPS_PIPE_DIRECTORY"
LOG = "CUDA_MPS_LOG_DIRECTORY"
SECONDS = 30.0
PROCESSES = 12
"""More gain little: by then the GPU is busy with long sets, and the cores with short ones."""

PROBE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
raise SystemExit(cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
"""


@contextmanager
def shared_gpu(device: str, jobs: int) -> Iterator[bool]:
    """Whether processes started meanwhile work on the GPU side by side."""
    control = shutil.which(CONTROL)
    if device != "cuda" or jobs == 1 or control is None or PIPE in os.environ:
        yield PIPE in os.environ
        return
    with TemporaryDirectory(prefix="discreet-mps-") as folder:
        os.environ.update({PIPE: folder, LOG: folder})
        try:
            serves = _succeeds([control, "-d"]) and _succeeds([sys.executable, "-c", PROBE])
            if not serves:
                _forget()
            yield serves
        finally:
            _forget()
            _succeeds([control], {PIPE: folder}, "quit\n")


Kernel = tuple[str, int]
"""A kernel, and a number of features or actions that needs the tile in question."""


def kernels(shapes: Iterable[tuple[int, int]]) -> list[Kernel]:
    """Kernels that sets with these numbers of features and actions need, the slowest first."""
    from discreet.arrays.small_matrix_kernel import LARGEST
    from discreet.arrays.triton_kernels import tile, triton

    if triton is None:
        return []
    shapes = list(shapes)
    sides = sorted({sum(tile(p)) for p, _ in shapes if p <= LARGEST}, reverse=True)
    wide = sorted({triton.next_power_of_2(actions) for _, actions in shapes})
    systems = [(name, p) for p in sides for name in ("newton", "inverse", "solution")]
    return [*systems, *(("replay", actions) for actions in wide), ("draw", 2)]


def compile_kernel(kernel: Kernel) -> None:
    """Compile a kernel into the folder that processes share, by a tiny call."""
    import torch

    from discreet.arrays import small_matrix_kernel
    from discreet.oracles.mechanisms import newton_kernel
    from discreet.policies import draw_kernel, replay_kernel

    name, size = kernel
    ones = partial(torch.ones, device="cuda")
    if name == "newton":
        problem = (ones(1, 1, 1, size), ones(1, 1, 1, 1, dtype=torch.bool), ones(1, 1, 1, 1))
        newton_kernel.minimised(*problem, ones(1, 1, 1), ones(1, 1, 1, size), 1, 1e-3, 1e-3)
    elif name == "inverse":
        small_matrix_kernel.inverted(ones(1, size).diag_embed(), ones(1))
    elif name == "solution":
        small_matrix_kernel.solved(ones(1, size).diag_embed(), ones(1), ones(1, size))
    elif name == "replay":
        predictor = Predictor(ones(1, 1, size, 2), "clip")
        released = Released(size).add(Release(1, 1, predictor))
        one = np.ones(1)
        replay_kernel.sampled(released, ones(1, 1, 1, 2), ones(1, 1, 1), one, one)
    else:
        draw_kernel.drawn(ones(1, 1, 1, size), 0.5 * ones(1, 1, 1))


def _forget() -> None:
    for name in (PIPE, LOG):
        os.environ.pop(name, None)


def _succeeds(command: list[str], extra: dict[str, str] | None = None, say: str = "") -> bool:
    quiet = subprocess.DEVNULL
    environment = {**os.environ, **(extra or {})}
    try:
        done = subprocess.run(
            command,
            input=say,
            text=True,
            stdout=quiet,
            stderr=quiet,
            timeout=SECONDS,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
