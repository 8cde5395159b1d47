"""Labelled data: sets we generate, bundled sets, files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from discreet.data.bundled import BUNDLED, bundled
from discreet.data.dataset import Dataset
from discreet.data.files import read_csv, read_npz
from discreet.data.generators import fried, linear, logistic
from discreet.errors import InvalidInput
from discreet.validate import nearest

GENERATORS: Mapping[str, Callable[..., Dataset]] = {
    "fried": fried,
    "linear": linear,
    "logistic": logistic,
}
READERS: Mapping[str, Callable[[Path], Dataset]] = {".csv": read_csv, ".npz": read_npz}
NAMES = (*GENERATORS, *BUNDLED)


def load(name_or_path: str | Path, *, rows: int | None = None) -> Dataset:
    """A set by name, or from a .npz or .csv file. ``rows`` is for generated sets only.

    >>> load("linear", rows=300)
    Dataset(name='linear', n_actions=3)
    """
    name, suffix = str(name_or_path), Path(name_or_path).suffix.lower()
    if name in GENERATORS:
        return GENERATORS[name]() if rows is None else GENERATORS[name](rows)
    if name not in BUNDLED and suffix not in READERS:
        listed = ", ".join(NAMES)
        raise InvalidInput(
            f"data must be one of {listed}, or a .npz or .csv file; got {name!r}. "
            f"{nearest(name, NAMES)}"
        )
    if rows is not None:
        raise InvalidInput(
            f"rows must be left out for {name!r}: its size is fixed; got {rows}. "
            f"Only generated sets ({', '.join(GENERATORS)}) come in any size."
        )
    return bundled(name) if name in BUNDLED else READERS[suffix](Path(name))


__all__ = ["NAMES", "Dataset", "fried", "linear", "load", "logistic"]
