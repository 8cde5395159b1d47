"""VanillaPO, BonusPO, ReplayBonusPO and Maillard sampling, one context at a time."""

import math


def exponential_update(policy, adjusted, rate):
    """π(a)·exp{−η·u(a)}, normalised."""
    weights = [q * math.exp(-rate * u) for q, u in zip(policy, adjusted, strict=True)]
    return [weight / sum(weights) for weight in weights]


def vanilla_rate(scale, n_actions, length):
    """η_m = η0·min{1/A, 1/√(A·B_m)}."""
    return scale * min(1.0 / n_actions, 1.0 / math.sqrt(n_actions * length))


def vanilla_component(losses, rate, k):
    """softmax_a(−η·k·f̂_a): the law of the action given K = k."""
    least = min(losses)
    weights = [math.exp(-rate * k * (loss - least)) for loss in losses]
    return [weight / sum(weights) for weight in weights]


def vanilla_po(losses, rate, length):
    """(1/B) Σ_{k<B} softmax_a(−η·k·f̂_a). [paper, Algorithm 2]"""
    total = [0.0] * len(losses)
    for k in range(length):
        component = vanilla_component(losses, rate, k)
        total = [t + c for t, c in zip(total, component, strict=True)]
    return [t / length for t in total]


def bonus_po(losses, length, previous_length, error_bound, rate_scale=1.0, bonus_scale=1.0):
    """N_{m,B_m}/B_m after B_m auxiliary updates. [paper, Algorithm 3]"""
    A = len(losses)
    gamma = min(length, math.sqrt(A * previous_length / error_bound))
    reach = bonus_scale * length / gamma  # Λ_m
    rate = rate_scale * min(1.0, math.sqrt(2 * math.log(A) / length))
    gaps = [loss - min(losses) for loss in losses]
    policy, mass = [1.0 / A] * A, [0.0] * A
    for _ in range(length):
        adjusted = []
        for action in range(A):
            bonus = min(1.0, 2 * reach / (1 + mass[action]))
            adjusted.append(max(gaps[action] - bonus, 0.0))
        following = exponential_update(policy, adjusted, rate)
        mass = [n + q for n, q in zip(mass, policy, strict=True)]
        policy = following
    return [n / length for n in mass]


def replay_bonus_po(losses_of_releases, lengths, learning_rate, bonus_scale):
    """q_{m−1} after replaying every release. [paper, "New algorithms"]"""
    A = len(losses_of_releases[0])
    policy, mass = [1.0 / A] * A, [0.0] * A
    for j, losses in enumerate(losses_of_releases):
        rounds = sum(lengths[: j + 1])
        adjusted = []
        for action in range(A):
            bonus = min(1.0, bonus_scale * math.sqrt(rounds / A) / (1 + mass[action]))
            adjusted.append(max(0.0, losses[action] - bonus))
        following = exponential_update(policy, adjusted, learning_rate * lengths[j])
        mass = [d + lengths[j] * q for d, q in zip(mass, policy, strict=True)]
        policy = following
    return policy


def maillard(losses, errors, scale):
    """q(a) ∝ exp(−½·(gap_a/(scale·e_a))²), gap_a = f(a) − min f. [Bian and Jun 2022]"""
    weights = []
    for loss, error in zip(losses, errors, strict=True):
        gap = loss - min(losses)
        weights.append(math.exp(-((gap / (scale * error)) ** 2) / 2))
    return [weight / sum(weights) for weight in weights]
