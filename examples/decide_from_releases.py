"""Private rows stay with the learner; anyone can decide from the file of releases alone."""

import tempfile
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.data import load


def publish(path: Path) -> None:
    """The side that sees people: learn, and write what may be read by all."""
    data = load("linear", rows=3000)
    plan = dc.Plan(
        n_actions=data.n_actions,
        features=dc.UnitBall(data.dimension),
        budget=dc.Budget(epsilon=4.0, delta=1e-5),
        horizon=data.rows,
    )
    learner = dc.Learner(plan)
    start = 0
    for length in plan.schedule.lengths():
        rows = slice(start, start + length)
        decisions = learner.decide(data.contexts[rows])
        learner.observe(decisions.id, (decisions.action != data.labels[rows]).astype(float))
        start += length
    learner.released.save(path)


def use(path: Path) -> np.ndarray:
    """The side that sees releases: the digests are verified, then the policy is at work."""
    released = dc.Released.load(path)
    plan = dc.Plan.from_config(released.plan)
    return plan.policy.probabilities(released, plan.features.map([[1.0, 0.0, 0.0]]))


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "released.json"
    publish(file)
    print("action probabilities for the context (1, 0, 0):", use(file).round(3)[0])
