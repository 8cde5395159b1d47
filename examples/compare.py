"""How much does privacy cost? The default plan, several ε, five seeds."""

import math

import numpy as np

import discreet as dc
from discreet.data import load

data = load("fried", rows=5000)
# Columns lie in [0, 1], which is public: scaled like this, no row is longer than 1.
contexts = (2 * data.contexts - 1) / math.sqrt(data.dimension)
for epsilon in (1.0, 2.0, 4.0, math.inf):
    plan = dc.Plan(
        n_actions=data.n_actions,
        features=dc.UnitBall(data.dimension),
        budget=dc.Budget(epsilon, delta=1e-5),
    )
    # Seeded noise has the scale of ε and protects nobody: right for experiments, and only there.
    losses = [dc.evaluate(plan, contexts, data.labels, seed=seed).loss for seed in range(5)]
    print(f"noise scale of ε = {epsilon:3g}: mean loss {np.mean(losses):.3f}")
