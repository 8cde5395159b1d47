"""Flags for sets in which people have several rows: whose rows, and how many of them count."""

from __future__ import annotations

import argparse

from discreet.errors import InvalidInput
from discreet.privacy.participation import USUAL, Participation


def user_flag(parser: argparse.ArgumentParser) -> None:
    """Which column of a file says whose row it is."""
    words = "ids of people in a file, by a column's name: ε is then for all that one of them gives"
    parser.add_argument("--user", metavar="COLUMN", help=words)


def often_flags(parser: argparse.ArgumentParser) -> None:
    """How often a person contributes, where no plan says so."""
    flag = parser.add_argument
    batches = f"with --user: batches in which one person counts (default: {USUAL.batches})"
    flag("--batches-per-user", type=int, metavar="M", help=batches)
    records = f"with --user: records of theirs in each of these (default: {USUAL.records})"
    flag("--records-per-batch", type=int, metavar="K", help=records)


def participation(
    user: str | None, batches: int | None, records: int | None
) -> Participation | None:
    """The bound that was asked for, or the usual one; None without a column of ids."""
    if user is not None:
        return Participation(
            USUAL.batches if batches is None else batches,
            USUAL.records if records is None else records,
        )
    if batches is not None or records is not None:
        raise InvalidInput(
            "user must name the column of ids where batches_per_user or records_per_batch is "
            "given; got none. Add --user COLUMN, or leave both out."
        )
    return None
