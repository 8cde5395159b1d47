"""Algorithms that a campaign file declares: plans with lists of values to try.

An entry names a policy and an oracle, built in or registered; a list of values stands for one
setting each, and all combinations are played. The mechanism is that of the whole campaign.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from discreet.errors import InvalidInput
from discreet.features.category import Category
from discreet.features.joint import Joint
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.lab.campaign.presets import budget_of
from discreet.plan.config import from_config
from discreet.plan.plan import Plan
from discreet.plan.registry import ORACLES, POLICIES, RESERVED
from discreet.releases.catalogue import Catalogue
from discreet.validate import nearest

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
PARTS = {
    "policy": ({"kind": "AdaptivePO"}, POLICIES),
    "oracle": ({"kind": "PooledRidge"}, ORACLES),
}
"""Default of each part, and the classes that it may name."""
WORDS = ("feedback", "losses", "first_batch", "growth", "half_life", "floor")
JOINT = "interactions"
"""Key that makes classes the items of a catalogue, with the class as their only feature."""


@dataclass(frozen=True)
class OwnPlans:
    """One algorithm: its name, and its declaration as JSON, so that grids can be compared."""

    name: str
    declared: str

    @classmethod
    def of(cls, document: Any) -> OwnPlans:
        """Return the algorithm of an entry of ``[[plans]]``; refuse unknown keys and names."""
        if not isinstance(document, Mapping):
            raise InvalidInput(
                f"plans must be tables with a name; got {document!r}. Write [[plans]] above each."
            )
        name, known = document.get("name"), ("name", *PARTS, *WORDS, JOINT)
        for key in document:
            if key not in known:
                raise InvalidInput(
                    f"plans must have only known keys; got {key!r}. {nearest(key, known)}"
                )
        taken = (*POLICIES, *ORACLES, *RESERVED)
        if not isinstance(name, str) or not NAME.fullmatch(name) or name in taken:
            raise InvalidInput(
                f"plans.name must be a word of letters, digits, - and _ that names no policy or "
                f'oracle; got {name!r}. Write name = "Mine".'
            )
        made = cls(name, json.dumps(dict(document), sort_keys=True))
        made.plans(2, 1, (1.0,), "structured")  # refuses now what cannot be played
        return made

    def to_document(self) -> dict[str, Any]:
        """Return the entry as it was declared."""
        return dict(json.loads(self.declared))

    @property
    def oracles(self) -> tuple[str, ...]:
        """Kinds of oracles among its plans."""
        return tuple(dict.fromkeys(each["kind"] for each in self._settings("oracle")))

    @property
    def classes(self) -> tuple[type[Any], ...]:
        """Registered classes that its plans need."""
        own = {**POLICIES.own, **ORACLES.own}
        kinds = [each["kind"] for part in PARTS for each in self._settings(part)]
        return tuple(dict.fromkeys(own[kind] for kind in kinds if kind in own))

    def plans(
        self, n_actions: int, dimension: int, epsilons: Sequence[float], mechanism: str
    ) -> tuple[Plan, ...]:
        """Return all combinations, at every privacy level."""
        document = self.to_document()
        words = {key: value for key, value in document.items() if key in WORDS}
        kinds: dict[str, Any] = {"n_actions": n_actions, "features": UnitBall(dimension)}
        if JOINT in document:
            kinds = _classes_as_items(n_actions, dimension, document[JOINT])
        return tuple(
            Plan(
                **kinds,
                budget=budget_of(epsilon),
                policy=from_config(POLICIES, policy, "plans.policy"),
                oracle=from_config(ORACLES, _with(mechanism, oracle), "plans.oracle"),
                **words,
            )
            for epsilon in epsilons
            for policy, oracle in product(self._settings("policy"), self._settings("oracle"))
        )

    def _settings(self, part: str) -> list[dict[str, Any]]:
        """Return one table per combination of listed values."""
        usual, registry = PARTS[part]
        given = self.to_document().get(part, usual)
        tables = given if isinstance(given, list) else [given]
        for each in tables:
            from_config(registry, _first(each), f"plans.{part}")  # raises InvalidInput
            if "mechanism" in each:
                raise InvalidInput(
                    f"plans.{part} must leave the mechanism to the campaign; got "
                    f"{each['mechanism']!r}. Set mechanism = … at the top of the file."
                )
        return [made for each in tables for made in _combinations(each)]


def _classes_as_items(n_actions: int, dimension: int, interactions: Any) -> dict[str, Any]:
    """Return a catalogue of the classes, and joint features of a context and a class."""
    names = tuple(f"class {number}" for number in range(n_actions))
    schema = Schema([Category("class", names)])
    products = dimension * (schema.p - 1)
    if isinstance(interactions, int) and interactions >= products:
        interactions = "all"  # a small set has fewer products than the width
    items = Catalogue(schema, {name: {"class": name} for name in names})
    return {"actions": items, "features": Joint(UnitBall(dimension), schema, interactions)}


def _combinations(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lists = [value if isinstance(value, list) else [value] for value in table.values()]
    for values in product(*lists):
        yield dict(zip(table, values, strict=True))


def _first(table: Any) -> Any:
    """Return one combination, for checks of names and types."""
    if not isinstance(table, Mapping):
        return table
    empty = next((key for key, value in table.items() if value == []), None)
    if empty is not None:
        raise InvalidInput(f"plans must list at least one value of {empty}; got none. Add one.")
    return next(_combinations(table))


def _with(mechanism: str, oracle: dict[str, Any]) -> dict[str, Any]:
    has = any(each.name == "mechanism" for each in fields(ORACLES[oracle["kind"]]))
    return {**oracle, "mechanism": mechanism} if has else oracle
