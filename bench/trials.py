"""Randomised trials, replayed: a private policy that was learnt from 60 % of a trial, on the rest.

Beside it is the best fixed action, with off-policy intervals.

    python bench/trials.py --actg175 ACTG175.csv --star STAR.csv --randhie RandHIE.csv
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import discreet as dc
from discreet.campaign.presets import budget_of
from discreet.data.randomised_trials import TRIALS, randomised_log
from discreet.privacy.noise import SeededNoise
from discreet.simulate.off_policy import Logs, evaluate_offline

LEVELS = (1.0, 4.0, 8.0, math.inf)
SHARE = 0.6
"""Of the rows, to learn from."""


def replayed(log, epsilon: float, seed: int) -> tuple[float, float, float, float]:
    """DR loss of the learnt policy less that of the learning half's best action, and both."""
    order = np.random.default_rng(seed).permutation(len(log.actions))
    cut = int(SHARE * len(order))
    first, rest = order[:cut], order[cut:]
    plan = dc.Plan(
        n_actions=log.n_actions,
        features=dc.UnitBall(log.contexts.shape[1]),
        budget=budget_of(epsilon),
        imported=cut,
    )
    learner = dc.Learner(plan, noise=SeededNoise(seed))
    learner.import_log(log.contexts[first], log.actions[first], log.losses[first])
    rows = plan.features.map(log.contexts[rest])
    logs = Logs(rows, log.actions[rest], log.losses[rest], log.propensities[rest])
    learnt = evaluate_offline(logs, dc.Greedy(), released=learner.released).dr
    means = [log.losses[first][log.actions[first] == a].mean() for a in range(log.n_actions)]
    fixed = np.eye(log.n_actions)[int(np.argmin(means))]
    best = evaluate_offline(logs, lambda x: np.tile(fixed, (len(x), 1))).dr
    return learnt.value, best.value, learnt.standard_error, best.standard_error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in TRIALS:
        parser.add_argument(f"--{name}", metavar="FILE.csv")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    for name in TRIALS:
        path = getattr(options, name)
        if path is None:
            continue
        log = randomised_log(name, path)
        means = log.action_losses().round(3).tolist()
        uniform = float(np.mean(log.action_losses()))
        print(f"{name}: {len(log.actions):,} rows, losses by action {means}, uniform {uniform:.3f}")
        for epsilon in LEVELS:
            found = np.array([replayed(log, epsilon, seed) for seed in range(options.seeds)])
            learnt, best, error, _ = found.mean(0)
            apart = found[:, 0] - found[:, 1]
            spread = apart.std(ddof=1) / math.sqrt(len(apart))
            print(
                f"  ε = {epsilon:<4g} learnt {learnt:.4f} (± {1.96 * error:.4f} of one split), "
                f"best fixed {best:.4f}, difference {apart.mean():+.4f} ± {1.96 * spread:.4f}"
            )


if __name__ == "__main__":
    main()
