"""Settings of algorithms: the paper's grid, the default, rivals, and plans that a file declares.

A declared plan names a policy and an oracle, built in or registered; a list of values stands for
one setting each, and all combinations are played. The mechanism is that of the whole campaign.
[paper, Table "Hyperparameter grids used in the experiments"]
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from discreet import policies
from discreet.errors import InvalidInput
from discreet.features.category import Category
from discreet.features.joint import Joint
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall
from discreet.lab import rivals
from discreet.lab.rivals.rival_contract import Rival, RivalPlan
from discreet.oracles import Logistic, Ridge
from discreet.plan.config import from_config
from discreet.plan.plan import Plan
from discreet.plan.registry import ORACLES, POLICIES, RESERVED, register
from discreet.policies import Policy
from discreet.privacy.budget import Budget
from discreet.releases.catalogue import Catalogue
from discreet.types import JsonMapping, JsonObject
from discreet.validate import nearest

FEATURES = ("raw", "ranges", "wide")
"""Columns as they are, or scaled by the data's own ranges."""
EPSILONS = (math.inf, 8.0, 4.0, 2.0, 1.0)
DELTA = 1e-5
DOUBLING: JsonMapping = {"first_batch": 1, "growth": 2.0}
"""The batches of the paper. [paper, Algorithm 2]"""
RIDGES = (1e-6, 1e-4, 1e-2, 1e-1, 1.0)

PAPER_POLICIES: dict[str, list[Policy]] = {
    # The length that the published runs used: of the batch before, not of the one being played.
    "VanillaPO": [policies.VanillaPO(scale=2.0**k, rollout="previous") for k in (1, 3, 5, 7, 9)],
    "ReplayBonusPO": [
        policies.ReplayBonusPO(learning_rate=10.0**rate, bonus=10.0**bonus)
        for rate, bonus in product((-3, -2, -1, 0), (-3, -2, -1))
    ],
    "SquareCB": [
        policies.SquareCB(scale=2.0**k, exponent=rho)
        for k, rho in product((0, 2, 4, 6, 8), (0.25, 0.5))
    ],
    "FastCB": [
        policies.FastCB(scale=10.0**k, exponent=rho)
        for k, rho in product((-1, 0, 1, 2, 3), (0.25, 0.5))
    ],
    "LinUCB": [policies.LinUCB(width=2.0**k) for k in (-12, -8, -7, -5, -2, 0, 1, 2, 3)],
    "RegCB": [policies.RegCB(width=10.0**k) for k in (-5, -3, -2, -1, 0, 1)],
    "AdaCB": [
        policies.AdaCB(scale=10.0**k, exponent=rho, width=10.0**w)
        for k, rho, w in product((-1, 0, 1, 2), (0.25, 0.5), (-2, -1, 0, 1))
    ],
    "Supervised": [policies.Greedy()],
}

GRID_POLICIES: dict[str, list[Policy]] = {
    **PAPER_POLICIES,
    # The paper has no grid for exact BonusPO; this one lies around the theory's 1 and 1.
    "BonusPO": [
        policies.BonusPO(rate_scale=rate, bonus_scale=bonus)
        for rate, bonus in product((1.0, 10.0), (0.001, 0.01, 0.1, 1.0))
    ],
}

QUICK_POLICIES: dict[str, list[Policy]] = {
    "VanillaPO": [
        policies.VanillaPO(scale=scale, rollout="previous") for scale in (2.0, 32.0, 512.0)
    ],
    "ReplayBonusPO": [
        policies.ReplayBonusPO(learning_rate=rate, bonus=bonus)
        for rate, bonus in ((1.0, 0.001), (0.1, 0.1), (0.1, 0.01))
    ],
    "SquareCB": [policies.SquareCB(scale=scale, exponent=0.5) for scale in (1.0, 64.0, 256.0)],
    "FastCB": [policies.FastCB(scale=scale, exponent=0.5) for scale in (0.1, 10.0, 1000.0)],
    "LinUCB": [policies.LinUCB(width=2.0**k) for k in (-7, -2)],
    "RegCB": [policies.RegCB(width=width) for width in (0.1, 1.0)],
    "AdaCB": [
        policies.AdaCB(scale=s, exponent=0.5, width=w) for s, w in ((10.0, 1.0), (0.1, 10.0))
    ],
    "Supervised": [policies.Greedy()],
    "BonusPO": [policies.BonusPO(rate_scale=rate, bonus_scale=0.01) for rate in (1.0, 10.0)],
}
"""Settings that the paper selected often; all are in its grid, so ``paper`` extends them."""


Parts = JsonObject
"""Arguments of a plan, without its problem and its budget."""


def policy_parts(
    algorithm: str,
    settings: Sequence[Policy],
    *,
    mechanism: str,
    ridges: Sequence[float],
    oracles: Sequence[str],
) -> list[Parts]:
    """Return every configuration of a policy's settings; Supervised observes all losses."""
    bounded = settings[0].needs_bounded_losses
    tuned = [
        kind(ridge=ridge, mechanism=mechanism)
        for kind in (Ridge, Logistic)
        if kind.__name__ in oracles and (kind.bounded or not bounded)
        for ridge in ridges
    ]
    full = {"feedback": "full", "losses": "one_label"} if algorithm == "Supervised" else {}
    return [
        {"policy": policy, "oracle": oracle, **full, **DOUBLING}
        for policy, oracle in product(settings, tuned)
    ]


def budget_of(epsilon: float) -> Budget:
    """Return the budget of a privacy level of the experiments."""
    return Budget(epsilon, DELTA) if math.isfinite(epsilon) else Budget.none()


WIDTHS = (0.1, 1.0)
"""Between these the mean loss is flat, with noise and without."""
ROUNDS: Mapping[str, Sequence[Rival]] = {
    "TreeLinUCB": [rivals.TreeLinUCB(width) for width in WIDTHS],
    "TreeLinUCB-published": [rivals.TreeLinUCB(width, constants="published") for width in WIDTHS],
    "BatchedLinUCB": [rivals.BatchedLinUCB(width) for width in WIDTHS],
    "ShuffledLinUCB": [rivals.ShuffledLinUCB(width) for width in WIDTHS],
    "ShuffledLinUCB-published": [
        rivals.ShuffledLinUCB(width, protocol="vector-sum") for width in WIDTHS
    ],
    "LocalLinUCB": [rivals.LocalLinUCB(width) for width in WIDTHS],
    "LocalLinUCB-published": [rivals.LocalLinUCB(width, constants="published") for width in WIDTHS],
    "P2B": [
        rivals.CodedBandit(codes=codes, batches=4) for codes in (4, 8)
    ],  # crowds need few codes
    "P2B-published": [rivals.CodedBandit(width, constants="published") for width in WIDTHS],
    "AdaPrivateTS-protected": [
        rivals.AdaPrivateTS(width, inflated=each) for width in WIDTHS for each in (True, False)
    ],
    "AdaPrivateTS-clear": [
        rivals.AdaPrivateTS(width, "clear", inflated=each)
        for width in WIDTHS
        for each in (True, False)
    ],
    "PlainLinUCB": [rivals.PlainLinUCB(width) for width in WIDTHS],
}
"""Those with a runner of their own. A ``-published`` one has the constants of its paper; P2B's do
not protect actions and losses. A clear Gram protects neither contexts nor actions.
[docs/privacy/rivals.md]"""
DECLARED: tuple[JsonMapping, ...] = (
    {"name": "Epsilon-greedy", "policy": {"kind": "EpsGreedy", "share": [0.02, 0.1]}},
    {"name": "Thompson", "policy": {"kind": "ThompsonSampling", "width": [0.1, 0.5]}},
)
"""Published policies on releases of discreet."""
EXTENSIONS: Mapping[str, type[Any]] = {
    each.__name__: each for each in (rivals.EpsGreedy, rivals.ThompsonSampling, rivals.AdaSSP)
}
"""Rivals on the public extension points, like classes of users."""


def register_named(algorithms: Iterable[str], declared: Iterable[Any]) -> None:
    """Register the extensions that a grid names."""
    named: set[Any] = {*algorithms}
    for table in declared:
        parts = (table.get(part) for part in ("policy", "oracle") if isinstance(table, Mapping))
        named |= {part.get("kind") for part in parts if isinstance(part, Mapping)}
    for name in named & EXTENSIONS.keys():
        register(EXTENSIONS[name])


def rival_plans(
    algorithm: str, n_actions: int, dimension: int, epsilons: Sequence[float]
) -> list[RivalPlan]:
    """Return every setting at every privacy level; rivals without privacy at ε = ∞ alone."""
    return [
        RivalPlan(rival, n_actions, dimension + 1, budget_of(epsilon))
        for epsilon in epsilons
        for rival in ROUNDS[algorithm]
        if math.isinf(epsilon) or not isinstance(rival, rivals.PlainLinUCB)
    ]


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
        """Return the algorithm of an entry of ``[[plans]]``; refuse what cannot be played."""
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
        for parts in made.parts("structured"):
            Plan(**made.problem(2, 1), budget=budget_of(1.0), **parts)
        return made

    def to_document(self) -> JsonObject:
        """Return the entry as it was declared."""
        return dict(json.loads(self.declared))

    @property
    def classes(self) -> tuple[type[Any], ...]:
        """Registered classes that its plans need."""
        own = {**POLICIES.own, **ORACLES.own}
        kinds = [each["kind"] for part in PARTS for each in self._settings(part)]
        return tuple(dict.fromkeys(own[kind] for kind in kinds if kind in own))

    def problem(self, n_actions: int, dimension: int) -> JsonObject:
        """Return actions and features: numbers, or items with joint features."""
        document = self.to_document()
        if JOINT not in document:
            return {"n_actions": n_actions, "features": UnitBall(dimension)}
        return _classes_as_items(n_actions, dimension, document[JOINT])

    def parts(self, mechanism: str) -> list[Parts]:
        """Return all combinations of policies and oracles."""
        words = {key: value for key, value in self.to_document().items() if key in WORDS}
        played, oracles = (
            [from_config(registry, each, f"plans.{part}") for each in self._settings(part)]
            for part, (_, registry) in PARTS.items()
        )
        oracles = [
            replace(each, mechanism=mechanism) if hasattr(each, "mechanism") else each
            for each in oracles
        ]
        return [
            {"policy": policy, "oracle": oracle, **words}
            for policy, oracle in product(played, oracles)
        ]

    def _settings(self, part: str) -> list[JsonObject]:
        """Return one table per combination of listed values."""
        usual, registry = PARTS[part]
        given = self.to_document().get(part, usual)
        made: list[JsonObject] = []
        for table in given if isinstance(given, list) else [given]:
            if not isinstance(table, Mapping):
                from_config(registry, table, f"plans.{part}")  # raises InvalidInput
            if "mechanism" in table:
                raise InvalidInput(
                    f"plans.{part} must leave the mechanism to the campaign; got "
                    f"{table['mechanism']!r}. Set mechanism = … at the top of the file."
                )
            lists = [value if isinstance(value, list) else [value] for value in table.values()]
            if [] in lists:
                empty = list(table)[lists.index([])]
                raise InvalidInput(
                    f"plans must list at least one value of {empty}; got none. Add one."
                )
            made += [dict(zip(table, values, strict=True)) for values in product(*lists)]
        return made


def _classes_as_items(n_actions: int, dimension: int, interactions: Any) -> dict[str, Any]:
    """Return a catalogue of the classes, and joint features of a context and a class."""
    names = tuple(f"class {number}" for number in range(n_actions))
    schema = Schema([Category("class", names)])
    if isinstance(interactions, int) and interactions >= dimension * (schema.p - 1):
        interactions = "all"  # a small set has fewer products than the width
    items = Catalogue(schema, {name: {"class": name} for name in names})
    return {"actions": items, "features": Joint(UnitBall(dimension), schema, interactions)}
