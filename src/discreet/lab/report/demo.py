"""The demo: one fixed setting for each algorithm, one private run, a figure and a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from discreet import __version__, policies
from discreet.client.pages import rendered
from discreet.data import Dataset
from discreet.features.unit_ball import UnitBall
from discreet.lab.campaign.presets import DOUBLING
from discreet.lab.report.figures import Drawing, known_levels, legend, line_style, rounds_axis
from discreet.lab.report.tables import with_error
from discreet.learner import Learner
from discreet.oracles import Logistic, Oracle, PooledRidge, Ridge
from discreet.plan.config import config_text, to_config
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget
from discreet.simulate import evaluate
from discreet.simulate.experiment import standard_error
from discreet.text import epsilon_text, guarantee_text
from discreet.types import Figure, JsonMapping, JsonObject

FORMAT = "discreet-demo/1"
EPSILONS = (1.0, 4.0, float("inf"))
NOTE = (
    "ε here is the noise scale of ε: the curves come from seeded noise, not private, because runs "
    "that can be repeated and compared need a seed. A private run follows below."
)
SETTINGS_NOTE = (
    "One setting for each algorithm, the same for every data set and every ε. Default is not "
    "tuned; the other settings were chosen once, on other seeds, and none for one ε. So do not "
    "read the table as a contest."
)


def demo_figure(results: JsonMapping) -> Drawing:
    """Draw a row for each data set, a column for each ε."""
    sets, epsilons = results["sets"], results["epsilons"]

    def draw(figure: Figure, ink: str) -> None:
        axes = figure.subplots(len(sets), len(epsilons), squeeze=False, sharex="row", sharey="row")
        panels = {
            (data["name"], epsilon): axes[row, column]
            for row, data in enumerate(sets)
            for column, epsilon in enumerate(epsilons)
        }
        for run in results["runs"]:
            axis, name = panels[run["data"], run["epsilon"]], run["algorithm"]
            axis.plot(run["rounds"], run["curve"], label=name, **line_style(name, ink))
        for row, data in zip(axes, sets, strict=True):
            row[0].set_ylabel(f"{data['name']}: mean loss so far")
            known = {"best fixed action": data["best_fixed"], "uniform": data["uniform"]}
            for axis in row:
                known_levels(axis, known, ink)
                rounds_axis(axis, ink)
        for axis, epsilon in zip(axes[0], epsilons, strict=True):
            axis.set_title(f"ε = {epsilon_text(float(epsilon))}")
        for axis in axes[-1]:
            axis.set_xlabel("rounds")
        legend(figure, axes[0, :1])

    return Drawing((3.4 * len(epsilons), 0.9 + 2.6 * len(sets)), draw)


def demo_page(results: JsonMapping) -> str:
    """Return the page of a demo's results, light and dark, readable on a phone."""
    runs = {(run["data"], run["algorithm"], run["epsilon"]): run for run in results["runs"]}
    # Supervised sees the loss of every action: it does not compete.
    bandits = [each["name"] for each in results["algorithms"] if each["feedback"] == "bandit"]
    cells = {}
    for (data, name, epsilon), run in runs.items():
        best = min(bandits, key=lambda each: float(runs[data, each, epsilon]["loss"]))
        error = math.nan if run["standard_error"] is None else run["standard_error"]
        cells[data, name, epsilon] = with_error(run["loss"], error, name == best)
    figure = demo_figure(results).inline()
    return rendered("discreet.lab.report", "demo.html", **results, cells=cells, figure=figure)


DELTA = 1e-5
FIRST_ROUND = 16
"""First round of a curve: earlier, a mean over few losses is only noise."""


def plan_of(algorithm: str, data: Dataset, epsilon: float, horizon: int | None = None) -> Plan:
    """Return the plan of one algorithm with its setting."""
    policy, oracle, others = ALGORITHMS[algorithm]
    return Plan(
        n_actions=data.n_actions,
        features=UnitBall(data.dimension),
        policy=policy,
        oracle=oracle,
        budget=Budget(epsilon, DELTA),
        horizon=horizon,
        **others,
    )


_RIDGE = Ridge(ridge=1e-4, noise_ridge=1.0)
_ALL_LOSSES = {"feedback": "full", "losses": "one_label", **DOUBLING}

# Found once by a small search on fried and digits, on other seeds than those of the demo, for
# the mean over ε ∈ {1, 4, ∞}. Only Default is what a plan chooses by itself, and was not searched.
ALGORITHMS: dict[str, tuple[policies.Policy, Oracle, JsonMapping]] = {
    "Default": (policies.AdaptivePO(), PooledRidge(), {}),
    "VanillaPO": (policies.VanillaPO(scale=2.0), _RIDGE, DOUBLING),
    "ReplayBonusPO": (policies.ReplayBonusPO(learning_rate=0.1, bonus=0.01), _RIDGE, DOUBLING),
    "SquareCB": (policies.SquareCB(scale=1.0, exponent=0.5), _RIDGE, DOUBLING),
    "FastCB": (policies.FastCB(scale=1.0, exponent=0.5), Logistic(ridge=1e-6), DOUBLING),
    "LinUCB": (policies.LinUCB(width=1 / 32), Ridge(ridge=1e-6, noise_ridge=1.0), DOUBLING),
    "RegCB": (policies.RegCB(width=1.0), _RIDGE, DOUBLING),
    "AdaCB": (policies.AdaCB(scale=1.0, exponent=0.5, width=3.0), _RIDGE, DOUBLING),
    "Supervised": (policies.Greedy(), _RIDGE, _ALL_LOSSES),
}
"""Policy, oracle and other parts of each algorithm, for all data and every ε."""


def play_set(data: Dataset, epsilons: Sequence[float], seeds: int) -> list[JsonObject]:
    """Play every algorithm at every ε; return mean curves and final losses over the seeds."""
    rounds = np.unique(np.geomspace(FIRST_ROUND, data.rows, 80).astype(int))
    runs = []
    for name, epsilon in product(ALGORITHMS, epsilons):
        plan = plan_of(name, data, epsilon)
        played = [evaluate(plan, data.contexts, data.labels, seed=seed) for seed in range(seeds)]
        losses = [each.loss for each in played]
        runs.append(
            {
                "data": data.name,
                "algorithm": name,
                "epsilon": plan.budget.epsilon,
                "loss": float(np.mean(losses)),
                "standard_error": standard_error(losses),
                "rounds": rounds.tolist(),
                "curve": np.mean([each.curve[rounds - 1] for each in played], axis=0).tolist(),
            }
        )
    return runs


def private_run(data: Dataset, path: Path) -> JsonObject:
    """Run a learner with secure noise at ε = 1; its releases are written to a public file."""
    learner = Learner(plan_of("Default", data, 1.0, data.rows))
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
            f"A private run of Default, with secret noise: {count} releases, mean loss {loss:.3f} "
            "(shown because the data are generated).\n"
            f"Its ledger: {guarantee_text(spent.epsilon, spent.delta)} for one {spent.unit}, when "
            f"neighbours {spent.relation}."
        ),
    }


def demo_document(sets: Sequence[Dataset], runs: Sequence[JsonObject], seeds: int) -> JsonObject:
    """Return the content of ``results.json``: data sets, algorithms and their runs."""
    return {
        "format": FORMAT,
        "version": __version__,
        "note": NOTE,
        "settings_note": SETTINGS_NOTE,
        "sets": [
            {
                "name": data.name,
                "rows": data.rows,
                "dimension": data.dimension,
                "n_actions": data.n_actions,
                "best_loss": data.best_loss,
                "best_fixed": data.best_fixed,
                "uniform": 1.0 - 1.0 / data.n_actions,
            }
            for data in sets
        ],
        "epsilons": list(EPSILONS),
        "seeds": seeds,
        "algorithms": [
            {
                "name": name,
                "feedback": others.get("feedback", "bandit"),
                "text": " with ".join(config_text(to_config(part)) for part in (policy, oracle)),
            }
            for name, (policy, oracle, others) in ALGORITHMS.items()
        ],
        "runs": list(runs),
    }
