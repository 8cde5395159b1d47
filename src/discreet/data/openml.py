"""Sets of OpenML by their number, ``openml:901``, fetched once and stored with a checksum.

The default target is the class; columns that OpenML marks as identifiers are left out. [Vanschoren
et al. 2014; www.openml.org]
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import os
import secrets
import warnings
from collections.abc import Mapping, Sequence
from functools import cache as once
from importlib.resources import files
from pathlib import Path

import numpy as np

from discreet.data.dataset import Dataset, labelled
from discreet.data.table import Categories, Column, check_size, table
from discreet.errors import InvalidInput
from discreet.types import Array, NumpyArray
from discreet.validate import installed


def cache_folder() -> Path:
    """The folder of fetched sets."""
    if own := os.environ.get("DISCREET_CACHE"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "discreet"


def store_arrays(path: Path, arrays: Mapping[str, object]) -> None:
    """Write an archive and its checksum; equal arrays make equal bytes."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    content = packed.getvalue()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The checksum comes last: an archive without one is not there yet.
        _replace(path, content)
        _replace(_checksum(path), f"{_sha256(content)}  {path.name}\n".encode())
    except OSError as error:
        raise InvalidInput(
            f"cache folder must be writable; {cache_folder()} is not ({error.strerror}). "
            "Make room in it, or set DISCREET_CACHE to another folder."
        ) from None


def stored_arrays(path: Path) -> dict[str, NumpyArray] | None:
    """The arrays of an archive whose checksum holds; None if it is damaged or not there."""
    try:
        content, noted = path.read_bytes(), _checksum(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    if noted.split()[:1] != [_sha256(content)]:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def is_damaged(path: Path) -> bool:
    """Return whether an archive and its checksum differ."""
    return path.exists() and _checksum(path).exists() and stored_arrays(path) is None


def _replace(path: Path, content: bytes) -> None:
    """Write the whole content or none of it, also when two processes write at once."""
    written = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        written.write_bytes(content)
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)


def _checksum(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


PREFIX = "openml:"
FORMAT = "discreet-openml/1"
"""The encoding of stored sets; a new rule needs a new number here."""

COLLECTIONS = {"paper": "paper_collection.json"}
"""Named collections of sets: the paper's 100."""


def openml(number: int) -> Dataset:
    """The set with that number, from the cache or else from OpenML."""
    path = cached_path(number)
    kept = stored_arrays(path)
    if kept is not None and kept.get("format", np.asarray("")).item() == FORMAT:
        return Dataset(
            f"{PREFIX}{number}",
            kept["contexts"],
            kept["labels"],
            len(kept["classes"]),
            classes=tuple(kept["classes"].tolist()),
        )
    damaged = is_damaged(path)
    try:
        data = fetch(number)
    except InvalidInput as error:
        if not damaged:
            raise
        raise InvalidInput(
            f"{path.name} in the cache must match its checksum; the two differ, and the set could "
            f"not be fetched again: {error}"
        ) from error.__cause__
    arrays = {"contexts": data.contexts, "labels": data.labels, "classes": data.classes}
    store_arrays(path, {"format": FORMAT, **arrays})
    return data


def fetch(number: int) -> Dataset:
    """Download a set with scikit-learn's client; nothing is kept."""
    name = f"{PREFIX}{number}"
    installed("campaign", f"to fetch {name}", "sklearn", instead=", or use a file")
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            # The client tries again by itself; its result is reported once, below.
            warnings.filterwarnings("ignore", "A network error occurred", UserWarning)
            # This parser needs no pandas, and names the columns of categories.
            found = fetch_openml(data_id=number, as_frame=False, parser="liac-arff", cache=False)
    except (OSError, http.client.HTTPException) as error:
        raise InvalidInput(
            f"OpenML must be reachable to fetch {name}; the network failed ({_reason(error)}). "
            f"Run discreet data fetch {name} where there is a network, and copy its cache folder "
            f"to {cache_folder()}."
        ) from error
    except (ValueError, IndexError, KeyError) as error:
        raise InvalidInput(
            f"{name} must be a set that scikit-learn can read as arrays; scikit-learn says: "
            f"{str(error).rstrip('.')}. Look at www.openml.org/d/{number}; if there is such a set, "
            "make a file of its numbers and categories."
        ) from None
    if found.target is None or np.ndim(found.target) != 1:
        raise InvalidInput(
            f"{name} must have one target; OpenML declares none or several. Use a file instead."
        )
    target = np.asarray(found.target)
    labels = target.astype(str) if target.dtype.kind == "O" else target
    columns = _columns(name, found.data, found.feature_names, found.categories or {})
    return labelled(name, table(name, columns), labels)


def is_unreachable(error: InvalidInput) -> bool:
    """Return whether a set could not be fetched because there is no network."""
    return isinstance(error.__cause__, (OSError, http.client.HTTPException))


def cached_path(number: int) -> Path:
    """The path of a fetched set."""
    return cache_folder() / "openml" / f"{number}.npz"


def cached_numbers() -> list[int]:
    """Numbers of the sets that were fetched."""
    found = cached_path(0).parent.glob("*.npz")
    return sorted(int(path.stem) for path in found if path.stem.isdecimal())


def _columns(
    name: str, data: Array, titles: Sequence[str], categories: dict[str, list[str]]
) -> list[Column]:
    """Numbers and categories; the client returns one table of float64."""
    if hasattr(data, "toarray"):  # OpenML stores some sets without their zeros
        check_size(name, *data.shape)
        data = data.toarray()
    columns: list[Column] = []
    for title, values in zip(titles, np.asarray(data, dtype=np.float64).T, strict=True):
        if title in categories:
            codes = np.where(np.isnan(values), -1, values).astype(np.int64)
            columns.append(Categories(categories[title], codes))
        else:
            columns.append(values)
    return columns


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", "") or error or type(error).__name__).rstrip(".")


@once
def collection(name: str) -> tuple[int, ...]:
    """OpenML's numbers of a collection's sets, in ascending order.

    >>> len(collection("paper")), collection("paper")[:3]
    (100, (23, 44, 60))
    """
    text = files(__package__).joinpath(COLLECTIONS[name]).read_text(encoding="utf-8")
    return tuple(sorted(json.loads(text)["openml_ids"]))
