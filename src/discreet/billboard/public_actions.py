"""The actions that a genesis declares, and whether a change of them makes sense."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.config import from_config
from discreet.errors import CorruptRelease
from discreet.features.joint import Joint
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.plan import FEATURES
from discreet.releases.action_change import ActionChange
from discreet.releases.canonical import digest_of
from discreet.releases.catalogue import Catalogue


@dataclass(frozen=True, eq=False, repr=False)
class PublicActions:
    """What ``offers`` asks of a plan, read from its document without calibrating any noise."""

    config: Mapping[str, Any]

    control = None
    """A device learns from its ticket what the control plays."""

    @cached_property
    def digest(self) -> str:
        """The digest of the plan, the root of releases and of changes."""
        return digest_of(self.config)

    @cached_property
    def features(self) -> UnitBall | Schema | Joint:
        """How a context, or a context and an action, become features."""
        made: UnitBall | Schema | Joint = from_config(
            FEATURES, self.config["features"], "plan.features"
        )
        return made

    @cached_property
    def catalogue(self) -> Catalogue | None:
        """The items of the plan, where actions have features."""
        written = self.config.get("actions")
        if not isinstance(written, Mapping):
            return None
        made: Catalogue = from_config({"Catalogue": Catalogue, **FEATURES}, written, "plan.actions")
        return made

    @cached_property
    def actions(self) -> tuple[str, ...] | None:
        """The names of the actions, if they have names."""
        names = self.config.get("actions")
        if self.catalogue is not None:
            return self.catalogue.ids
        return None if names is None else tuple(names)

    @property
    def n_actions(self) -> int:
        return int(self.config["n_actions"])

    def refuse_senseless(self, change: ActionChange, before: Iterable[ActionChange]) -> None:
        """Refuse a change that adds what is in use, removes what is not, or has other features."""
        used = set(self.actions or ())
        for each in before:
            used = (used - set(each.removed)) | set(each.added)
        gone, new = set(change.removed), set(change.added)
        again = new & (used - gone if self.catalogue is not None else used)
        rows = None if change.rows is None else change.rows.shape
        shape = None if self.catalogue is None else (len(change.added), self.catalogue.schema.p)
        distinct = len(gone) == len(change.removed) and len(new) == len(change.added)
        placed = (change.batch is None) == (self.catalogue is not None)
        named = self.actions is not None and bool(gone | new)
        if again or gone - used or rows != shape or not (distinct and placed and named):
            raise CorruptRelease(
                f"change {change.number} of the actions must add new ones and remove those in use; "
                "it does not. Do not use it: ask its publisher."
            )
