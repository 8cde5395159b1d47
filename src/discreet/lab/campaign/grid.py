"""Grid of a campaign: the runs of each data set, in a fixed order."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any

from discreet.errors import InvalidInput
from discreet.features.unit_ball import UnitBall
from discreet.lab.campaign import presets
from discreet.lab.rivals.rival_contract import RivalPlan
from discreet.plan.config import to_config
from discreet.plan.plan import Plan
from discreet.plan.registry import ORACLES, POLICIES
from discreet.privacy.budget import Budget, Participation
from discreet.releases.canonical import digest_of
from discreet.types import JsonMapping, JsonObject
from discreet.validate import one_of, positive, whole

ALGORITHMS = (*presets.PAPER_POLICIES, "BonusPO", "Default", *presets.ROUNDS)
GRID_ORACLES = ("Ridge", "Logistic")
"""Oracles of the grid's policies; ``Default`` and declared plans have other ones."""
MECHANISMS = ("paper", "structured")
PRESETS: Mapping[str, JsonMapping] = {
    "paper": {"epsilons": presets.EPSILONS, "seeds": 10},
    "quick": {"epsilons": (math.inf, 4.0, 1.0), "ridges": (1e-6, 0.1), "seeds": 3},
    "default": {
        "epsilons": presets.EPSILONS,
        "seeds": 10,
        "algorithms": ("Default",),
        "mechanism": "structured",
    },
    "rivals": {
        "epsilons": (*presets.EPSILONS, 0.5),
        "seeds": 10,
        "algorithms": ("Default", *presets.ROUNDS, "AdaSSP"),
        "plans": presets.DECLARED,
        "mechanism": "structured",
    },
}
"""``Default``, in all of them, is the untuned plan with all defaults."""
USUAL: JsonMapping = {
    "mechanism": "paper",
    "algorithms": (*presets.PAPER_POLICIES, "Default"),
    "ridges": presets.RIDGES,
    "plans": (),
}
"""Values of fields that a preset does not set."""
Key = tuple[str, float, float, str]
"""Algorithm, ε, δ and settings: with a data set, an oracle and a seed they name a run."""


@dataclass(frozen=True)
class Grid:
    """Public description of the runs, the same for every data set.

    In addition to ``ALGORITHMS``, a registered policy is an algorithm, which plays its
    ``campaign_settings`` on the paper's oracles; so is a registered oracle, which serves the
    default policy. ``plans`` are algorithms that a campaign file declares; they are played in
    addition to those that ``algorithms`` names.
    """

    preset: str
    mechanism: str
    algorithms: tuple[str, ...]
    epsilons: tuple[float, ...]
    ridges: tuple[float, ...]
    seeds: int
    features: str = "raw"
    oracles: tuple[str, ...] = GRID_ORACLES
    plans_declared: tuple[presets.OwnPlans, ...] = ()
    participation: Participation | None = None
    """Bound on the contributions of a user, where ε is for a user and not for a decision."""
    own: tuple[type[Any], ...] = field(init=False, repr=False, default=())
    """Registered classes among the algorithms; they are sent to the workers with the grid."""

    def __post_init__(self) -> None:
        one_of("preset", self.preset, PRESETS)
        one_of("mechanism", self.mechanism, MECHANISMS)
        one_of("features", self.features, presets.FEATURES)
        declared = {each.name: each for each in self.plans_declared}
        for algorithm in self.algorithms:
            if _own(algorithm) is None and algorithm not in declared:
                one_of("algorithms", algorithm, (*ALGORITHMS, *POLICIES.own, *ORACLES.own))
        for oracle in self.oracles:
            one_of("oracles", oracle, GRID_ORACLES)
        for epsilon in self.epsilons:
            Budget(epsilon, presets.DELTA)  # raises InvalidInput
        for ridge in self.ridges:
            positive("ridges", ridge)
        whole("seeds", self.seeds, 1)
        # One order, so that equal grids have equal digests.
        own = sorted({*self.algorithms} - {*ALGORITHMS} - {*declared})
        built_in = (name for name in ALGORITHMS if name in self.algorithms)
        oracles = tuple(name for name in GRID_ORACLES if name in self.oracles)
        chosen = tuple(name for name in (*built_in, *own) if _playable(name, oracles))
        chosen += tuple(sorted(declared))
        if not chosen:
            raise InvalidInput(
                f"oracles must leave something to play; got {', '.join(self.oracles)} for "
                f"{', '.join(self.algorithms)}. FastCB needs Logistic."
            )
        classes = [_own(name) for name in own]
        classes += [kind for each in declared.values() for kind in each.classes]
        vars(self).update(
            own=tuple(dict.fromkeys(classes)),
            oracles=oracles,
            plans_declared=tuple(declared[name] for name in sorted(declared)),
            algorithms=chosen,
            epsilons=tuple(sorted({float(epsilon) for epsilon in self.epsilons}, reverse=True)),
            ridges=tuple(sorted({float(ridge) for ridge in self.ridges})),
        )

    @classmethod
    def of(cls, preset: str = "paper", *, plans: Sequence[Any] = (), **changed: Any) -> Grid:
        """Return a preset with changed fields; ``plans`` are tables, as in a campaign file."""
        usual = {**USUAL, **PRESETS[one_of("preset", preset, PRESETS)]}
        declared = usual.pop("plans")
        changed = {name: value for name, value in changed.items() if value is not None}
        if "algorithms" not in changed:
            plans = (*declared, *plans)
        given = {**usual, **changed}
        presets.register_named(given["algorithms"], plans)
        given["plans_declared"] = _distinct([presets.OwnPlans.of(each) for each in plans])
        return cls(preset=preset, **given)

    def union(self, other: Grid) -> Grid:
        """Return the smallest grid that includes both; of two presets the larger one is named."""
        named = (self.preset, other.preset)
        return replace(
            self,
            preset=next(name for name in PRESETS if name in named),
            algorithms=self.algorithms + other.algorithms,
            epsilons=self.epsilons + other.epsilons,
            ridges=self.ridges + other.ridges,
            seeds=max(self.seeds, other.seeds),
            oracles=self.oracles + other.oracles,
            plans_declared=_distinct([*dict.fromkeys(self.plans_declared + other.plans_declared)]),
        )

    def to_document(self) -> JsonObject:
        """Return plain values for the manifest; ε = ∞ is "inf", since JSON has no infinity."""
        lists = {
            "algorithms": list(self.algorithms),
            "epsilons": ["inf" if math.isinf(epsilon) else epsilon for epsilon in self.epsilons],
            "ridges": list(self.ridges),
        }
        words = {name: getattr(self, name) for name in ("preset", "mechanism", "features", "seeds")}
        if self.oracles != GRID_ORACLES:
            lists["oracles"] = list(self.oracles)
        if self.plans_declared:
            lists["plans"] = [each.to_document() for each in self.plans_declared]
        if self.participation is not None:
            words["participation"] = self.participation.to_json()
        return {**words, **lists, "delta": presets.DELTA}

    @classmethod
    def from_document(cls, document: JsonMapping) -> Grid:
        """Return the grid that a manifest describes."""
        given = {name: value for name, value in document.items() if name not in ("delta", "plans")}
        presets.register_named(document.get("algorithms", ()), document.get("plans", ()))
        given["plans_declared"] = tuple(map(presets.OwnPlans.of, document.get("plans", ())))
        given["participation"] = Participation.from_json(document.get("participation"))
        given["epsilons"] = [float(epsilon) for epsilon in given["epsilons"]]
        lists = ("algorithms", "epsilons", "ridges", "oracles")
        return cls(**given | {name: tuple(given[name]) for name in lists if name in given})

    @property
    def digest(self) -> str:
        return digest_of(self.to_document())

    @property
    def families(self) -> tuple[str, ...]:
        """Families with at least one run."""
        return tuple(configurations(self, 2, 1))

    def plans(
        self, family: str, n_actions: int, dimension: int
    ) -> Sequence[tuple[Key, Plan | RivalPlan]]:
        """Return every configuration of a family, at every privacy level."""
        return configurations(self, n_actions, dimension)[family]

    def declared(self, algorithm: str) -> presets.OwnPlans | None:
        """Return the plans that a file declares under this name."""
        return next((each for each in self.plans_declared if each.name == algorithm), None)


@lru_cache(maxsize=8)
def configurations(
    grid: Grid, n_actions: int, dimension: int
) -> Mapping[str, Sequence[tuple[Key, Plan | RivalPlan]]]:
    """Return all configurations by family: the oracle, and what the engine plays together."""
    found = defaultdict(list)
    for algorithm in grid.algorithms:
        declared = grid.declared(algorithm)
        for plan in _plans_of(grid, algorithm, n_actions, dimension):
            if isinstance(plan, RivalPlan):
                family, settings = f"{type(plan.rival).__name__}.rounds", vars(plan.rival)
            else:
                kind = "radii" if plan.policy.uses_radii else "predictions"
                kind = "supervised" if algorithm == "Supervised" else kind
                family = f"{type(plan.oracle).__name__}.{declared.name if declared else kind}"
                settings = {**vars(plan.policy), **_oracle(plan, whole=declared is not None)}
            written = json.dumps(settings, sort_keys=True, separators=(",", ":"), default=to_config)
            key = (algorithm, plan.budget.epsilon, plan.budget.delta, written)
            found[family].append((key, plan))
    return found


def _plans_of(
    grid: Grid, algorithm: str, n_actions: int, dimension: int
) -> Sequence[Plan | RivalPlan]:
    often, declared = grid.participation, grid.declared(algorithm)
    if algorithm in presets.ROUNDS:
        if often is not None:
            raise InvalidInput(
                f"algorithms must have a bound for a user; {algorithm} has one for a decision. "
                "Leave --user out, or the rivals."
            )
        return presets.rival_plans(algorithm, n_actions, dimension, grid.epsilons)
    problem: JsonObject = {"n_actions": n_actions, "features": UnitBall(dimension)}
    parts: Sequence[presets.Parts] = [{}]
    if declared is not None:
        problem = declared.problem(n_actions, dimension)
        parts = declared.parts(grid.mechanism)
    elif policies := _settings(algorithm, grid.preset):
        tuned: JsonObject = {"mechanism": grid.mechanism, "ridges": grid.ridges}
        parts = presets.policy_parts(algorithm, policies, oracles=grid.oracles, **tuned)
    elif algorithm != "Default":
        parts = [{"oracle": ORACLES[algorithm]()}]
    if often is not None:
        problem |= {"unit": "user"}
        problem |= {"batches_per_user": often.batches, "records_per_batch": often.records}
    budgets = map(presets.budget_of, grid.epsilons)
    return [Plan(**problem, budget=budget, **each) for budget, each in product(budgets, parts)]


def plans_of(grid: Grid, n_actions: int, dimension: int) -> list[Any]:
    """Return the plans of all families."""
    return [
        plan for each in configurations(grid, n_actions, dimension).values() for _, plan in each
    ]


def keys(grid: Grid, family: str) -> tuple[Key, ...]:
    """Return the keys of a family's configurations, the same for every data set."""
    return tuple(key for key, _ in grid.plans(family, 2, 1))


def _oracle(plan: Plan, *, whole: bool) -> JsonMapping:
    """Return the parameters of an oracle: its λ, or ``whole``, all but the mechanism."""
    oracle = vars(plan.oracle)
    if whole:
        return {key: value for key, value in oracle.items() if key != "mechanism"}
    return {"ridge": oracle["ridge"]} if type(plan.oracle).__name__ in ORACLES.built_in else oracle


def _distinct(plans: Sequence[presets.OwnPlans]) -> tuple[presets.OwnPlans, ...]:
    names = [each.name for each in plans]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(
            f"plans must have different names, also from those of the folder; got {twice!r} for "
            "two. Rename one, or choose another --out."
        )
    return tuple(plans)


def _playable(algorithm: str, oracles: Sequence[str]) -> bool:
    """Return True if an algorithm has a run with these oracles."""
    settings = _settings(algorithm)
    return not settings or "Logistic" in oracles or not settings[0].needs_bounded_losses


def _own(algorithm: str) -> type[Any] | None:
    """Return the registered class with this name; entry points are loaded to find it."""
    if algorithm in ALGORITHMS:
        return None
    kind = POLICIES.get(algorithm) or ORACLES.get(algorithm)
    return None if kind in (*POLICIES.built_in.values(), *ORACLES.built_in.values()) else kind


def _settings(algorithm: str, preset: str = "paper") -> Sequence[Any]:
    """Return the settings on the paper's oracles; none for an algorithm with another oracle."""
    if algorithm in POLICIES.own:
        return list(POLICIES[algorithm].campaign_settings())
    quick = presets.QUICK_POLICIES if preset == "quick" else {}
    return quick.get(algorithm, presets.GRID_POLICIES.get(algorithm, ()))
