"""How much Gaussian noise second moments need: fixed once by a plan, before any data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

from discreet.oracles.moments import GRID
from discreet.privacy.budget import Budget
from discreet.privacy.calibrate import gaussian_multiplier, smallest_scale
from discreet.privacy.events import STACKED, Event, Gaussian, NonPrivate, compose
from discreet.privacy.mechanisms import (
    paper_sensitivities,
    ridge_sensitivity,
    sampler_distance,
    zcdp,
)

IDEAL = ("real arithmetic",)


@dataclass(frozen=True)
class GaussianScales:
    """Standard deviations in natural units; zero without privacy."""

    gram: float
    response: float
    feedback: str
    losses: str
    radii: bool
    event: Event = field(repr=False, metadata={"stacked": STACKED})


def no_noise(feedback: str, losses: str, radii: bool) -> GaussianScales:
    """For a budget that is infinite."""
    event = NonPrivate("no privacy budget was set")
    return GaussianScales(0.0, 0.0, feedback, losses, radii, event)


@lru_cache(maxsize=4096)
def paper_scales(
    budget: Budget, feedback: str, losses: str, radii: bool, n_actions: int
) -> GaussianScales:
    """Half of the zCDP budget each, in the Frobenius geometry of symmetric matrices."""
    rho = zcdp(budget.epsilon, budget.delta)
    d_gram, d_response = paper_sensitivities(feedback, n_actions, losses == "one_label")
    # Privacy: σ = Δ/√ρ is ρ/2-zCDP for each of the two.
    # [docs/privacy/ridge.md, "The paper's release"]
    sigma = (d_gram / math.sqrt(rho), d_response / math.sqrt(rho))
    event = compose(
        Gaussian(sigma[0] / d_gram, d_gram, assumes=IDEAL),
        Gaussian(sigma[1] / d_response, d_response, assumes=IDEAL),
    )
    return GaussianScales(*sigma, feedback, losses, radii, event)


@lru_cache(maxsize=4096)
def structured_scales(
    budget: Budget,
    feedback: str,
    losses: str,
    radii: bool,
    n_actions: int,
    p: int,
    weight: float = 1.0,
) -> GaussianScales:
    """One standard deviation for all blocks and for the responses times their weight."""
    sensitivity = ridge_sensitivity(feedback, n_actions, losses == "one_label", weight)
    blocks = 2 if feedback == "bandit" else 1
    coordinates = blocks * p * (p + 1) // 2 + (2 if blocks == 2 else n_actions) * p

    def event_at(multiplier: float) -> Gaussian:
        grid_sigma = multiplier * sensitivity * GRID**2 / max(1.0, weight)  # the coarsest one
        distance = sampler_distance(coordinates, grid_sigma)
        return Gaussian(multiplier, sensitivity, distance, coordinates=coordinates)

    multiplier = smallest_scale(event_at, budget, gaussian_multiplier(budget))
    # Privacy: one joint Gaussian release of all blocks.
    # [docs/privacy/ridge.md, "The structured release"]
    sigma = multiplier * sensitivity
    return GaussianScales(sigma, sigma / weight, feedback, losses, radii, event_at(multiplier))


def calibrated(scales: GaussianScales | None) -> GaussianScales:
    """The scales, which only a plan can fix."""
    if scales is None:
        raise TypeError("an oracle must be calibrated by a Plan before it is used")
    return scales
