"""Parts of requests and replies: context, owner, decision, ticket.

Errors state the rule, never the private value: errors are logged.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.batches.users import keyed_hash
from discreet.design.control import people_in_control
from discreet.errors import InvalidInput
from discreet.plan.plan import Plan
from discreet.service.secrets.vault import Vault


class InvalidField(InvalidInput):
    """Invalid input, with the field that breaks the rule."""

    def __init__(self, message: str, field: str | None) -> None:
        super().__init__(message)
        self.field = field


def features_of(plan: Plan, context: Any) -> np.ndarray[Any, Any]:
    """Return the features of one context (p,)."""
    if not plan.features.is_single(context):
        raise InvalidField(
            "context must be one context; this is a list. Send one context.", "context"
        )
    try:
        features: np.ndarray[Any, Any] = plan.features.map(context)[0]
    except InvalidInput as error:
        rule, given, _ = str(error).partition("; got ")
        broken = f"{rule}; this context breaks the rule. GET /v1/schema lists the rules."
        raise InvalidField(broken if given else str(error), _field(plan, rule)) from None
    return features


def features_of_many(plan: Plan, contexts: list[Any]) -> list[np.ndarray[Any, Any] | Exception]:
    """Return the features of each context, or its error; others are not affected."""
    if len(contexts) > 1:
        with suppress(InvalidInput):
            rows = plan.features.map(contexts)
            if len(rows) == len(contexts):  # otherwise map() read the list as one context
                return list(rows)
    return [_features_or_error(plan, context) for context in contexts]


def _features_or_error(plan: Plan, context: Any) -> np.ndarray[Any, Any] | Exception:
    try:
        return features_of(plan, context)
    except Exception as error:
        return error


def _field(plan: Plan, rule: str) -> str:
    """Return the field of a context that an error is about."""
    names = [field.name for field in getattr(plan.contexts, "fields", ())]
    blamed = [name for name in names if rule.startswith(f"feature {name!r} ")]
    return ".".join(["context", *blamed])


class Owner(NamedTuple):
    """Keyed hash of a user's id, and whether they are in the control, which never changes."""

    person: bytes
    control: bool


class RequestOwners:
    """Owners of requests, by the user ids that requests name and the keys of the vault."""

    def __init__(self, plan: Plan, vault: Vault) -> None:
        self._plan, self._vault = plan, vault
        self._hash = None if plan.participation is None else keyed_hash(vault.people)

    def owner(self, user: str | None) -> Owner | None:
        """Return the owner of a request; None if the unit of privacy is a decision."""
        if self._hash is None and user is not None:
            raise InvalidInput(
                "user must be left out with the unit of privacy 'decision'; got one. "
                "Send the request without it: no ids are kept."
            )
        if self._hash is not None and user is None:
            raise InvalidInput(
                "user must be given with the unit of privacy 'user'; got none. "
                "Add the id of the person, always the same text for the same person."
            )
        if self._hash is None or user is None:
            return None
        control = self._plan.control
        part = (
            control is not None and people_in_control(control.share, self._vault.control, [user])[0]
        )
        return Owner(self._hash(user), bool(part))


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
