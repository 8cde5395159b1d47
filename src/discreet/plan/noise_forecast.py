"""Forecast of the noise of a plan's predictions, from public numbers alone.

The noise of a predicted loss is compared with the spread of losses: their standard deviation
between decisions. What it allows was measured on 111 public sets. How many decisions a difference
between actions needs follows from the noise, the spread and the number of weights.
[docs/choosing-epsilon.md, "Before there are any data"; docs/clicks-and-money.md]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from discreet.design.outcome import Outcome
from discreet.errors import InvalidInput
from discreet.oracles.mechanisms.geometry import constant_share
from discreet.oracles.mechanisms.pooled_statistics import PooledStatistics
from discreet.plan.plan import Plan
from discreet.privacy.budget import Budget
from discreet.privacy.sensitivities import centre
from discreet.releases.statistics import share
from discreet.text import about, advise
from discreet.validate import instance, positive

LARGEST_SPREAD = 0.5
"""Standard deviation of losses that are 0 and 1 equally often; no losses in [0, 1] have more."""
HELPFUL = 1.0
"""Below this noise, in units of the spread, the default was ahead of the best fixed action on half
of the public sets. Their losses are 0 or 1, with a spread near ½."""
HOPELESS = 1.5
"""Above this noise, in units of the spread, it lost more than the best fixed action on average."""
EPSILONS = (1.0, 2.0, 4.0, 8.0, math.inf)
DELTA = 1e-5
STANDARD_ERRORS = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
"""A difference of so many standard errors is found in 80 % of all runs, at a level of 5 %."""
MOST_BATCHES = 2_000
"""Batches after which the search for a sample size ends: eight billion decisions by default."""


def prediction_noise(plan: Plan, batches: int) -> list[float] | None:
    """The noise of a predicted loss after each batch; None where a plan's oracle cannot say."""
    pooling, schedule = plan.pooling, plan.schedule
    if pooling is None or not plan.budget.private:
        return None
    return pooling.prediction_noise(
        [schedule.length(batch) for batch in range(1, batches + 1) if schedule.fitted(batch)]
    )


def too_noisy(plan: Plan, spread: float | None = None) -> str | None:
    """A sentence where the noise is likely to outweigh what can be learnt until the horizon.

    ``spread`` is the standard deviation of losses in [0, 1], by default the largest possible.
    """
    if plan.horizon is None:
        return None
    noise, outcome = prediction_noise(plan, len(plan.schedule.lengths())), plan.outcome
    if noise is None or (noise and noise[-1] <= HOPELESS * (spread or LARGEST_SPREAD)):
        return None
    at_end = "nothing is released in the end"
    if noise:
        error = outcome.error_of(noise[-1])
        at_end = f"a predicted {outcome.word} has noise of ±{error:.2g} in the end"
        if spread:
            at_end += f", and {outcome.plural} a spread of {outcome.error_of(spread):.2g}"
    return (
        f"{plan.budget.text} is unlikely to beat the best fixed action within {plan.horizon:,} "
        f"rounds: {at_end}. Use a larger ε, fewer actions or columns, or more rounds."
    )


def warn_if_too_noisy(plan: Plan, spread: float | None = None, stacklevel: int = 4) -> None:
    """Issue an ``Advice`` if the plan is too noisy, or its δ too large for its horizon."""
    delta, horizon = plan.budget.delta, plan.horizon
    if horizon is not None and delta * horizon >= 1:
        advise(
            "large-delta",
            f"δ = {delta:g} is at least one over the horizon of {horizon:,} decisions, which would "
            f"allow to publish the record of a random person. Choose at most {0.01 / horizon:.0e}.",
            stacklevel,
        )
    words = too_noisy(plan, spread)
    if words is not None:
        advise("too-much-noise", words, stacklevel)


class SampleSize(NamedTuple):
    """Decisions at one ε until a difference between two actions can be detected, or None.

    ``means`` compares predictions of the mean of each action, as an A/B test compares means.
    ``personal`` compares predictions for one context, from a linear model with p features. None
    stands for more than 2,000 batches, and for the means of a ``Catalogue``, which has none.
    """

    epsilon: float
    means: int | None
    personal: int | None


@dataclass(frozen=True)
class SampleSizes:
    """Sample sizes at several ε, with the numbers that they follow from.

    ``mean``, ``spread`` and ``difference`` have the units of the plan's outcome; ``table`` has a
    ``SampleSize`` per ε, the smallest first.

    >>> from discreet import Reward, UnitBall
    >>> plan = Plan(n_actions=2, features=UnitBall(4), budget=Budget.none(), outcome=Reward(0, 8))
    >>> found = sample_sizes(plan, mean=4, difference=1)
    >>> found.spread, found.table[-1].epsilon
    (4.0, inf)
    """

    mean: float
    spread: float
    difference: float
    table: tuple[SampleSize, ...]

    def at(self, epsilon: float) -> SampleSize:
        """Return the line of one ε."""
        return next(size for size in self.table if size.epsilon == epsilon)


def sample_sizes(
    plan: Plan,
    mean: float,
    spread: float | None = None,
    difference: float | None = None,
    *,
    epsilons: Iterable[float] = EPSILONS,
) -> SampleSizes:
    """Return how many decisions tell a difference between two actions, at several ε.

    A difference is detected when it is 2.8 of its standard errors: a test at the level of 5 % then
    finds it in 80 % of all runs, as planners of A/B tests ask for. The squared standard error of a
    prediction is spread²·A·p/n, from chance, plus the squared privacy noise: that of responses,
    and that of second moments times the weights, which are large where the mean is far from the
    middle of the range. The geometry gives the constant feature a larger share of each row there.
    The mean of an action is predicted from the constant feature alone, with p = 1 for chance.
    Actions are tried equally often, as in the beginning of an experiment, and rows are as round as
    the geometry makes them: the numbers are estimates.

    Args:
        plan: Actions, features, schedule, outcome and δ; its ε and horizon are set aside.
        mean: The mean reward (or loss) that you expect.
        spread: Standard deviation of a reward between decisions; by default that of rewards which
            are at one end of the range or the other, as clicks are.
        difference: The smallest difference to detect; by default a tenth of the mean.
        epsilons: The ε to plan for.

    Returns:
        ``SampleSizes``, whose ``table`` has a line per ε.

    Raises:
        InvalidInput: Numbers that the declared range does not allow, or an oracle that cannot say.

    >>> from discreet import Reward, UnitBall
    >>> plan = Plan(n_actions=2, features=UnitBall(10), budget=Budget.none(), outcome=Reward(0, 1))
    >>> sample_sizes(plan, mean=0.1, epsilons=[math.inf]).table[0].means
    28256
    """
    instance("plan", plan, (Plan,), "Make a Plan; that of a learner is learner.plan.")
    mean, spread, difference = _checked(plan.outcome, mean, spread, difference)
    width = plan.outcome.high - plan.outcome.low
    levels = sorted({float(Budget(epsilon).epsilon) for epsilon in epsilons})
    offset = plan.outcome.loss_of(mean) - centre(plan.losses, plan.n_actions)
    table = [_sizes(plan, each, offset, spread / width, difference / width) for each in levels]
    return SampleSizes(mean, spread, difference, tuple(table))


def too_few(plan: Plan, sizes: SampleSizes) -> str | None:
    """Return a sentence where the horizon ends before the difference can be detected."""
    means, personal = sizes.at(plan.budget.epsilon)[1:]
    needed = personal if plan.catalogue is not None else means
    if plan.horizon is None or (needed is not None and needed <= plan.horizon):
        return None
    count = "more than can be planned" if needed is None else f"about {about(needed)}"
    return (
        f"{plan.horizon:,} rounds are too few to tell a difference of {sizes.difference:.4g} "
        f"between two actions: {plan.budget.text} needs {count}. Expect more people, look for a "
        "larger difference, or use a larger ε."
    )


def _checked(
    outcome: Outcome, mean: float, spread: float | None, difference: float | None
) -> tuple[float, float, float]:
    """The three numbers with their defaults, if the range allows them."""
    word, range_ = outcome.word, outcome.range
    if isinstance(mean, str):
        raise InvalidInput(f"mean {word} must be a number; got {mean!r}. Write a number.")
    mean = float(positive(f"mean {word}", mean) if difference is None else mean)
    if not outcome.low < mean < outcome.high:
        raise InvalidInput(
            f"mean {word} must be inside the declared range {range_}; got {mean:g}. "
            f"Declare a wider range, or give the mean of a {word} in it."
        )
    largest = math.sqrt((mean - outcome.low) * (outcome.high - mean))
    spread = float(positive("spread", largest if spread is None else spread))
    if spread > largest * (1 + 1e-9):
        raise InvalidInput(
            f"spread must be at most {largest:.4g}, the largest standard deviation with a mean of "
            f"{mean:g} in {range_}; got {spread:g}. Leave it out, or declare a wider range."
        )
    difference = float(positive("difference", mean / 10 if difference is None else difference))
    if difference > outcome.high - outcome.low:
        raise InvalidInput(
            f"difference must fit into the declared range {range_}; got {difference:g}. "
            "Give a smaller one."
        )
    return mean, spread, difference


def _sizes(
    plan: Plan, epsilon: float, offset: float, spread: float, difference: float
) -> SampleSize:
    """The sample sizes at one ε, from numbers in units of losses in [0, 1].

    ``offset`` is the mean loss less the centre that statistics subtract.
    """
    private = math.isfinite(epsilon)
    budget = Budget(epsilon, plan.budget.delta or DELTA) if private else Budget.none()
    plan = replace(plan, budget=budget, horizon=None)
    pooling, problem, schedule = plan.pooling, plan.problem, plan.schedule
    noise, factor, factor_of_means = [0.0] * MOST_BATCHES, 1.0, 1.0
    if private:
        if pooling is None:
            raise InvalidInput(
                "oracle must pool statistics for sample sizes; got "
                f"{type(plan.oracle).__name__}. Use PooledRidge, or epsilons=[inf]."
            )
        noise = prediction_noise(plan, MOST_BATCHES) or noise
        factor, factor_of_means = _noise_factors(pooling, offset)
    lengths = [schedule.length(batch) for batch in range(1, MOST_BATCHES + 1)]
    among = 1 if problem.feedback == "full" else problem.n_actions
    chance = [spread**2 * among / records for records in _remembered(lengths, plan.half_life)]
    counts, largest = list(accumulate(lengths)), difference / STANDARD_ERRORS

    def reached(p: int, times: float) -> int | None:
        both = zip(chance, noise, strict=True)
        errors = [math.sqrt(2.0 * (c * p + (times * z) ** 2)) for c, z in both]
        return _reached(counts, errors, largest)

    of_means = None if plan.catalogue is not None else reached(1, factor_of_means)
    return SampleSize(epsilon, of_means, reached(problem.p, factor))


def _noise_factors(pooling: PooledStatistics, offset: float) -> tuple[float, float]:
    """The noise of a prediction and of an action's mean, as multiples of ``prediction_noise``.

    The constant feature has the share k of a row's squared length, and p − 1 directions share the
    rest: the noise of responses grows by (1/k + (p − 1)²/(1 − k))/p², which is 1 at k = 1/p.
    Weights that predict the offset m have the length m/√k, and the Gram's noise turns these into
    noise of σ/√2 per unit of length; σ along the constant itself. The mean of an action follows
    from the constant, with noise of σ_r/√k on its sum, and from its sums of losses, if they are
    released, with 2σ on each.
    """
    problem, relative = pooling.problem, pooling.gram / pooling.response
    p, share, sums = problem.p, 1.0 / problem.p, math.inf
    if pooling.stretched and problem.feedback == "bandit" and not problem.joint:
        sums = 4.0 * relative**2 * (1.0 + offset**2)
        share = max(share, float(constant_share(np.asarray(offset))))
    weight = (relative * offset) ** 2 / share
    rest = (p - 1) ** 2 / (1.0 - share) if p > 1 else 0.0
    personal = math.sqrt((1.0 + weight / 2) * (1.0 / share + rest)) / p
    return personal, math.sqrt(1.0 / (share / (1.0 + weight) + 1.0 / sums)) / p


def _remembered(lengths: Sequence[int], half_life: int | None) -> list[float]:
    """Records after each batch, (Σ k·n)²/Σ k²·n with k what a release counts."""
    weight = share(1, half_life)
    sums = accumulate(lengths, lambda old, new: weight * old + new)
    squares = accumulate(lengths, lambda old, new: weight**2 * old + new)
    return [s * s / q for s, q in zip(sums, squares, strict=True)]


def _reached(counts: Sequence[int], errors: Sequence[float], largest: float) -> int | None:
    """The count at which the error is small enough, on a power law between ends of batches."""
    place = next((place for place, error in enumerate(errors) if error <= largest), None)
    if not place:
        return None if place is None else counts[0]
    before, first = errors[place - 1], counts[place - 1]
    part = math.log(before / largest) / math.log(before / errors[place])
    return math.ceil(first * math.pow(counts[place] / first, part))
