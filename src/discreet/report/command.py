"""The command that makes the same campaign again, from its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def command(manifest: Mapping[str, Any]) -> str:
    """``discreet campaign run …``; where the data lie is the reader's own affair."""
    grid = manifest.get("grid", {})
    parts = ["discreet campaign run", f"--preset {grid.get('preset', 'paper')}"]
    if "mechanism" in grid:
        parts.append(f"--mechanism {grid['mechanism']}")
    if "algorithms" in grid:
        parts.append(f"--algorithms {' '.join(grid['algorithms'])}")
    if "epsilons" in grid:
        parts.append(f"--epsilon {' '.join(_number(each) for each in grid['epsilons'])}")
    if "seeds" in grid:
        seeds = grid["seeds"]
        parts.append(f"--seeds {len(seeds) if isinstance(seeds, list) else seeds}")
    return " ".join([*parts, "--data DATA --out DIR"])


def _number(value: Any) -> str:
    return f"{float(value):g}"
