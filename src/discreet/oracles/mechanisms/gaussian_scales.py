"""Scales of the Gaussian noise on second moments, fixed by a plan before any data."""

from __future__ import annotations

import math
from functools import lru_cache

from discreet.oracles.mechanisms.legal_rows import GRID
from discreet.oracles.problem import Problem
from discreet.privacy.budget import Budget
from discreet.privacy.calibration import gaussian_multiplier, need_delta, smallest_scale
from discreet.privacy.events import NO_BUDGET, Event, Gaussian
from discreet.privacy.sensitivities import ridge_sensitivity, sampler_distance


@lru_cache(maxsize=4096)
def structured_scales(
    problem: Problem, budget: Budget, weight: float = 1.0, normalised: bool = False
) -> tuple[float, float, Event]:
    """Standard deviations of Grams and responses in natural units, and what they cost.

    One number for all blocks and for the responses times their weight; zero without privacy.
    """
    if not budget.private:
        return 0.0, 0.0, NO_BUDGET
    need_delta(budget, "Gaussian noise")
    feedback, n_actions, p = problem.feedback, problem.n_actions, problem.p
    one_label = problem.losses == "one_label"
    sensitivity = ridge_sensitivity(feedback, n_actions, one_label, weight, normalised)
    blocks = 2 if feedback == "bandit" else 1
    coordinates = blocks * p * (p + 1) // 2 + (2 if blocks == 2 else n_actions) * p
    # Count and squares of all actions, half sums and half counts of two.
    coordinates += 6 if normalised and blocks == 2 else 0

    def event_at(multiplier: float) -> Gaussian:
        coarsest = max(math.sqrt(2.0), weight) if normalised else max(1.0, weight)
        grid_sigma = multiplier * sensitivity * GRID**2 / coarsest
        distance = sampler_distance(coordinates, grid_sigma)
        return Gaussian(multiplier, sensitivity, distance, coordinates=coordinates)

    often = problem.participation
    multiplier = smallest_scale(event_at, budget, gaussian_multiplier(budget, often), often)
    # Privacy: one joint Gaussian release of all blocks.
    # [docs/privacy/ridge.md, "The structured release"]
    sigma = multiplier * sensitivity
    return sigma, sigma / weight, event_at(multiplier)
