"""Tables of outcomes, read in chunks: Parquet and CSV files, queries of DuckDB and PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from discreet.errors import InvalidInput
from discreet.types import NumpyArray
from discreet.validate import installed

CHUNK = 50_000
"""Rows that are read and stored together."""
FILES = {".parquet": "read_parquet", ".csv": "read_csv"}
DATABASES = (".duckdb", ".db", ".ddb")
POSTGRES = ("postgresql://", "postgres://")
Row = tuple[Any, ...]
"""Number of a row in its table, from 1; id of a decision; its loss or reward; guardrails."""


@dataclass(frozen=True)
class OutcomeTable:
    """A file, or a query of a database, with a column of decision ids, one of values, and one for
    each of some guardrails."""

    source: str
    query: str | None = None
    id: str = "id"
    value: str = "loss"
    guardrails: tuple[str, ...] = ()

    def count(self) -> int:
        """Return the number of rows, after a check of source and columns."""
        with self._cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM ({self._numbered()}) AS numbered")
            return int(cursor.fetchone()[0])

    @property
    def mark(self) -> str:
        """Text that changes with the query, or with the content of the file; without passwords."""
        if self._postgres:
            return str(self.query)
        found = Path(self.source).stat()
        return f"{self.source} {self.query or ''} {found.st_size} {found.st_mtime_ns}"

    def chunks(self, start: int = 0) -> Iterator[list[Row]]:
        """Yield the rows after the first ``start``, in the order of ids.

        The order is the same in every run, so that a run may continue an earlier one. Ids that
        follow each other are stored next to each other, which is fast.
        """
        with self._cursor() as cursor:
            cursor.execute(
                f"SELECT * FROM ({self._numbered()}) AS numbered ORDER BY 2, 1 OFFSET {int(start)}"
            )
            while rows := cursor.fetchmany(CHUNK):
                yield rows

    def _numbered(self) -> str:
        numbers = ", ".join(map(self._number, (self.value, *self.guardrails)))
        return (
            f"SELECT row_number() OVER () AS place, {_name(self.id)}, {numbers} "
            f"FROM ({self._rows()}) AS given"
        )

    def _number(self, column: str) -> str:
        name = _name(column)
        if self._postgres:
            return f"CAST({name} AS double precision)"
        # Text that is no number is refused with its row, not all rows; NaN would be a missing one.
        odd = "nan" if column == self.value else "infinity"
        tried = f"coalesce(try_cast({name} AS double), '{odd}'::double)"
        return f"CASE WHEN {name} IS NULL THEN NULL ELSE {tried} END"

    @property
    def _postgres(self) -> bool:
        return self.source.startswith(POSTGRES)

    def _rows(self) -> str:
        suffix = Path(self.source).suffix.lower()
        if self._postgres or suffix in DATABASES:
            if self.query is None:
                raise InvalidInput(
                    "query must be given for a database; got none. Add --query 'SELECT id, loss "
                    "FROM outcomes'."
                )
            return self.query
        if suffix not in FILES or self.query is not None:
            raise InvalidInput(
                "source must be a .parquet or .csv file without a query, or a DuckDB file or a "
                f"postgresql:// address with one; got {Path(self.source).name!r}. Name the file "
                "with its suffix."
            )
        return f"SELECT * FROM {FILES[suffix]}({_text(self.source)})"

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """Open the source, and turn the errors of its library into one line."""
        extra, name = ("postgres", "psycopg") if self._postgres else ("warehouse", "duckdb")
        installed(extra, "to read this table", name)
        library: Any = import_module(name)
        try:
            if self._postgres:
                with library.connect(self.source) as connection:
                    yield connection.cursor("outcomes")  # with a name: rows stay on the server
                return
            file = self.source if self.query is not None else ":memory:"
            with library.connect(file, read_only=self.query is not None) as connection:
                connection.execute("SET enable_progress_bar = false")  # it would print into JSON
                yield connection
        except library.Error as error:
            # An error of data may quote a row; others name tables and columns.
            reason = "a value is no number" if isinstance(error, library.DataError) else str(error)
            raise InvalidInput(
                f"source must be a table with the columns "
                f"{', '.join(map(repr, (self.id, self.value, *self.guardrails)))}; it "
                f"cannot be read ({reason.strip().splitlines()[0]}). Name the columns with --id "
                "and --value."
            ) from None


def write_private_table(
    path: str | Path, columns: Mapping[str, NumpyArray], note: str, **metadata: str
) -> None:
    """Write columns as a new Parquet file that only its owner may read; NaN becomes null.

    The metadata of the file has ``note`` under the key ``private``.
    """
    installed("warehouse", "to write tables", "duckdb")
    import duckdb

    try:
        # Made before anything is in it, so that it never has another mode.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise InvalidInput(f"file must be new; {path} exists. Choose another name.") from None
    marks = ", ".join(
        f"{name}: {_text(value)}" for name, value in {"private": note, **metadata}.items()
    )
    floats = [
        f"nullif({_name(each)}, 'nan'::double) AS {_name(each)}"
        for each in columns
        if columns[each].dtype.kind == "f"
    ]
    with duckdb.connect() as connection:
        connection.register("rows", dict(columns))
        connection.execute(
            f"COPY (SELECT * REPLACE ({', '.join(floats)}) FROM rows) TO {_text(str(path))} "
            f"(FORMAT parquet, USE_TMP_FILE false, KV_METADATA {{{marks}}})"
        )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
