"""Flags for expected rewards, and the sample sizes that follow from them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace

from discreet.cli.answer import table
from discreet.design.outcome import UNIT_LOSS, Reward
from discreet.errors import InvalidInput
from discreet.plan.noise_forecast import SampleSizes, sample_sizes
from discreet.plan.plan import Plan
from discreet.text import about, epsilon_text
from discreet.types import JsonObject


def reward_flags(parser: argparse.ArgumentParser) -> None:
    """Add flags for the mean reward, its spread, its range, and the difference to detect."""
    flag = parser.add_argument
    mean = "mean reward that you expect: also show how many decisions tell actions apart"
    flag("--reward-mean", type=float, metavar="M", help=mean)
    spread = "standard deviation of a reward between decisions (default: that of clicks)"
    flag("--reward-spread", type=float, metavar="S", help=spread)
    ends = "declared range of rewards (default: that of the experiment file, or 0 1)"
    flag("--reward-range", type=float, nargs=2, metavar=("LOW", "HIGH"), help=ends)
    difference = "difference between two actions (default: a tenth of the mean)"
    flag("--difference", type=float, metavar="D", help=difference)


def with_rewards(plan: Plan, args: argparse.Namespace) -> Plan:
    """Return the plan with the range of rewards that the flags name, if they name rewards."""
    if args.reward_mean is None:
        others = ("reward_spread", "reward_range", "difference")
        given = [name for name in others if getattr(args, name) is not None]
        if given:
            raise InvalidInput(
                f"reward_mean must be given where {given[0]} is; got none. Add --reward-mean M."
            )
        return plan
    if args.reward_range is not None:
        return replace(plan, outcome=Reward(*args.reward_range))
    if plan.outcome == UNIT_LOSS:
        return replace(plan, outcome=Reward(0.0, 1.0))
    if not isinstance(plan.outcome, Reward):
        raise InvalidInput(
            f"outcome must be a Reward where reward_mean is given; got {plan.outcome!r}. "
            "Add --reward-range LOW HIGH, or leave --reward-mean out."
        )
    return plan


def expected_sizes(
    plan: Plan, args: argparse.Namespace, epsilons: Iterable[float]
) -> SampleSizes | None:
    """Return the sample sizes that the flags ask for; None without a mean."""
    if args.reward_mean is None:
        return None
    numbers = (args.reward_mean, args.reward_spread, args.difference)
    return sample_sizes(plan, *numbers, epsilons=epsilons)


def reward_lines(rewards: JsonObject | None) -> list[str]:
    """Return a table with a line per ε, and the numbers that it follows from."""
    if rewards is None:
        return []
    rows = [
        [
            epsilon_text(size["epsilon"]),
            *("–" if size[name] is None else about(size[name]) for name in ("means", "personal")),
        ]
        for size in rewards["sample_sizes"]
    ]
    low, high = rewards["range"]
    return [
        f"Decisions until a difference of {rewards['difference']:.4g} between two actions can be "
        "told",
        f"(rewards in [{low:g}, {high:g}] with mean {rewards['mean']:.4g} and spread "
        f"{rewards['spread']:.4g}; level 5 %, power 80 %):",
        "",
        *table(["ε", "means of actions", "personal predictions"], rows),
        "",
    ]
