"""Replies to requests, and the error that names the field of a request.

Errors state the rule, never the private value: errors are logged.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import InvalidInput


class InvalidField(InvalidInput):
    """Invalid input, with the field that breaks the rule."""

    def __init__(self, message: str, field: str | None) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class DecisionReply:
    """Reply to decide: the id to report the loss with, and the document that decided.

    The action is a name where the plan has names, else a number.
    """

    decision: str
    action: int | str
    release: int
    stored: bool


@dataclass(frozen=True)
class RankedReply(DecisionReply):
    """Reply with all offered actions in a sampled order, the chosen one first."""

    ranking: list[int | str]


@dataclass(frozen=True)
class TicketReply:
    """Slot for a device that decides by itself and sends context, action and loss together.

    ``action`` is set if the slot is in the control: the device plays it instead of the policy. If
    the ticket is sticky, the device draws with ``u``.
    """

    ticket: str
    release: int
    stored: bool
    action: int | str | None = None
    u: tuple[float, float] | None = None
