"""Documents with one byte sequence each: canonical JSON, arrays as integers, whole files."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from pathlib import Path

import numpy as np

from discreet.arrays.backend import to_numpy
from discreet.errors import CorruptRelease
from discreet.types import Array, JsonMapping, JsonObject, NumpyArray
from discreet.validate import usable


def encode_array(array: Array) -> JsonObject:
    """Integers and a power of two: exact in every language, canonical as text.

    53 bits hold the largest value exactly, so encoding what was decoded gives the same bytes.
    """
    values = to_numpy(array).astype(np.float64)
    top = float(np.max(np.abs(values), initial=0.0))
    exponent = (math.frexp(top)[1] if top > 0 else 1) - 53
    integers = np.rint(np.ldexp(values, -exponent)).astype(np.int64)
    return {
        "shape": list(values.shape),
        "exponent": exponent,
        "integers": [int(value) for value in integers.reshape(-1)],
    }


def decode_array(document: JsonMapping) -> NumpyArray:
    """The float64 array of ``encode_array``."""
    integers, exponent = document["integers"], document["exponent"]
    if any(type(value) is not int or abs(value) >= 2**53 for value in integers):
        raise CorruptRelease("integers must be whole and below 2**53; some are not. Fetch again.")
    if type(exponent) is not int or not -1126 <= exponent <= 971:  # the range of float64
        raise CorruptRelease(f"exponent must be in [-1126, 971]; got {exponent!r}. Fetch again.")
    values = np.asarray(integers, dtype=np.float64).reshape(document["shape"])
    return np.ldexp(values, exponent)


def canonical(document: object) -> bytes:
    """One byte sequence per document: sorted keys, no spaces, ASCII, integers and text only."""
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


def digest_of(document: object) -> str:
    """SHA-256 of the canonical bytes."""
    return hashlib.sha256(canonical(document)).hexdigest()


def read_document(path: str | Path) -> JsonObject:
    """A JSON object from a file, or a CorruptRelease that says what is wrong with it."""
    with usable(path):
        content = Path(path).read_bytes()
    try:
        document = json.loads(content)
    except ValueError:
        raise CorruptRelease(
            f"file must be JSON; {path} is not. It was cut short or altered: fetch it again."
        ) from None
    if not isinstance(document, dict):
        raise CorruptRelease(f"file must hold a JSON object; {path} does not. Fetch it again.")
    return document


def write_atomically(path: Path, content: bytes, mode: int, *, new: bool = False) -> None:
    """The file appears whole, with its mode, or not at all; a ``new`` one replaces no other."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        if new:
            _put_new(temporary, path)
        else:
            os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _put_new(temporary: str, path: Path) -> None:
    """Give a file its name; FileExistsError where another has it, also if that came just now."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: a race of two writers is possible there
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.replace(temporary, path)
    else:
        os.unlink(temporary)
