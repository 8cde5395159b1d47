"""Actions that are available after all changes, and the documents of changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from discreet.design.action_names import ActionName, Actions
from discreet.design.control import Control
from discreet.errors import InvalidInput
from discreet.features.joint import Joint
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.oracles import FiniteClass
from discreet.plan.plan import Plan
from discreet.releases.catalogue import ActionChange, Catalogue, checked_ids
from discreet.releases.policy_view import PolicyView
from discreet.types import Floats
from discreet.validate import nearest


class DeclaredActions(Actions, Protocol):
    """The actions that a plan, or the public part of one, declares, and their features."""

    @property
    def features(self) -> UnitBall | Schema | Joint: ...
    @property
    def catalogue(self) -> Catalogue | None: ...
    @property
    def control(self) -> Control | None: ...


class AvailableActions(NamedTuple):
    """Actions that may be offered: names of all, and the places of those that are in use.

    ``rows`` are the features of items, None where actions have blocks. ``unchanged`` holds where
    these are the actions of a plan without a catalogue, before any change.
    """

    names: Sequence[ActionName]
    places: Mapping[ActionName, int]
    rows: Floats | None = None
    joint: Joint | None = None
    unchanged: bool = False

    def __repr__(self) -> str:
        return f"AvailableActions({len(self.names)} actions)"  # without items of requests

    def with_items(self, names: list[str], rows: list[Floats]) -> AvailableActions:
        """Return these and the items that requests contain."""
        if not names or self.rows is None:
            return self
        both = np.concatenate([self.rows, np.stack(rows)])
        return self._replace(names=[*self.names, *names], rows=both)


def available_actions(
    plan: DeclaredActions, changes: Sequence[ActionChange], blocks: int | None = None
) -> AvailableActions:
    """Return the actions that a request may be offered after these changes.

    ``blocks`` is the number of actions that have weights in its batch; by default all have. Added
    actions join with a batch that has weights for them, removed ones leave at once.
    """
    if isinstance(plan.features, Joint):
        items = catalogue_after(plan, changes)
        places: dict[ActionName, int] = dict(items.places.items())
        return AvailableActions(items.ids, places, items.rows, plan.features)
    added = [name for change in changes for name in change.added]
    names: list[ActionName] = [*dict.fromkeys([*(plan.actions or range(plan.n_actions)), *added])]
    gone: set[ActionName] = set()
    for change in changes:
        gone = (gone - set(change.added)) | set(change.removed)
    used = {name: place for place, name in enumerate(names[:blocks]) if name not in gone}
    return AvailableActions(names, used, unchanged=not changes)


def catalogue_after(plan: DeclaredActions, changes: Sequence[ActionChange]) -> Catalogue:
    """Return the catalogue of the plan after these changes."""
    catalogue = plan.catalogue
    assert catalogue is not None
    if not changes:
        return catalogue
    items = dict(zip(catalogue.ids, catalogue.rows, strict=True))
    for change in changes:
        for item in change.removed:
            items.pop(item, None)
        items |= dict(zip(change.added, () if change.rows is None else change.rows, strict=False))
    return Catalogue(catalogue.schema, ids=[*items], rows=[*items.values()])


def changed_actions(
    plan: Plan, released: PolicyView, add: object, remove: Iterable[str], batch: int
) -> ActionChange:
    """Return the document of a change, checked.

    ``batch`` is the first one that new blocks may enter.
    """
    gone, changes = checked_ids(remove, "remove"), released.changes
    rows, joins = None, None
    if plan.catalogue is not None:
        before = catalogue_after(plan, changes)
        after = before.changed(add, gone)
        first = len(before) - len(gone)
        added, rows = after.ids[first:], after.rows[first:]
    else:
        added, joins = _checked_names(plan, released, add, gone, batch), batch
    if not added and not gone:
        raise InvalidInput("add or remove must name an action; both are empty. Give one of them.")
    number, previous = len(changes) + 1, changes[-1].digest if changes else plan.digest
    after_releases = len(released.items)
    return ActionChange(
        number, after_releases, added, gone, rows, joins, plan_digest=plan.digest, previous=previous
    )


def _checked_names(
    plan: Plan, released: PolicyView, add: object, gone: tuple[str, ...], batch: int
) -> tuple[str, ...]:
    """Return the names of new actions with blocks; refuse a change that is not possible."""
    if plan.actions is None or plan.feedback == "full" or isinstance(plan.oracle, FiniteClass):
        raise InvalidInput(
            "plan must have named actions, bandit feedback and an oracle that learns weights for "
            "actions to change; this one has not. Write Plan(actions=[…]) and begin again."
        )
    added = checked_ids(add, "add")
    in_use = available_actions(plan, released.changes).places
    for name in gone:
        if name not in in_use:
            nearby = nearest(name, map(str, in_use))
            raise InvalidInput(f"remove must be actions in use; got {name!r}. {nearby}")
    if twice := [name for name in added if name in in_use]:
        raise InvalidInput(f"add must be new actions; got {twice[0]!r}. Leave it out.")
    if set(available_actions(plan, released.changes, released.blocks(batch)).places) <= set(gone):
        raise InvalidInput(
            f"remove must leave an action in use; got all of {', '.join(gone)}. "
            "Wait until those that were added take part, then remove the others."
        )
    return added
