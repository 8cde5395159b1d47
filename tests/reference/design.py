"""Action-dependent features φ(c, a) = e_a ⊗ b(c̄), written out. [paper, "Function classes"]"""

import numpy as np


def phi(b, action, n_actions):
    """e_a ⊗ b: b in the action's block and zeros elsewhere."""
    vector = np.zeros(n_actions * len(b))
    for i, value in enumerate(b):
        vector[action * len(b) + i] = value
    return vector


def design(features, losses, observed):
    """X (one row per observed loss, d columns) and y."""
    rows, responses = [], []
    for b, row_losses, row_observed in zip(features, losses, observed, strict=True):
        for action in range(len(row_losses)):
            if row_observed[action]:
                rows.append(phi(b, action, len(row_losses)))
                responses.append(row_losses[action])
    d = len(losses[0]) * len(features[0])
    return np.array(rows).reshape(-1, d), np.array(responses)


def scores(features, theta, n_actions):
    """φ(c, a)ᵀθ for every row and action, (n, A)."""
    return np.array([[phi(b, a, n_actions) @ theta for a in range(n_actions)] for b in features])


def sigmoid(score):
    """(1 + e^−s)^−1."""
    return 1.0 / (1.0 + np.exp(-score))
