"""The columns of a log of decisions: .csv and .parquet by name, or a log of Vowpal Wabbit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.files import sample_columns
from discreet.data.vw_logs import read_vw
from discreet.errors import InvalidInput

VW = (".vw", ".txt", ".dat")
"""How logs of Vowpal Wabbit end. Their columns are called action, cost and probability."""


def log_columns(path: str) -> dict[str, np.ndarray[Any, Any]]:
    """All columns by name; of a log of Vowpal Wabbit every feature is one."""
    suffix = Path(path).suffix.lower()
    if suffix not in VW:
        if suffix not in (".csv", ".parquet"):
            raise InvalidInput(
                f"log must be a .csv, .parquet or {' or '.join(VW)} file; got {path!r}. "
                "Save it as CSV (UTF-8), or as text that Vowpal Wabbit reads."
            )
        return sample_columns(path)
    read = read_vw(path)
    columns = dict(zip(read.columns, read.contexts.T, strict=True))
    # A place says nothing where rows were offered different actions: then ids are read.
    actions = read.actions if read.same_offers else np.asarray(read.played, dtype=object)
    told = {"action": actions, "cost": read.costs, "probability": read.propensities}
    for name in told:
        if name in columns:
            raise InvalidInput(
                f"features must not be called action, cost or probability; got {name!r}. Rename it."
            )
    return columns | told
