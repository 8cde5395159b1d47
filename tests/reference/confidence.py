"""Confidence radii from released Grams, and the rules of LinUCB and RegCB."""

import numpy as np

from reference.design import phi


def block_diagonal(blocks, n_actions):
    """A Gram block per action (or one for all) as the whole d × d matrix."""
    p = len(blocks[0])
    whole = np.zeros((n_actions * p, n_actions * p))
    for action in range(n_actions):
        block = blocks[action if len(blocks) > 1 else 0]
        for i in range(p):
            for j in range(p):
                whole[action * p + i, action * p + j] = block[i][j]
    return whole


def radii(grams, features, n_actions):
    """r(c, a) = √max{φᵀ(Σ G̃ + I)⁻¹φ, 0} with d × d Grams. [paper, "Private confidence radii"]"""
    d = n_actions * len(features[0])
    inverse = np.linalg.inv(sum(grams) + np.eye(d))
    table = np.zeros((len(features), n_actions))
    for i, b in enumerate(features):
        for action in range(n_actions):
            x = phi(b, action, n_actions)
            table[i, action] = max(float(x @ inverse @ x), 0.0) ** 0.5
    return table


def even_among_minimisers(values):
    """Uniform over the minimisers, equal up to 1e-12 relative."""
    least = min(values)
    minimisers = [a for a, value in enumerate(values) if value - least <= 1e-12 * (1 + abs(least))]
    return [1.0 / len(minimisers) if a in minimisers else 0.0 for a in range(len(values))]


def lin_ucb(losses, row_radii, width):
    """argmin_a f̂_a − β·r_a."""
    return even_among_minimisers(
        [loss - width * radius for loss, radius in zip(losses, row_radii, strict=True)]
    )


def survivors(row_scores, row_radii, width):
    """S = {a : g_a − β·r_a ≤ min_b (g_b + β·r_b)}."""
    pairs = list(zip(row_scores, row_radii, strict=True))
    bound = min(score + width * radius for score, radius in pairs)
    return [a for a, (score, radius) in enumerate(pairs) if score - width * radius <= bound]


def reg_cb(row_scores, row_radii, width):
    """Uniform over the survivors."""
    kept = survivors(row_scores, row_radii, width)
    return [1.0 / len(kept) if a in kept else 0.0 for a in range(len(row_scores))]
