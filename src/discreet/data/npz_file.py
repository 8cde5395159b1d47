"""Labelled sets from .npz files."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from discreet.data.dataset import Dataset, labelled
from discreet.data.reading import unreadable
from discreet.data.table import table
from discreet.errors import InvalidInput


def read_npz(path: Path, target: str | None = None, _encoded: bool = True) -> Dataset:
    """Arrays ``X`` (n, d) of numbers, NaN where one is missing, and ``y`` (n,) of classes."""
    if target is not None:
        raise InvalidInput(
            f"target must be left out for {path.name}, whose array y is the class; got {target!r}. "
            "Write another y, or use a .csv file."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("X", "y") if name in file.files}
    except OSError as error:
        unreadable(path, error)
    except (ValueError, AttributeError, zipfile.BadZipFile, zlib.error, EOFError):
        raise InvalidInput(
            f"file must be an .npz archive of plain arrays; {path} is not. "
            "Write it with np.savez(path, X=contexts, y=labels)."
        ) from None
    if len(arrays) < 2:
        raise InvalidInput(
            f"file must hold the arrays X and y; {path} does not. "
            "Write it with np.savez(path, X=contexts, y=labels)."
        )
    contexts = arrays["X"]
    if contexts.ndim == 2 and contexts.dtype.kind == "f" and np.isnan(contexts).any():
        contexts = table(path.stem, list(contexts.T.astype(np.float64)))
    return labelled(path.stem, contexts, arrays["y"])
