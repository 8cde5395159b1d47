"""What the demo plays: one fixed setting for each algorithm, and one private run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from discreet.cli.answer import described
from discreet.cli.run_command import standard_error
from discreet.config import to_config
from discreet.data import Dataset
from discreet.features.unit_ball import UnitBall
from discreet.formatting import guarantee_text
from discreet.lab.campaign.presets import DOUBLING
from discreet.learner import Learner
from discreet.oracles import Logistic, Oracle, PooledRidge, Ridge
from discreet.plan import Plan
from discreet.policies import (
    AdaCB,
    AdaptivePO,
    FastCB,
    Greedy,
    LinUCB,
    Policy,
    RegCB,
    ReplayBonusPO,
    SquareCB,
    VanillaPO,
)
from discreet.privacy.budget import Budget
from discreet.simulate import evaluate

DELTA = 1e-5
FIRST_ROUND = 16
"""Curves begin here: before, a mean over a handful of losses says nothing."""


@dataclass(frozen=True)
class Setting:
    """One algorithm with its setting, for all data and every ε."""

    policy: Policy
    oracle: Oracle
    feedback: str = "bandit"
    losses: str = "general"
    batches: Mapping[str, Any] = field(default_factory=lambda: DOUBLING)

    def plan(self, data: Dataset, epsilon: float, horizon: int | None = None) -> Plan:
        return Plan(
            n_actions=data.n_actions,
            features=UnitBall(data.dimension),
            policy=self.policy,
            oracle=self.oracle,
            budget=Budget(epsilon, DELTA),
            feedback=self.feedback,
            losses=self.losses,
            horizon=horizon,
            **self.batches,
        )

    @property
    def text(self) -> str:
        return f"{described(to_config(self.policy))} with {described(to_config(self.oracle))}"


_RIDGE = Ridge(ridge=1e-4, noise_ridge=1.0)

# Found once by a small search on fried and digits, on other seeds than those of the demo, for
# the mean over ε ∈ {1, 4, ∞}. Only Default is what a plan chooses by itself, and was not searched.
ALGORITHMS = {
    "Default": Setting(AdaptivePO(), PooledRidge(), batches={}),
    "VanillaPO": Setting(VanillaPO(scale=2.0), _RIDGE),
    "ReplayBonusPO": Setting(ReplayBonusPO(learning_rate=0.1, bonus=0.01), _RIDGE),
    "SquareCB": Setting(SquareCB(scale=1.0, exponent=0.5), _RIDGE),
    "FastCB": Setting(FastCB(scale=1.0, exponent=0.5), Logistic(ridge=1e-6)),
    "LinUCB": Setting(LinUCB(width=1 / 32), Ridge(ridge=1e-6, noise_ridge=1.0)),
    "RegCB": Setting(RegCB(width=1.0), _RIDGE),
    "AdaCB": Setting(AdaCB(scale=1.0, exponent=0.5, width=3.0), _RIDGE),
    "Supervised": Setting(Greedy(), _RIDGE, feedback="full", losses="one_label"),
}


def play_set(data: Dataset, epsilons: Iterable[float], seeds: int) -> list[dict[str, Any]]:
    """Every algorithm at every ε: mean curve and final loss over the seeds."""
    rounds = np.unique(np.geomspace(FIRST_ROUND, data.rows, 80).astype(int))
    return [
        _played(name, setting.plan(data, epsilon), data, range(seeds), rounds)
        for name, setting in ALGORITHMS.items()
        for epsilon in epsilons
    ]


def _played(name: str, plan: Plan, data: Dataset, seeds: range, rounds: Any) -> dict[str, Any]:
    played = [evaluate(plan, data.contexts, data.labels, seed=seed) for seed in seeds]
    losses = [each.loss for each in played]
    return {
        "data": data.name,
        "algorithm": name,
        "epsilon": plan.budget.epsilon,
        "loss": float(np.mean(losses)),
        "standard_error": standard_error(losses),
        "rounds": rounds.tolist(),
        "curve": np.mean([each.curve[rounds - 1] for each in played], axis=0).tolist(),
    }


def private_run(data: Dataset, path: Path) -> dict[str, Any]:
    """A learner with secure noise at ε = 1; its releases go to a file that anyone may read."""
    learner = Learner(ALGORITHMS["Default"].plan(data, 1.0, horizon=data.rows))
    losses, start = [], 0
    for length in learner.plan.schedule.lengths():
        rows = slice(start, start + length)
        decisions = learner.decide(data.contexts[rows])
        losses.append((decisions.action != data.labels[rows]).astype(float))
        learner.observe(decisions.id, losses[-1])
        start += length
    learner.released.save(path)
    spent, count = learner.ledger.spent(), len(learner.released.items)
    loss = float(np.concatenate(losses).mean())
    return {
        "loss": loss,
        "releases": count,
        "epsilon": spent.epsilon,
        "delta": spent.delta,
        "unit": spent.unit,
        "relation": spent.relation,
        "assumptions": list(spent.assumptions),
        "statement": (
            f"A private run (the default: secret noise): {count} releases, mean loss "
            f"{loss:.3f}, which may be told because the data are generated.\n"
            f"Its ledger: {guarantee_text(spent.epsilon, spent.delta)} for one {spent.unit}, when "
            f"neighbours {spent.relation}."
        ),
    }
