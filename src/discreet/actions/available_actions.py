"""Which actions a plan knows after all changes, and how they change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from discreet.actions.requested_actions import Acting, Known
from discreet.errors import InvalidInput
from discreet.features.joint import Joint
from discreet.oracles import FiniteClass
from discreet.plan.plan import Plan
from discreet.releases.action_change import ActionChange
from discreet.releases.catalogue import Catalogue, checked_ids
from discreet.releases.policy_view import PolicyView
from discreet.validate import nearest


def known_actions(plan: Acting, released: PolicyView, batch: int) -> Known:
    """The actions that a request of this batch may be offered."""
    if isinstance(plan.features, Joint):
        return Known.of_catalogue(catalogue_after(plan, released), plan.features)
    names: list[Any] = list(plan.actions or range(plan.n_actions))
    places = {name: place for place, name in enumerate(names)}
    first = dict.fromkeys(names, 0)
    gone: set[str] = set()
    for change in released.changes:
        for name in change.added:
            if name not in places:
                places[name], first[name] = len(names), change.batch or 0
                names.append(name)
        gone = (gone - set(change.added)) | set(change.removed)
    used = {name: place for name, place in places.items() if name not in gone}
    return Known(names, {name: place for name, place in used.items() if first[name] <= batch})


def catalogue_after(plan: Acting, released: PolicyView) -> Catalogue:
    """The catalogue of the plan after all changes."""
    catalogue = plan.catalogue
    assert catalogue is not None
    if not released.changes:
        return catalogue
    items = dict(zip(catalogue.ids, catalogue.rows, strict=True))
    for change in released.changes:
        for item in change.removed:
            items.pop(item, None)
        items |= dict(zip(change.added, () if change.rows is None else change.rows, strict=False))
    return Catalogue(catalogue.schema, ids=[*items], rows=[*items.values()])


def changed_actions(
    plan: Plan, released: PolicyView, add: Any, remove: Iterable[str], batch: int
) -> ActionChange:
    """The document of a change, checked; ``batch`` is the first one that new blocks may enter."""
    gone, changes = checked_ids(remove, "remove"), released.changes
    previous = changes[-1].digest if changes else plan.digest
    change = ActionChange(
        len(changes) + 1, len(released.items), (), gone, plan_digest=plan.digest, previous=previous
    )
    if plan.catalogue is not None:
        before = catalogue_after(plan, released)
        after = before.changed(add, gone)
        new = len(after) - (len(before) - len(gone))
        added, rows = after.ids[len(after) - new :], after.rows[len(after) - new :]
        _refuse_no_change(added, gone)
        return replace(change, added=added, rows=rows)
    if plan.actions is None or plan.feedback == "full" or isinstance(plan.oracle, FiniteClass):
        raise InvalidInput(
            "plan must have named actions, bandit feedback and an oracle that learns weights for "
            "actions to change; this one has not. Write Plan(actions=[…]) and begin again."
        )
    added = checked_ids(add, "add")
    _refuse_no_change(added, gone)
    known = known_actions(plan, released, batch=2**62)
    for name in gone:
        if name not in known.places:
            raise InvalidInput(
                f"remove must be actions in use; got {name!r}. {nearest(name, list(known.places))}"
            )
    if twice := [name for name in added if name in known.places]:
        raise InvalidInput(f"add must be new actions; got {twice[0]!r}. Leave it out.")
    if not set(known_actions(plan, released, batch).places) - set(gone):
        raise InvalidInput(
            f"remove must leave an action in use; got all of {', '.join(gone)}. "
            "Wait until those that were added take part, then remove the others."
        )
    return replace(change, added=added, batch=batch)


def _refuse_no_change(added: Iterable[str], removed: Iterable[str]) -> None:
    if not [*added, *removed]:
        raise InvalidInput("add or remove must name an action; both are empty. Give one of them.")
