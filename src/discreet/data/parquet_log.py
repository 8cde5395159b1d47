"""Private log that lies in Parquet files: its rows by position, read some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from discreet.data.files import readable
from discreet.errors import InvalidInput
from discreet.types import Frame
from discreet.validate import installed

TASK = 2**20
"""Rows that one task sums up at least, where a file has as many: row groups are not divided."""
CHUNK = 2**16
"""Rows of a task that are in memory at once."""


Arrow = Frame
"""A file system, a table or a schema of pyarrow, which has no types."""


class LogPart(NamedTuple):
    """Public facts: the rows of one file that a task reads, as row groups and places in them."""

    system: Arrow
    file: str
    groups: tuple[int, ...]
    start: int
    """Place of the first row in the file."""
    skip: int
    """Rows of the first group before it."""
    rows: int
    expected: int
    """Rows of the file when the log was opened."""

    def tables(self, columns: Sequence[str]) -> Iterator[Arrow]:
        """Yield these columns of the rows, as frames of at most 65,536 rows."""
        import pyarrow
        from pyarrow.parquet import ParquetFile

        with self.system.open_input_file(self.file) as opened, ParquetFile(opened) as file:
            if file.metadata.num_rows != self.expected:
                raise InvalidInput("file must stay as it was when the log was opened; it changed.")
            left, skip = self.rows, self.skip
            read = file.iter_batches(
                CHUNK, row_groups=list(self.groups), columns=list(columns), use_threads=False
            )
            for batch in read:
                if some := batch.slice(skip, left):
                    yield pyarrow.Table.from_batches([some])
                skip, left = max(0, skip - len(batch)), left - len(some)
                if not left:
                    return


@dataclass(frozen=True)
class ParquetLog:
    """Rows of all ``files``, one file after the other, and the rows of their row groups."""

    system: Arrow
    files: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    types: Arrow
    """The pyarrow schema of every file, without the columns to ignore."""

    @classmethod
    def of(cls, path: str | Path, ignore: Sequence[str] = ()) -> ParquetLog:
        """Open a file, or a folder with all ``.parquet`` files in it, in the order of their names.

        An address such as ``s3://…`` or ``hdfs://…`` is opened as pyarrow opens it. ``ignore`` are
        columns that are no features.
        """
        installed("dask", "to read Parquet files", "pyarrow", "narwhals")
        import pyarrow
        from pyarrow.fs import FileSystem
        from pyarrow.parquet import ParquetFile

        place = str(path) if "://" in str(path) else str(Path(path).absolute())
        groups, schemas = [], []
        with readable(path, "Parquet files", "Convert it.", pyarrow.ArrowInvalid, what="log"):
            system, root = FileSystem.from_uri(place)
            files = _files(system, root)
            for each in files:
                with system.open_input_file(each) as opened, ParquetFile(opened) as file:
                    facts = file.metadata
                    groups.append(
                        tuple(facts.row_group(n).num_rows for n in range(facts.num_row_groups))
                    )
                    schemas.append(file.schema_arrow.remove_metadata())
        if not sum(map(sum, groups)):
            raise InvalidInput(
                f"log must be a .parquet file with rows, or a folder of them; {path} has none. "
                "Name the folder that the files lie in."
            )
        other = next((n for n, each in enumerate(schemas) if each != schemas[0]), None)
        if other is not None:
            raise InvalidInput(
                "log must have the same columns, of the same types, in every file; those of "
                f"{Path(files[other]).name} differ from {Path(files[0]).name}. Use one schema."
            )
        types = pyarrow.schema([each for each in schemas[0] if each.name not in ignore])
        return cls(system, tuple(files), tuple(groups), types)

    @property
    def rows(self) -> int:
        """The number of rows of all files."""
        return sum(map(sum, self.groups))

    def parts(self, start: int, stop: int) -> list[LogPart]:
        """Return the rows from ``start`` to ``stop`` as tasks: whole row groups of one file each,
        but for both ends."""
        made, before = [], 0
        for file, groups in zip(self.files, self.groups, strict=True):
            ends = [*accumulate(groups, initial=before)]
            inside = [n for n in range(len(groups)) if max(start, ends[n]) < min(stop, ends[n + 1])]
            for some in _together(inside, groups):
                begin, end = max(start, ends[some[0]]), min(stop, ends[some[-1] + 1])
                place = begin - before, begin - ends[some[0]], end - begin
                made.append(LogPart(self.system, file, some, *place, sum(groups)))
            before = ends[-1]
        return made


def _together(inside: Sequence[int], groups: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Join neighbouring row groups until they have as many rows as a task should."""
    some: list[int] = []
    for number in inside:
        some.append(number)
        if sum(groups[each] for each in some) >= TASK or number == inside[-1]:
            yield tuple(some)
            some = []


def _files(system: Arrow, root: str) -> list[str]:
    """Return the file itself, or those in the folder; hidden files are left out."""
    from pyarrow.fs import FileSelector, FileType

    if system.get_file_info(root).type is not FileType.Directory:
        return [root]
    found = system.get_file_info(FileSelector(root, recursive=True))
    return sorted(
        each.path
        for each in found
        if each.path.endswith(".parquet")
        and not any(part.startswith(("_", ".")) for part in Path(each.path[len(root) :]).parts)
    )
