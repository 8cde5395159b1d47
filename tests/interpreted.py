"""Kernels in Triton's interpreter, which needs no GPU and must be asked for before the import."""

from __future__ import annotations

import os
import subprocess
import sys


def interpreted(code: str) -> None:
    """Run code that ends with ``print("agrees")``."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "agrees", done.stderr
