"""What callers hear of a decision and of a ticket."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DecisionReply:
    """The answer to decide: the id to report the loss with, and the document that decided.

    The action is a name where the plan has names, else a number.
    """

    decision: str
    action: int | str
    release: int
    stored: bool


@dataclass(frozen=True)
class RankedReply(DecisionReply):
    """With all that was offered in a sampled order, the action first."""

    ranking: list[int | str]


@dataclass(frozen=True)
class TicketReply:
    """A slot for a device that decides by itself and sends context, action and loss together.

    Where it is of the control, ``action`` is what the device plays instead of the policy. Where it
    is sticky, ``u`` is what the device draws with.
    """

    ticket: str
    release: int
    stored: bool
    action: int | str | None = None
    u: tuple[float, float] | None = None
