"""Result files of a campaign: one row per run, as Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.lab.campaign.grid import Grid, Key, keys, schedule
from discreet.lab.campaign.results_folder import Folder
from discreet.lab.campaign.tasks import Part

SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("algorithm", pa.string()),
        ("oracle", pa.string()),
        ("mechanism", pa.string()),
        ("epsilon", pa.float64()),
        ("delta", pa.float64()),
        ("seed", pa.int32()),
        ("settings", pa.string()),
        ("rounds", pa.int32()),
        ("first_batch", pa.int32()),
        ("growth", pa.float64()),
        ("loss", pa.float32()),
        ("curve", pa.list_(pa.float32())),
    ]
)
"""``loss`` is the last value of ``curve``: progressive-validation loss at every batch end, which
``rounds``, ``first_batch`` and ``growth`` give."""
STRINGS = [each.name for each in SCHEMA if each.type == pa.string()]
ORDER = [(name, "ascending") for name in ("algorithm", "epsilon", "settings", "seed")]


def read(results_dir: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return all runs of a campaign: the rows of every task file with a valid checksum.

    Strings are dictionary-encoded, one dictionary per column. ``columns`` without ``curve``
    leaves most bytes unread.
    """
    folder = Folder(Path(results_dir))
    folder.manifest()  # raises InvalidInput if this is no campaign
    names = list(SCHEMA.names if columns is None else columns)
    contents = (folder.content(task) for task in folder.tasks())
    tables = [from_bytes(content, names) for content in contents if content is not None]
    if not tables:
        return pa.table({name: pa.array([], SCHEMA.field(name).type) for name in names})
    return pa.concat_tables(tables).unify_dictionaries()


def from_bytes(content: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the table of one file, with strings dictionary-encoded."""
    wanted = None if columns is None else list(columns)
    return pq.read_table(pa.BufferReader(content), columns=wanted, read_dictionary=STRINGS)


def to_bytes(tables: Iterable[pa.Table]) -> bytes:
    """Return one file of all rows in a fixed order, independent of the order of computation."""
    rows = pa.concat_tables([table.cast(SCHEMA) for table in tables]).sort_by(ORDER)
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, compression="zstd")
    return buffer.getvalue()


def tabulate(
    dataset: str,
    family: str,
    grid: Grid,
    parts: Sequence[Part],
    losses: Sequence[np.ndarray[Any, Any]],
    rounds: int,
) -> pa.Table:
    """Return rows of new runs: for each part, losses (plans, seeds, batches)."""
    named = keys(grid, family)
    tables = [
        _tabulate([named[i] for i in indices], seeds, curves)
        for (indices, seeds), curves in zip(parts, losses, strict=True)
    ]
    table = pa.concat_tables(tables)
    oracle, batches = family.partition(".")[0], schedule(grid, family)
    constant = {
        "dataset": dataset,
        "oracle": oracle,
        "mechanism": "structured" if oracle == "PooledRidge" else grid.mechanism,
        "rounds": rounds,
        "first_batch": batches.first,
        "growth": batches.growth,
    }
    for name, value in constant.items():
        kind = SCHEMA.field(name).type
        table = table.append_column(name, pa.repeat(pa.scalar(value, kind), len(table)))
    return table.select(SCHEMA.names)


def _tabulate(named: list[Key], seeds: Sequence[int], curves: np.ndarray[Any, Any]) -> pa.Table:
    batches = curves.shape[-1]
    flat = np.ascontiguousarray(curves, dtype=np.float32).reshape(-1, batches)
    offsets = np.arange(0, flat.size + 1, batches, dtype=np.int32)
    algorithm, epsilon, delta, settings = (np.repeat(part, len(seeds)) for part in zip(*named))  # noqa: B905
    return pa.table(
        {
            "algorithm": pa.array(algorithm, pa.string()),
            "epsilon": pa.array(epsilon, pa.float64()),
            "delta": pa.array(delta, pa.float64()),
            "seed": pa.array(np.tile(np.asarray(seeds, dtype=np.int32), len(named))),
            "settings": pa.array(settings, pa.string()),
            "loss": pa.array(flat[:, -1]),
            "curve": pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat.reshape(-1))),
        }
    )


def present(table: pa.Table | None, grid: Grid, family: str) -> np.ndarray[Any, Any]:
    """Return a mask (plans, seeds) of the runs of a grid that a table has."""
    named = keys(grid, family)
    found = np.zeros((len(named), grid.seeds), dtype=bool)
    if table is None or len(table) == 0:
        return found
    coded = [_coded(table.column(name)) for name in ("algorithm", "epsilon", "delta", "settings")]
    shape = tuple(len(values) for values, _ in coded)
    together = np.ravel_multi_index(tuple(codes for _, codes in coded), shape)
    kinds, which = np.unique(together, return_inverse=True)
    places = {key: index for index, key in enumerate(named)}
    split = zip(*np.unravel_index(kinds, shape), strict=True)
    names = [tuple(v[i] for (v, _), i in zip(coded, each, strict=True)) for each in split]
    rows = np.asarray([places.get(name, -1) for name in names])[which]
    seeds = table.column("seed").to_numpy()
    wanted = (rows >= 0) & (seeds < grid.seeds)
    found[rows[wanted], seeds[wanted]] = True
    return found


def _coded(column: Any) -> tuple[list[Any], np.ndarray[Any, Any]]:
    array = column.combine_chunks()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    return array.dictionary.to_pylist(), array.indices.to_numpy()
