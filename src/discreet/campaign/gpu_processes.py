"""Several processes at once on one GPU.

Most runs are too short to fill a GPU from one process, and processes of their own take turns.
NVIDIA's multi-process service lets their work run side by side. It is started for the time of a
campaign where it is installed; without it everything is the same, only slower.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

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
