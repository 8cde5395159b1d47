"""Losses by group, as commands print them and as they write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.cli.answer import table

if TYPE_CHECKING:
    from discreet.simulate.group_losses import GroupLosses


def group_table(losses: GroupLosses) -> list[str]:
    """A line per group and ε, and an empty one at the end."""
    return [*table(losses.header, losses.cells), ""]


def group_document(losses: GroupLosses) -> list[dict[str, Any]]:
    """One object per group and ε; null where a group has no spread to tell."""
    return [
        {name: None if value != value else value for name, value in line._asdict().items()}
        for line in losses
    ]
