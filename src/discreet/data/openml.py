"""Sets of OpenML by their number, ``openml:901``, fetched once and stored with their digest.

The default target is the class; columns that OpenML marks as identifiers are left out. [Vanschoren
et al. 2014; www.openml.org]
"""

from __future__ import annotations

import http.client
import io
import json
import os
import secrets
import warnings
import zipfile
import zlib
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from discreet.data.dataset import Dataset, check_size, labelled, table
from discreet.errors import InvalidInput
from discreet.types import NumpyArray
from discreet.validate import installed, usable

PREFIX = "openml:"
FORMAT = "discreet-openml/2"
"""The encoding of stored sets; a new rule needs a new number here."""
COLLECTIONS = {"paper": "paper_collection.json"}
"""Named collections of sets: the paper's 100."""


def cache_folder() -> Path:
    """Return the folder of fetched sets."""
    if own := os.environ.get("DISCREET_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "discreet"


def cached_path(number: int) -> Path:
    """Return the path of a fetched set."""
    return cache_folder() / "openml" / f"{number}.npz"


def cached_numbers() -> list[int]:
    """Return the numbers of the sets that were fetched."""
    found = cached_path(0).parent.glob("*.npz")
    return sorted(int(path.stem) for path in found if path.stem.isdecimal())


def load_set(number: int) -> Dataset:
    """Return the set with that number, from the cache or else from OpenML."""
    data = _cached(number)
    if data is None:
        data = fetch(number)
        _store(data, cached_path(number))
    return data


def _cached(number: int) -> Dataset | None:
    """Return the set as it is stored; None if it is not there, or damaged."""
    try:
        with np.load(cached_path(number), allow_pickle=False) as file:
            format, digest, contexts, labels, classes = (file[name] for name in file.files)
    except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    words = tuple(classes.tolist())
    data = Dataset(f"{PREFIX}{number}", contexts, labels, len(words), classes=words)
    return data if (format.item(), digest.item()) == (FORMAT, _checksum(data)) else None


def _checksum(data: Dataset) -> str:
    return f"{data.digest} {json.dumps(data.classes)}"


def _store(data: Dataset, path: Path) -> None:
    """Write the whole set or none of it, also when two processes write at once."""
    packed = io.BytesIO()
    arrays = {"contexts": data.contexts, "labels": data.labels, "classes": data.classes}
    np.savez_compressed(packed, format=FORMAT, digest=_checksum(data), **arrays)  # type: ignore[arg-type]
    written = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    step = "Make room in it, or set DISCREET_CACHE to another folder."
    with usable(cache_folder(), "cache folder must be writable", step):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            written.write_bytes(packed.getvalue())
            written.replace(path)
        finally:
            with suppress(OSError):
                written.unlink()


def fetch(number: int) -> Dataset:
    """Download a set with scikit-learn's client; it is not stored."""
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
        reason = str(getattr(error, "reason", "") or error or type(error).__name__).rstrip(".")
        raise InvalidInput(
            f"OpenML must be reachable to fetch {name}; the network failed ({reason}). "
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
    target, data = np.asarray(found.target), found.data
    labels = target.astype(str) if target.dtype.kind == "O" else target
    if hasattr(data, "toarray"):  # OpenML stores some sets without their zeros
        check_size(name, *data.shape)
        data = data.toarray()
    columns: list[NumpyArray] = []
    rows = np.asarray(data, dtype=np.float64)
    for title, codes in zip(found.feature_names, rows.T, strict=True):
        words = (found.categories or {}).get(title)
        if words is not None:
            given = [None if code != code else words[int(code)] for code in codes]
            codes = np.array(given, dtype=object)
        columns.append(codes)
    return labelled(name, table(name, columns), labels)


def is_unreachable(error: InvalidInput) -> bool:
    """Return whether a set could not be fetched because there is no network."""
    return isinstance(error.__cause__, (OSError, http.client.HTTPException))


@cache
def collection(name: str) -> tuple[int, ...]:
    """Return OpenML's numbers of a collection's sets, in ascending order.

    >>> len(collection("paper")), collection("paper")[:3]
    (100, (23, 44, 60))
    """
    text = files(__package__).joinpath(COLLECTIONS[name]).read_text(encoding="utf-8")
    return tuple(sorted(json.loads(text)["openml_ids"]))
