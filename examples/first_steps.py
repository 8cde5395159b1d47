"""Decide, observe, look at what was published and what it cost."""

import numpy as np

import discreet as dc
from discreet.data import load

data = load("fried", rows=1000)
features, budget = dc.UnitBall(data.dimension), dc.Budget(epsilon=1.0, delta=1e-5)
plan = dc.Plan(n_actions=data.n_actions, features=features, budget=budget)
learner = dc.Learner(plan)

# One person at a time …
for context, label in zip(data.contexts[:100], data.labels[:100], strict=True):
    decision = learner.decide(context)
    learner.observe(decision.id, loss=float(decision.action != label))

# … or many at once: they take slots in as many batches as they need, decided by the newest release.
decisions = learner.decide(data.contexts[100:])
learner.observe(decisions.id, np.not_equal(decisions.action, data.labels[100:]).astype(float))
print(f"{np.count_nonzero(decisions.stored)} of 900 decisions were stored")
print(learner.status())

spent = learner.ledger.spent()
print(f"{len(learner.released.items)} releases, ε = {spent.epsilon:.3f} at δ = {spent.delta:g}")
print(f"for one {spent.unit}, when neighbours {spent.relation}")
