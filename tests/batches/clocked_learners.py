"""Small learners without noise, whose batches of 2, 4, 8, … close by a clock of the test."""

import json

import numpy as np

import discreet as dc
from small_plans import small_plan

FREE = {"features": dc.UnitBall(1), "policy": dc.SquareCB(), "budget": dc.Budget.none()}
PLAN = small_plan(**FREE, first_batch=2, growth=2.0)


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


def watched(one, look):
    """What ``look`` sees of each batch that is fitted from now on."""
    seen, fit = [], one._store.fit

    def watching(batch, *rest):
        seen.append(look(batch))
        return fit(batch, *rest)

    one._store.fit = watching
    return seen


def altered(path, change):
    """Write a saved state again, after ``change(header, rows)``."""
    with np.load(path) as file:
        rows = dict(file)
    header = json.loads(rows.pop("header").tobytes())
    change(header, rows)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with open(path, "wb") as file:
        np.savez(file, header=text, **rows)
