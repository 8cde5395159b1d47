"""Small learners without noise, whose batches of 2, 4, 8, … close by a clock of the test."""

import numpy as np

import discreet as dc

PLAN = dc.Plan(
    n_actions=2,
    features=dc.UnitBall(1),
    policy=dc.SquareCB(),
    budget=dc.Budget.none(),
    first_batch=2,
    growth=2.0,
)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def learner(clock=None, plan=PLAN, **words):
    return dc.Learner(plan, clock=clock or Clock(), **words)


def decide(one, count):
    return one.decide(np.zeros((count, 1))).id


def records(one):
    return [item.records for item in one.released.items]
