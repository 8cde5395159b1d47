"""How often the intervals of ``lift`` are right: simulated deployments, many runs at once.

    python bench/lift.py [--runs 2000] [--epsilon 0.5 1 4] [--rounds 5000 50000]
                         [--share 0.1 0.5] [--seed 0]

The default schedule, δ = 1e-5, and the noise of the default plan with a control share. The policy
learns: its mean loss falls from that of the control, batch by batch. Losses are 0 or 1; or 0, ½ or
1; or 0 or 1 with a tenth of the slots void; or 0 or 1 and alike for all records of a person, who
has two in each of three batches. "once" is how often the 95 % interval for one look after the last
release holds; "ever wrong" is the share of runs in which the interval for any time is wrong after
at least one release. Widths are half-widths after the last release.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

import discreet as dc
from discreet.releases.lift_intervals import pooled, weights
from discreet.schedule import Schedule

KINDS = ("0/1", "0, ½, 1", "0/1, 10% void", "0/1, alike by person")
HEADER = ("losses", "ε", "control", "rounds", "once", "ever wrong", "± once", "± any time")
CONTROL, BEST = 0.5, 0.3
"""Mean losses of the control, and of a policy that has learnt everything."""
OFTEN = (3, 2)
"""Batches, and records in each, of a person."""


def means_of(lengths: np.ndarray) -> np.ndarray:
    """Mean losses (B, 2) of policy and control."""
    before = np.cumsum(lengths) - lengths
    learnt = before / (before + 2_000.0)
    return np.stack([CONTROL + (BEST - CONTROL) * learnt, np.full(len(lengths), CONTROL)], -1)


def told(kind: str, runs: int, slots: np.ndarray, means: np.ndarray, rng: np.random.Generator):
    """Sums of y − ½ and losses heard, (runs, B, 2) each."""
    shape = (runs, *slots.shape)
    heard = np.broadcast_to(slots, shape)
    if kind == "0, ½, 1":  # half of all losses are ½
        halves = rng.binomial(heard, 0.5)
        extreme = rng.binomial(heard - halves, np.clip(2 * means - 0.5, 0, 1))
        return extreme + halves / 2.0 - heard / 2.0, heard
    if kind == "0/1, 10% void":
        heard = rng.binomial(heard, 0.9)
    if kind != "0/1, alike by person":
        return rng.binomial(heard, means) - heard / 2.0, heard
    # Batches in threes have the same people: a part of a batch has half as many people as slots,
    # and all records of a person are 0 or 1 together.
    people = slots // OFTEN[1]
    first = np.arange(len(slots)) // OFTEN[0] * OFTEN[0]
    # People who come in the first of three batches, then those who join in a larger one.
    total = np.zeros(shape)
    for start in np.unique(first):
        known = np.zeros((runs, 2))
        before = np.zeros(2, dtype=int)
        for batch in range(start, min(start + OFTEN[0], len(slots))):
            joining = people[batch] - before
            known = known + rng.binomial(np.maximum(joining, 0), means[start], size=(runs, 2))
            before = np.maximum(people[batch], before)
            total[:, batch] = known * OFTEN[1]
    heard = np.broadcast_to(people * OFTEN[1], shape)
    return total - heard / 2.0, heard


def measured(kind: str, epsilon: float, share: float, rounds: int, runs: int, seed: int) -> list:
    """One row of the table."""
    people = kind == KINDS[-1]
    user = {"unit": "user", "batches_per_user": OFTEN[0], "records_per_batch": OFTEN[1]}
    plan = dc.Plan(
        n_actions=2,
        features=dc.UnitBall(5),
        budget=dc.Budget(epsilon, 1e-5),
        control=dc.Control(share),
        **(user if people else {}),
    )
    assert plan.loss_sums is not None
    sigma, often = plan.loss_sums.sigma, OFTEN if people else (1, 1)
    lengths = np.array(Schedule(plan.first_batch, rounds, plan.growth).lengths()[:-1])
    control = np.rint(lengths * share).astype(int)
    slots, means = np.stack([lengths - control, control], -1), means_of(lengths)
    if people:  # those of a person have one mean
        means = means[np.arange(len(means)) // OFTEN[0] * OFTEN[0]]
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    lost, heard = told(kind, runs, slots, means, rng)
    noise = sigma * rng.standard_normal((*lost.shape, 2)) * [1.0, np.sqrt(4 / 3)]
    sums = np.stack([lost, heard], -1) + noise
    variance = np.full((runs, len(lengths)), sigma**2)
    public = lengths[:, None] * np.array([1.0 - share, share])
    found = pooled(sums, variance, public, often, 0.95)
    weight = weights(variance[0], public, often[1])[:, None]
    true = np.cumsum(weight * means, axis=0) / np.cumsum(weight, axis=0)
    away = np.abs(found.difference - (true[:, 0] - true[:, 1]))
    once = (away[:, -1] <= found.fixed[:, -1]).mean()
    ever = (away > found.anytime).any(axis=-1).mean()
    widths = found.fixed[:, -1].mean(), found.anytime[:, -1].mean()
    return [kind, f"{epsilon:g}", f"{share:g}", f"{rounds:,}", f"{once:.1%}", f"{ever:.1%}"] + [
        f"{width:.3f}" for width in widths
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--rounds", type=int, nargs="+", default=[5_000, 50_000])
    parser.add_argument("--share", type=float, nargs="+", default=[0.1, 0.5])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
    for kind, epsilon, share, rounds in product(KINDS, args.epsilon, args.share, args.rounds):
        row = measured(kind, epsilon, share, rounds, args.runs, args.seed)
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
