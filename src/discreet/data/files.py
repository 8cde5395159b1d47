"""Labelled sets from .npz and .csv files."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from discreet.data.dataset import Dataset, labelled
from discreet.errors import InvalidInput


def read_npz(path: Path) -> Dataset:
    """Arrays ``X`` (n, d) of numbers and ``y`` (n,) of classes."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("X", "y") if name in file.files}
    except OSError as error:
        _unreadable(path, error)
    except (ValueError, AttributeError, zipfile.BadZipFile, EOFError):
        raise InvalidInput(
            f"file must be an .npz archive of plain arrays; {path} is not. "
            "Write it with np.savez(path, X=contexts, y=labels)."
        ) from None
    if len(arrays) < 2:
        raise InvalidInput(
            f"file must hold the arrays X and y; {path} does not. "
            "Write it with np.savez(path, X=contexts, y=labels)."
        )
    return labelled(path.stem, arrays["X"], arrays["y"])


def read_csv(path: Path) -> Dataset:
    """A header, then one record a line: numbers, and the class in the last column."""
    contexts, labels = [], []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            header = next(lines, [])
            if len(header) < 2:
                raise InvalidInput(
                    f"{path.name} must have a header with at least two columns; it has "
                    f"{len(header)}. Write features first and the class last, with commas."
                )
            for row in lines:
                if row:  # blank lines are no records
                    contexts.append(_numbers(row, header, path.name, lines.line_num))
                    labels.append(row[-1].strip())
    except OSError as error:
        _unreadable(path, error)
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(
            f"file must be UTF-8 text with commas; {path} is not. Save it as CSV (UTF-8)."
        ) from None
    if not contexts:
        raise InvalidInput(
            f"{path.name} must have records under its header; it has none. Add some."
        )
    if "" in labels:
        raise InvalidInput(
            f"{path.name} must have a class on every line; some have none. Add them."
        )
    return labelled(path.stem, np.asarray(contexts), _classes(labels))


def _numbers(row: list[str], header: list[str], name: str, line: int) -> list[float]:
    if len(row) != len(header):
        raise InvalidInput(
            f"{name}, line {line} must have {len(header)} columns, as the header; it has "
            f"{len(row)}. Quote values that contain commas."
        )
    try:
        return [float(value) for value in row[:-1]]
    except ValueError:
        column, value = next(
            (column, value) for column, value in zip(header, row, strict=True) if not _number(value)
        )
        raise InvalidInput(
            f"{name}, line {line}, column {column!r} must be a number; got {value!r}. "
            "Categories are not read from files yet: encode them as 0/1 columns first."
        ) from None


def _number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _classes(labels: list[str]) -> np.ndarray[Any, Any]:
    """Numbers where all labels are numbers, so that 10 sorts after 9."""
    return np.asarray([float(label) for label in labels] if all(map(_number, labels)) else labels)


def _unreadable(path: Path, error: OSError) -> NoReturn:
    reason = error.strerror or "not a file of that kind"
    raise InvalidInput(
        f"file must be readable; {path} is not ({reason}). Check the path."
    ) from None
