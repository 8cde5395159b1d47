"""Coverage of the intervals of ``lift``: simulated deployments, many runs at once.

    python bench/lift.py [--runs 10000] [--only WORD] [--seed 0]

The noise of the default plan with a control share at δ = 1e-5, and the default schedule. Each cell
is a world: how many people answer in each part, what their losses are, whether they return. "once"
is how often the 95 % interval for one look after the last release holds; "ever wrong" is the share
of runs in which the interval for any time is wrong after at least one release, both with their
Monte-Carlo standard errors. An interval that is not available yet is not wrong; "available" is the
share of runs with one after the last release, and "once, of available" how often the one for one
look holds in those runs, of which there must be 100. Widths are medians of half-widths there, and
"–" where most runs have none. Exits with status 1 if "once" is below 93 % or "ever wrong" above 5 %
in a cell.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import discreet as dc
from discreet.design.schedule import Schedule
from discreet.privacy.budget import Participation
from discreet.releases.lift_intervals import DIFFERENCE, PooledSums, batch_factors

HEADER = ("world", "ε", "control", "rounds", "answers", "once", "ever wrong", "available")
HEADER += ("once, of available", "± once", "± any time")
LEAST, MOST, FEWEST = 0.93, 0.05, 100
RATES = (1.0, 0.2, 0.1, 0.05, 0.02)
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class World:
    """``means`` and ``answers`` (B, 2) are of policy and control, from shares of the run (B,)."""

    name: str
    means: Callable[[Array], Array]
    answers: tuple[float, float] | Callable[[Array], Array] = (1.0, 1.0)
    epsilon: float = 1.0
    share: float = 0.1
    rounds: int = 50_000
    losses: str = "0/1"
    often: tuple[int, int] | None = None
    """Batches and records of a person; None for the unit "decision"."""
    returning: str = ""
    """Losses of people who return: "equal", or "likely" for people who differ in their means."""
    first: int | None = None
    longest: int | None = None
    """Slots of the first batch and of the longest one; None for the default."""


def flat(policy: float, control: float) -> Callable[[Array], Array]:
    return lambda at: np.broadcast_to([policy, control], (len(at), 2))


def learning(at: Array) -> Array:
    """The policy's mean loss falls from that of the control, 0.5, toward 0.3."""
    return np.stack([0.5 - 0.2 * at / (at + 0.04), np.full_like(at, 0.5)], -1)


def falling(at: Array) -> Array:
    """Equal means in each batch, which fall from 0.9 to 0.1."""
    return np.repeat(0.9 - 0.8 * _steps(at), 2, axis=-1)


def crossing(at: Array) -> Array:
    """From 90 % to 50 % of the policy's part answer, and from 50 % to 90 % of the control's."""
    steps = _steps(at)
    return np.concatenate([0.9 - 0.4 * steps, 0.5 + 0.4 * steps], -1)


def _steps(at: Array) -> Array:
    return np.linspace(0.0, 1.0, len(at))[:, None]


def worlds() -> Iterator[World]:
    """All cells of the table."""
    for epsilon, share, rounds, rate in product(
        (1.0, 4.0, math.inf), (0.1, 0.5), (5_000, 50_000), RATES
    ):
        yield World("learning", learning, (rate, rate), epsilon, share, rounds)
    for epsilon, share, answers in product(
        (1.0, 4.0, math.inf),
        (0.1, 0.5),
        ((0.1, 0.03), (0.03, 0.1), (0.2, 0.05), (1.0, 0.2), (0.02, 0.2)),
    ):
        yield World("equal, 0.1", flat(0.1, 0.1), answers, epsilon, share)
    for epsilon, share in product((1.0, 4.0, math.inf), (0.1, 0.5)):
        yield World("−0.2 apart", flat(0.3, 0.5), (0.05, 0.05), epsilon, share)
        yield World("falling, equal", falling, crossing, epsilon, share)
        yield World("falling, equal, often", falling, crossing, epsilon, share, longest=1_000)
    for epsilon, rate, answer in product((0.5, 1.0, 4.0, math.inf), (0.01, 0.002), RATES):
        means = flat(rate, 1.5 * rate)
        yield World(f"rates {rate:g}, {1.5 * rate:g}", means, (answer, answer), epsilon, 0.5)
        yield World(f"rates {rate:g}, {rate:g}", flat(rate, rate), (answer, answer), epsilon)
    for epsilon, share, answer in product((1.0, 4.0, math.inf), (0.1, 0.5), (1.0, 0.05)):
        means = flat(0.98, 0.985)
        world = World("heavy-tailed", means, (answer, answer), epsilon, share)
        yield replace(world, losses="heavy")
    for epsilon, share, returning, (batches, records) in product(
        (1.0, 4.0), (0.1, 0.5), ("equal", "likely"), ((3, 2), (12, 1), (1, 4))
    ):
        name = f"people, {returning}, M={batches}, k={records}"
        often = (batches, records)
        yield World(name, flat(0.3, 0.35), (1, 1), epsilon, share, often=often, returning=returning)
    for epsilon, returning in product((4.0, 8.0), ("equal", "likely")):
        name = f"e-mails, {returning}"
        campaign = World(name, flat(0.759, 0.8), (1, 1), epsilon, 0.2, 72_000)
        campaign = replace(campaign, often=(12, 1), returning=returning)
        yield campaign
        yield replace(campaign, name=f"{name}, 12 × 6,000", first=6_000, longest=6_000)


def violated() -> Iterator[World]:
    """Worlds that break an assumption: people return, and the unit is a decision; or the losses of
    those who return have twelve times the variance of those of others."""
    for epsilon, returning, batches in product((1.0, 4.0), ("equal", "likely"), (3, 12)):
        name = f"unit=decision, {returning}, each in {batches} batches"
        yield World(name, flat(0.3, 0.35), (1, 1), epsilon, 0.5, returning=f"{returning} {batches}")
    for epsilon, batches in product((1.0, 4.0), (3, 12)):
        world = World(f"people, equal, who return vary more, M={batches}", flat(0.3, 0.3), (1, 1))
        world = replace(world, epsilon=epsilon, share=0.5, often=(batches, 1), returning="unlike")
        yield world


def sums(world: World, runs: int, slots: Array, rng: np.random.Generator) -> tuple[Array, ...]:
    """Sums of y and losses observed, (runs, B, 2) each, and the mean loss of each batch (B, 2)."""
    ends = np.cumsum(slots.sum(-1))
    at = (ends - slots.sum(-1)) / ends[-1]
    means, shape = world.means(at), (runs, *slots.shape)
    answers = world.answers(at) if callable(world.answers) else np.asarray(world.answers)
    if world.returning:
        return *_people(world, runs, slots, means, rng), means
    counts = rng.binomial(slots, np.broadcast_to(answers, slots.shape), size=shape)
    if world.losses == "0/1":
        return rng.binomial(counts, means), counts, means
    # A reward is paid to one in twenty: Pareto with tail index 1.5, in a range of 50 medians.
    paid = rng.binomial(counts, 0.05)
    rewards = np.minimum((1.0 - rng.random(int(paid.sum()))) ** (-1 / 1.5), 50.0) / 50.0
    total = np.add.reduceat(np.append(rewards, 0.0), np.cumsum(paid.ravel()) - paid.ravel())
    total = np.where(paid > 0, total.reshape(shape), 0.0)
    mean = 0.05 * (3.0 - 2.0 * 50.0**-0.5) / 50.0  # E min(X, c) = 3 − 2/√c at tail index 3/2
    return counts - total, counts, np.full_like(means, 1.0 - mean)


def _people(
    world: World, runs: int, slots: Array, means: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Batches in groups, counted from the last one, share their people; each has k records.

    The people of a smaller batch are among those of a larger one, the most that batches can have
    in common. Losses of a person are equal; or half of the people have a mean loss that is higher,
    the others one that is lower, by nine tenths of what [0, 1] allows ("likely"); or they are equal
    and of mean ½ for those who return, and 0.02 for others ("unlike").
    """
    kind, _, alone = world.returning.partition(" ")
    batches, records = world.often or (int(alone), 1)
    people = slots // records
    group = (len(slots) - 1 - np.arange(len(slots))) // batches
    total = np.zeros((runs, *slots.shape))
    for each in np.unique(group):
        inside = np.flatnonzero(group == each)
        for part in (0, 1):
            sizes, where = np.unique(people[inside, part], return_inverse=True)
            joining = np.diff(sizes, prepend=0)
            mean = means[inside[0], part]
            share: Any = 0.5 if kind == "likely" else mean
            if kind == "unlike":  # who comes once has less variance than who returns
                share = np.where(np.arange(len(sizes)) < len(sizes) - 1, 0.5, 0.02)
            likes = np.cumsum(rng.binomial(joining, share, size=(runs, len(sizes))), -1)[:, where]
            if kind != "likely":
                total[:, inside, part] = records * likes
            else:
                apart = 0.9 * min(mean, 1.0 - mean)
                rest = people[inside, part] - likes
                total[:, inside, part] = rng.binomial(records * likes, mean + apart)
                total[:, inside, part] += rng.binomial(records * rest, mean - apart)
    return total, np.broadcast_to(people * records, total.shape)


def measured(world: World, runs: int, seed: int) -> tuple[list[str], bool]:
    """One row of the table, and whether it keeps the promise."""
    user = {}
    if world.often:
        batches, records = world.often
        user = {"unit": "user", "batches_per_user": batches, "records_per_batch": records}
    private = math.isfinite(world.epsilon)
    sizes = {"first_batch": world.first, "longest_batch": world.longest}
    plan = dc.Plan(
        n_actions=2,
        features=dc.UnitBall(5),
        budget=dc.Budget(world.epsilon, 1e-5) if private else dc.Budget.none(),
        control=dc.Control(world.share),
        **user,
        **{name: size for name, size in sizes.items() if size},
    )
    assert plan.loss_sums is not None
    sigma = plan.loss_sums.sigma
    schedule = Schedule(plan.first_batch, world.rounds, plan.growth, plan.longest_batch)
    lengths = np.array(schedule.lengths())
    lengths = lengths[: len(lengths) - (lengths[-1] < lengths[-2])]  # all that are full
    control = np.rint(lengths * world.share).astype(int)
    slots = np.stack([lengths - control, control], -1)
    rng = np.random.default_rng([seed, *world.name.encode()])
    lost, counts, means = sums(world, runs, slots, rng)
    noise = sigma * rng.standard_normal((*lost.shape, 2)) * [1.0, math.sqrt(4 / 3)]
    told = np.stack([lost - counts / 2.0, counts], -1) + noise
    variance = np.full((runs, len(lengths)), sigma**2)
    public = lengths[:, None] * np.array([1.0 - world.share, world.share])
    often = Participation(*(world.often or (1, 1)))
    found, alpha = PooledSums(told, variance, public, often), 0.05
    fixed, anytime = found.fixed(DIFFERENCE, alpha), found.anytime(DIFFERENCE, alpha)
    weight = batch_factors(told, variance, public, often.records) * counts.prod(-1)
    total = np.cumsum(weight, axis=-1)
    true = np.cumsum(weight * (means[:, 0] - means[:, 1]), axis=-1) / np.where(total, total, 1.0)
    finite = np.isfinite(anytime)
    away = np.where(finite, np.abs(found.excess @ DIFFERENCE - true), 0.0)
    once = (away[:, -1] <= fixed[:, -1]).mean()
    ever = (away > anytime).any(axis=-1).mean()
    answers = world.answers
    shown = "90→50, 50→90 %" if callable(answers) else f"{answers[0]:.0%}, {answers[1]:.0%}"
    row = [world.name, f"{world.epsilon:g}", f"{world.share:g}", f"{world.rounds:,}", shown]
    number = int(finite[:, -1].sum())
    alone = (away[:, -1] <= found.fixed[:, -1])[finite[:, -1]].mean() if number >= FEWEST else 0.0
    row += [_share(once, runs), _share(ever, runs), f"{number / runs:.0%}"]
    row += [_share(alone, number) if number >= FEWEST else "–"]
    row += [_wide(found.fixed[:, -1]), _wide(found.anytime[:, -1])]
    return row, bool(once >= LEAST and ever <= MOST)


def _share(value: float, runs: int) -> str:
    return f"{100 * value:.1f} ± {100 * math.sqrt(value * (1 - value) / runs):.1f} %"


def _wide(widths: Array) -> str:
    middle = float(np.median(widths))
    return f"{middle:.4f}" if math.isfinite(middle) else "–"


def table(cells: Iterator[World], only: str, runs: int, seed: int) -> bool:
    """Print the rows whose world has ``only`` in its name; whether all keep the promise."""
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
    kept = True
    for world in cells:
        if only in world.name:
            row, good = measured(world, runs, seed)
            kept &= good
            print(f"| {' | '.join(row)} |", flush=True)
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--only", default="", metavar="WORD", help="worlds with this in their name")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    start = time.perf_counter()
    kept = table(worlds(), args.only, args.runs, args.seed)
    print("\nWorlds that break an assumption:\n")
    table(violated(), args.only, args.runs, args.seed)
    print(f"\n{'all' if kept else 'NOT all'} cells of the first table keep the promise; ", end="")
    print(f"{args.runs:,} runs each, {time.perf_counter() - start:.0f} s")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
