"""The command that makes the same campaign again, from its manifest."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from discreet.lab.campaign.grid import PRESETS, Grid

FLAGS = {
    "mechanism": "--mechanism",
    "features": "--features",
    "algorithms": "--algorithms",
    "oracles": "--oracles",
    "epsilons": "--epsilon",
    "ridges": "--ridges",
    "seeds": "--seeds",
}


def command(manifest: Mapping[str, Any]) -> str:
    """``discreet campaign run …``; where the data lie is the reader's own affair.

    >>> command({"grid": {**Grid.of("paper").to_document(), "seeds": 3}})
    'discreet campaign run --preset paper --mechanism paper --seeds 3 --data DATA --out DIR'
    """
    grid = manifest.get("grid", {})
    preset = grid.get("preset", "paper")
    usual = Grid.of(preset).to_document() if preset in PRESETS else {}
    file = " campaign.toml" if "plans" in grid else ""  # plans have no flags
    parts = [f"discreet campaign run{file} --preset {preset}"]
    declared = [each["name"] for each in grid.get("plans", ())]
    if declared:
        grid = {**grid, "algorithms": [a for a in grid["algorithms"] if a not in declared]}
    for name, flag in FLAGS.items():
        # The mechanism is told always: it is the first thing one must know of the noise.
        if name in grid and (_plain(grid[name]) != _plain(usual.get(name)) or name == "mechanism"):
            parts.append(f"{flag} {_words(grid[name])}")
    reading = manifest.get("reading", {})
    parts += ["--schema SCHEMA.toml"] * ("schema" in reading)
    for name in ("target", "user"):
        if name in reading:
            parts.append(f"--{name} {shlex.quote(reading[name])}")
    if often := grid.get("participation"):
        parts.append(f"--batches-per-user {often['batches']}")
        parts.append(f"--records-per-batch {often['records']}")
    return " ".join([*parts, "--data DATA --out DIR"])


def _plain(value: Any) -> Any:
    """The value as JSON returns it."""
    return list(value) if isinstance(value, tuple) else value


def _words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(_words(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
