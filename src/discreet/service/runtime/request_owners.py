"""Whose a request is, where the unit of privacy is a user: a keyed hash of their id, and a part."""

from __future__ import annotations

from typing import NamedTuple

from discreet.control import people_in_control
from discreet.errors import InvalidInput
from discreet.plan import Plan
from discreet.rows.people_registry import keyed_hash
from discreet.service.secrets.vault import Vault


class Owner(NamedTuple):
    """The keyed hash of a user's id, and whether they are in the control, wherever and whenever
    they come."""

    person: bytes
    control: bool


class RequestOwners:
    """Reads the ids that requests name; keys are those of the vault."""

    def __init__(self, plan: Plan, vault: Vault) -> None:
        self._plan, self._vault = plan, vault
        self._hash = None if plan.participation is None else keyed_hash(vault.people)

    def owner(self, user: str | None) -> Owner | None:
        """Whose a request is; None if the unit of privacy is a decision."""
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
