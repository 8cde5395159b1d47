"""Every policy and every oracle, once. The contract tests run over these lists.

A tuple of policies shares class and structure, so it can be stacked. Examples use three
actions and four features (three and the bias), small enough for literal transcriptions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.batch import Batch
from discreet.design.schedule import Schedule
from discreet.releases.release import Gram, Predictor, Release
from discreet.releases.released import Released
from discreet.releases.statistics import Statistics

ACTIONS, DIMENSION = 3, 3
WIDTH = DIMENSION + 1
FEATURES = dc.UnitBall(DIMENSION)
NONE, PRIVATE, PURE = dc.Budget.none(), dc.Budget(2.0, 1e-5), dc.Budget(2.0)

POLICIES: dict[str, tuple[Any, ...]] = {
    "Uniform": (dc.Uniform(), dc.Uniform()),
    "Greedy": (dc.Greedy(), dc.Greedy()),
    "VanillaPO-current": tuple(dc.VanillaPO(scale=scale) for scale in (2.0, 8.0, 512.0)),
    "VanillaPO-previous": tuple(
        dc.VanillaPO(scale=scale, rollout="previous") for scale in (2.0, 8.0, 512.0)
    ),
    "BonusPO": (
        dc.BonusPO(error_bound=1.0),
        dc.BonusPO(error_bound=9.0, rate_scale=4.0, bonus_scale=0.05),
        dc.BonusPO(error_bound=1.0, rate_scale=20.0, bonus_scale=0.2),
    ),
    "ReplayBonusPO": (
        dc.ReplayBonusPO(learning_rate=0.1, bonus=0.01),
        dc.ReplayBonusPO(learning_rate=1.0, bonus=0.1),
        dc.ReplayBonusPO(learning_rate=0.001, bonus=0.5),
    ),
    "AdaptivePO": (
        dc.AdaptivePO(learning_rate=0.1, bonus=0.01),
        dc.AdaptivePO(learning_rate=1.0, bonus=0.1, scale=0.2),
        dc.AdaptivePO(learning_rate=0.001, bonus=0.5, scale=4.0),
    ),
    "SquareCB": (
        dc.SquareCB(scale=1.0, exponent=0.25),
        dc.SquareCB(scale=16.0, exponent=0.5),
        dc.SquareCB(scale=256.0, exponent=0.0),
    ),
    "FastCB": (
        dc.FastCB(scale=0.1, exponent=0.25),
        dc.FastCB(scale=10.0, exponent=0.5),
        dc.FastCB(scale=1000.0, exponent=0.5),
    ),
    "RegCB": tuple(dc.RegCB(width=width) for width in (0.0, 0.1, 1.0)),
    "AdaCB": (
        dc.AdaCB(scale=1.0, exponent=0.25, width=0.1),
        dc.AdaCB(scale=10.0, exponent=0.5, width=1.0),
        dc.AdaCB(scale=100.0, exponent=0.5, width=0.0),
    ),
    "LinUCB": tuple(dc.LinUCB(width=width) for width in (0.0, 0.25, 8.0)),
}

every_policy = [
    pytest.param(policy, id=f"{name}-{number}")
    for name, policies in POLICIES.items()
    for number, policy in enumerate(policies)
]
every_policy_stack = [pytest.param(policies, id=name) for name, policies in POLICIES.items()]

SHAPES = [("bandit", "general"), ("full", "general"), ("full", "one_label")]
"""Feedback and losses of a problem."""
FINITE = np.random.default_rng(7).normal(size=(6, ACTIONS, WIDTH))
"""The weights of six functions for FiniteClass."""


@dataclass(frozen=True)
class OracleCase:
    """An oracle with everything that its calibration depends on."""

    oracle: Any
    budget: dc.Budget
    feedback: str = "bandit"
    losses: str = "general"
    radii: bool = False

    @cached_property
    def calibrated(self) -> Any:
        return self.oracle.calibrate(
            dc.Problem(ACTIONS, WIDTH, self.feedback, self.losses, self.radii), self.budget
        )

    def plan(self) -> dc.Plan:
        """A plan that calibrates its oracle in just this way."""
        policy = dc.LinUCB() if self.radii else dc.SquareCB()
        kind = {"feedback": self.feedback, "losses": self.losses}
        return plan_of(policy, self.oracle, self.budget, **kind)


def plan_of(policy, oracle=None, budget=NONE, **changes):
    """A plan of the catalogue's size whose batches double."""
    basis = {"n_actions": ACTIONS, "features": FEATURES, "oracle": oracle or dc.Ridge()}
    growing = {"first_batch": 1, "growth": 2.0}
    return dc.Plan(policy=policy, budget=budget, **basis | growing | changes)


def _oracle_cases() -> dict[str, OracleCase]:
    forms = {  # oracle, the budgets that it can keep, whether it can release a Gram privately
        "Ridge-structured": (dc.Ridge(ridge=0.05), PRIVATE, True),
        "Ridge-paper": (dc.Ridge(ridge=0.05, mechanism="paper"), PRIVATE, True),
        "PooledRidge": (dc.PooledRidge(ridge=0.05), PRIVATE, True),
        "Logistic-gamma": (dc.Logistic(ridge=0.05, noise="gamma"), PURE, False),
        "Logistic-gaussian": (dc.Logistic(ridge=0.05, noise="gaussian"), PRIVATE, True),
        "Logistic-paper": (dc.Logistic(ridge=0.05, mechanism="paper"), PRIVATE, True),
        "FiniteClass": (dc.FiniteClass(FINITE), PURE, None),
    }
    cases = {}
    for name, (oracle, budget, gram) in forms.items():
        for level, chosen in (("none", NONE), ("private", budget)):
            cases[f"{name}-{level}"] = OracleCase(oracle, chosen)
            cases[f"{name}-{level}-full"] = OracleCase(oracle, chosen, "full")
            cases[f"{name}-{level}-labels"] = OracleCase(oracle, chosen, "full", "one_label")
            if gram or (gram is False and level == "none"):
                cases[f"{name}-{level}-radii"] = OracleCase(oracle, chosen, radii=True)
    return cases


ORACLES = _oracle_cases()
every_oracle = [pytest.param(case, id=name) for name, case in ORACLES.items()]


def contexts(rows: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng([1, seed]).normal(size=(rows, DIMENSION)) * 0.7


def features(rows: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return FEATURES.map(contexts(rows, seed))


SIGNALS: dict[str, tuple[Any, ...]] = {
    "no signal": (None,),
    "unclear": (0.0,),
    "between": (0.3, 0.8),
    "clear": (1.0,),
    "mixed": (0.0, 0.4, 1.0),
}
"""How clear contexts are: λ of one run after the other. A single run has the first."""


def signals_for(policy: Any) -> list[tuple[Any, ...]]:
    """The signals under which a policy may differ: all of them, or none where it reads none."""
    reads = isinstance(policy, dc.AdaptivePO)
    return list(SIGNALS.values()) if reads else [SIGNALS["no signal"]]


def releases(
    count: int,
    link: str = "identity",
    grams: str = "block",
    seed: int = 0,
    lead: Any = (),
    clear: Any = (None,),
) -> Released:
    """A made-up history of ``count`` releases with distinct predictions and noisy Grams.

    ``clear`` are the values of λ that releases publish, one run after the other.
    """
    rng = np.random.default_rng([2, seed])
    released = Released(ACTIONS)
    for number in range(1, count + 1):
        records = 2 ** (number - 1)
        weights = rng.normal(size=(*lead, ACTIONS, WIDTH))
        if link != "logistic":
            weights = 0.3 * weights + np.eye(WIDTH)[0]  # about 0.7: inside [0, 1] most of the time
        if grams == "dense":
            gram = _psd(rng, lead, 1, ACTIONS * WIDTH, records)[..., 0, :, :]
        else:
            gram = _psd(rng, lead, ACTIONS if grams == "block" else 1, WIDTH, records)
        kept = Gram(gram, dense=grams == "dense", step=1.0)
        made = None
        if clear[0] is not None:
            per_run = np.resize(clear, lead) if lead else np.array(clear[0])
            made = with_signal(rng, per_run, number, records)
        released = released.add(
            Release(number, records, Predictor(weights, link), kept, statistics=made)
        )
    return released


def changed(released: Released, weights: Any, gram: Any, signal: Any) -> Released:
    """The same history after these functions of weights, of Grams, and of signals."""
    items = []
    for item in released.items:
        predictor = replace(item.predictor, weights=weights(item.predictor.weights))
        kept, made = replace(item.gram, values=gram(item.gram)), item.statistics
        made = made and replace(made, signal=signal(made.signal))
        items.append(replace(item, predictor=predictor, gram=kept, statistics=made))
    return replace(released, items=tuple(items))


def predicting(tables: Any, first: int = 1, gram: Gram | None = None) -> Released:
    """Releases of batches that double; each predicts one of the tables (A,) at x = (1,)."""
    released = Released(len(tables[0]), Schedule(first))
    for number, losses in enumerate(tables, start=1):
        predictor = Predictor(np.array(losses, dtype=float)[:, None], "identity")
        released = released.add(Release(number, first << (number - 1), predictor, gram))
    return released


def with_signal(
    rng: np.random.Generator, clear: Any, number: int, records: int, actions: int = ACTIONS
) -> Statistics:
    """Statistics with this λ (...) in the signal; the predictor does not follow from them."""
    errors = rng.uniform(0.05, 0.5, size=(*clear.shape, actions)) / number
    return Statistics(
        np.zeros((*clear.shape, actions, WIDTH, WIDTH)),
        np.zeros((*clear.shape, actions, WIDTH)),
        records,
        1.0,
        signal=np.concatenate([clear[..., None], errors], axis=-1),
    )


def _psd(rng: np.random.Generator, lead: Any, blocks: int, size: int, records: int) -> Any:
    rows = rng.normal(size=(*lead, blocks, records, size)) / np.sqrt(size)
    noise = 0.1 * rng.normal(size=(*lead, blocks, size, size))
    return np.swapaxes(rows, -1, -2) @ rows + (noise + np.swapaxes(noise, -1, -2)) / 2


def batch(rows: int, feedback: str = "bandit", seed: int = 0, losses: str = "general") -> Batch:
    """Rows with losses in [0, 1] (hard ones half of the time), one action or all observed."""
    rng = np.random.default_rng([3, seed])
    values = rng.random((rows, ACTIONS))
    values = np.where(rng.random((rows, 1)) < 0.5, np.round(values), values)
    if losses == "one_label":
        values = (np.arange(ACTIONS) != rng.integers(ACTIONS, size=rows)[:, None]).astype(float)
    observed = np.ones((rows, ACTIONS), dtype=bool)
    if feedback == "bandit":
        observed = np.arange(ACTIONS) == rng.integers(ACTIONS, size=rows)[:, None]
    return Batch(features(rows, seed), values, observed)


def batch_for(case: OracleCase, rows: int, seed: int = 0) -> Batch:
    return batch(rows, case.feedback, seed, case.losses)


def stacked(batches: Any) -> Batch:
    """Batches of several seeds as one: (S, 1, n, …)."""
    names = ("features", "losses", "observed")
    return Batch(*(np.stack([getattr(each, name) for each in batches])[:, None] for name in names))
