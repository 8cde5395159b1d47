"""How much noise a person costs: k records in each of M batches, beside dividing ε and δ by M.

    python bench/users_noise.py [--epsilon 1] [--delta 1e-5] [--batches 1 5 10 20 50]
                                [--records 1 2 4] [--quick]

The noise on second moments of the default oracle, calibrated for a person as docs/privacy/users.md
proves it, and calibrated to (ε/M, δ/M) per release, which composition allows without any thought.
"""

from __future__ import annotations

import argparse

from discreet.oracles import PooledRidge, Problem
from discreet.privacy.budget import Budget, Participation

QUICK = [5, 10, 20]


def noise(budget: Budget, participation: Participation) -> float:
    """σ of second moments where one person takes part so often."""
    problem = Problem(n_actions=3, p=11, participation=participation)
    return PooledRidge().calibrate(problem, budget).gram


def divided(budget: Budget, batches: int) -> float:
    """σ where every release may spend the same part of ε and of δ; one record per batch."""
    return noise(Budget(budget.epsilon / batches, budget.delta / batches), Participation())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 5, 10, 20, 50])
    parser.add_argument("--records", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--quick", action="store_true", help="M = 5, 10, 20 and k = 1")
    args = parser.parse_args()
    if args.quick:
        args.batches, args.records = QUICK, [1]
    budget = Budget(args.epsilon, args.delta)
    print(f"{budget.text} for one person; σ of second moments, 3 actions, p = 11")
    print(f"{'M':>4} {'k':>3} {'σ':>8} {'(ε/M, δ/M)':>11} {'times less':>11}")
    for batches in args.batches:
        for records in args.records:
            now = noise(budget, Participation(batches, records))
            # For k > 1 the old rule keeps the first record of a batch and drops the others.
            old = divided(budget, batches) if records == 1 else None
            shown = ("–", "–") if old is None else (f"{old:.2f}", f"{old / now:.2f}")
            print(f"{batches:>4} {records:>3} {now:>8.2f} {shown[0]:>11} {shown[1]:>11}")


if __name__ == "__main__":
    main()
