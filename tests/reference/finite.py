"""A finite class: summed squared losses and the exponential mechanism's probabilities."""

import math

from reference.design import phi


def summed_losses(functions, features, losses, observed):
    """L(f) = Σ (f(c, a) − y)² over the observed pairs, predictions clipped to [0, 1]."""
    totals = []
    for weights in functions:
        theta, total = weights.reshape(-1), 0.0
        for b, row_losses, row_observed in zip(features, losses, observed, strict=True):
            for action in range(len(row_losses)):
                if row_observed[action]:
                    predicted = float(phi(b, action, len(row_losses)) @ theta)
                    total += (min(max(predicted, 0.0), 1.0) - row_losses[action]) ** 2
        totals.append(total)
    return totals


def exponential_mechanism(totals, epsilon, sensitivity):
    """P(f) ∝ exp(−ε·L(f) / (2Δ))."""
    least = min(totals)
    weights = [math.exp(-epsilon * (total - least) / (2 * sensitivity)) for total in totals]
    return [weight / sum(weights) for weight in weights]
