"""Audit a mechanism that is not ours: counts of answers by randomised response."""

import numpy as np

import discreet as dc
from discreet.audit import attack

rng = np.random.default_rng()


def randomised_response(answers, lies):
    """Each person's answer, turned around with probability ``lies``: ε = log((1 − lies)/lies)."""
    return np.where(rng.random(len(answers)) < lies, 1 - answers, answers).sum()


budget = dc.Budget(1.0)
batch, neighbour = np.array([0, 1, 0, 0]), np.array([1, 1, 0, 0])
for lies in (0.27, 0.10):  # log(0.73/0.27) = 0.99, log(0.9/0.1) = 2.2
    found = attack(
        lambda answers, q=lies: randomised_response(answers, q),
        batch,
        neighbour,
        budget,
        trials=4000,
    )
    print(f"lies {lies:.0%}: {found.verdict}")
