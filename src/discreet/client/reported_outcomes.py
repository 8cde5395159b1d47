"""Outcomes of many decisions: rows, their results, and the way to a running service."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from discreet.client.http_client import Client
from discreet.design.outcome import Guardrail, Outcome
from discreet.errors import InvalidInput

STORED, AGAIN, CONFLICT = "stored", "stored before", "another value was stored before"
LATE, UNKNOWN, UNSTORED = "the batch is over", "no such decision", "the decision took no slot"
EMPTY = "no value yet"
DONE = (STORED, AGAIN, UNSTORED, EMPTY)
"""Results of rows that need no attention."""
STATUS = {404: UNKNOWN, 409: CONFLICT, 410: LATE}
MOST_ROWS, MOST_BYTES = 1000, 200_000
"""Rows of a request, and bytes of their ids: a service accepts no more."""

Row = tuple[Any, ...]
"""PRIVATE: number of a row in its table, id of a decision, its loss or reward (or None), and
values of guardrails."""


class RowResults(NamedTuple):
    """Number of rows with each result, and the rows that were refused with their reasons."""

    counts: Counter[str]
    refused: list[tuple[int, str]]

    @classmethod
    def of(cls, results: list[tuple[int, str]], stored: int = 0) -> RowResults:
        """Count results of single rows, and rows that were stored without a result of their own."""
        counts = Counter(result for _, result in results)
        counts[STORED] += stored
        return cls(counts, [each for each in results if each[1] not in DONE])


def send_outcomes(
    client: Client,
    outcome: Outcome,
    chunks: Iterable[list[Row]],
    guardrails: Sequence[Guardrail] = (),
) -> Iterator[RowResults]:
    """Send outcomes to a running service; yield the results of each chunk once it is durable."""
    for chunk in chunks:
        refused = {
            each[0]: reason for each in chunk if (reason := _refusal(outcome, guardrails, each[2:]))
        }
        rows = [each for each in chunk if each[0] not in refused]
        results = [*refused.items()]
        longest = max((len(str(each[1])) for each in rows), default=1)
        size = max(1, min(MOST_ROWS, MOST_BYTES // longest))
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            reports = [
                (str(decision), float(value), by_name([each.name for each in guardrails], rails))
                for _, decision, value, *rails in part
            ]
            answers = client.observe_many(**{outcome.plural: reports})
            numbered = zip(part, answers, strict=True)
            results += [(each[0], _result(answer)) for each, answer in numbered]
        yield RowResults.of(results)


def by_name(names: Sequence[str], values: Sequence[float | None]) -> dict[str, float]:
    """Return values of guardrails by name, without those that are not known."""
    given = zip(names, values, strict=True)
    return {name: value for name, value in given if value is not None and value == value}


def _refusal(
    outcome: Outcome, guardrails: Sequence[Guardrail], values: Sequence[Any]
) -> str | None:
    """Return why a row is not sent: one that breaks a rule would stop its whole request."""
    if values[0] is None:
        return EMPTY
    try:
        outcome.loss_of(values[0])
        for each, value in zip(guardrails, values[1:], strict=True):
            each.loss_of(value)
    except InvalidInput as error:
        return str(error)
    return None


def _result(answer: dict[str, Any]) -> str:
    if answer["status"] == 200:
        return STORED if answer["stored"] else UNSTORED
    return STATUS.get(answer["status"]) or str(answer["error"]["message"])


class ProgressFile:
    """Number of durable rows, kept in a file for a later run with the same table."""

    def __init__(self, path: str | Path | None, source: str, rows: int) -> None:
        self._path = None if path is None else Path(path)
        self._table, self.done = {"source": source, "rows": rows}, 0
        if self._path is None or not self._path.exists():
            return
        try:
            found = json.loads(self._path.read_text())
            self.done, same = int(found.pop("done")), found == self._table
        except (ValueError, TypeError, LookupError, AttributeError):
            same = False
        if not same:
            raise InvalidInput(
                f"progress must be a file of the same table, with as many rows; {self._path} is "
                "none. Name another file: rows that were stored are not stored twice."
            )

    def add(self, rows: int) -> None:
        """Count rows that are durable now."""
        self.done += rows
        if self._path is not None:
            temporary = self._path.with_name(f".{self._path.name}.new")
            temporary.write_text(json.dumps(self._table | {"done": self.done}))
            os.replace(temporary, self._path)
