"""Ridge regression on the whole design matrix, with the paper's noise and with ours."""

from __future__ import annotations

import math

import numpy as np

from reference.design import design


def zcdp(epsilon, delta):
    """ρ(ε, δ) = (√(log(1/δ) + ε) − √log(1/δ))²."""
    return (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2


def paper_sigmas(budget, feedback, losses, n_actions):
    """Standard deviations of the entries of W and Z: Δ_G/√ρ and Δ_q/√ρ."""
    gram = response = math.sqrt(2)
    if feedback == "full":
        gram = math.sqrt(2 * n_actions)
        response = math.sqrt(2 * (n_actions - 1 if losses == "one_label" else n_actions))
    root = math.sqrt(zcdp(budget.epsilon, budget.delta))
    return gram / root, response / root


def paper(features, losses, observed, ridge, fitting_rows, W=None, Z=None):
    """θ = (XᵀX + E + nλI)⁻¹(Xᵀy + Z), E = (W + Wᵀ)/2, and the noisy Gram."""
    X, y = design(features, losses, observed)
    gram, response = X.T @ X, X.T @ y
    if W is not None:
        gram, response = gram + (W + W.T) / 2, response + Z
    d = X.shape[1]
    return np.linalg.solve(gram + fitting_rows * ridge * np.eye(d), response), gram


def block_noise(standard, sigma, p):
    """Symmetric p × p noise: σ on the diagonal, σ/√2 off it, entries in row order."""
    noise, k = np.zeros((p, p)), 0
    for i in range(p):
        for j in range(i, p):
            noise[i, j] = noise[j, i] = standard[k] * (sigma if i == j else sigma / math.sqrt(2))
            k += 1
    return noise


def definite(matrix, step):
    """The matrix, plus step·2^j·I for the smallest j ≥ 0 that makes it positive definite."""
    eye, j, shifted = np.eye(len(matrix)), 0, matrix
    while np.linalg.eigvalsh(shifted)[0] <= 0.0:
        shifted = matrix + step * 2**j * eye
        j += 1
    return shifted


def middle(losses, n_actions):
    """½, or the mean 1 − 1/A of a row with one zero, rounded to a multiple of 2^−20."""
    return 0.5 if losses == "general" else math.floor((1 - 1 / n_actions) * 2**20 + 0.5) / 2**20


def noisy_block(batch, action, middle, sigma, response_sigma, gram_noise, response_noise):
    """Σ bbᵀ and Σ (y − middle)·b over the rows that tell of an action, plus noise.

    ``gram_noise`` (A or 1, p(p+1)/2) and ``response_noise`` (A, p) are standard normal draws;
    one Gram block serves every action where all losses are observed.
    """
    features, losses, observed = batch
    p = len(features[0])
    gram, response = np.zeros((p, p)), np.zeros(p)
    for b, row_losses, row_observed in zip(features, losses, observed, strict=True):
        if row_observed[action]:
            gram += np.outer(b, b)
            response += (row_losses[action] - middle) * b
    shared = gram_noise[action if len(gram_noise) > 1 else 0]
    gram = gram + block_noise(shared, sigma, p)
    return gram, response + response_sigma * response_noise[action]


def structured(
    features, losses, observed, middle, ridge, sigma, noise_ridge, gram_noise, response_noise
):
    """θ_a for centred losses, block by block: predict φᵀθ + middle. Also the noisy Gram blocks."""
    A, p, n = len(losses[0]), len(features[0]), len(features)
    expected = sigma * math.sqrt(2 * p)
    theta, blocks = [], []
    for action in range(A):
        gram, response = noisy_block(
            (features, losses, observed), action, middle, sigma, sigma, gram_noise, response_noise
        )
        shift = n * ridge + noise_ridge * expected
        theta.append(np.linalg.solve(definite(gram + shift * np.eye(p), expected), response))
        blocks.append(gram)
    return np.array(theta), np.array(blocks)


def raised(matrix, floor):
    """The symmetric matrix with its eigenvalues below ``floor`` raised to it."""
    values, axes = np.linalg.eigh(matrix)
    return sum(max(v, floor) * np.outer(axes[:, i], axes[:, i]) for i, v in enumerate(values))


def pooled_weights(gram, response, records, variance, floor, ridge):
    """θ_a of a pool, for centred losses."""
    p = gram.shape[-1]
    least = floor * math.sqrt(2 * p * variance) + ridge * records
    return np.array(
        [
            np.linalg.solve(raised(gram[a if len(gram) > 1 else 0], least), each)
            for a, each in enumerate(response)
        ]
    )


def pooled(batches, draws, middle, floor, ridge, clear, sigma, response_sigma):
    """θ_a after each batch, from the weighted sum of all noisy statistics so far.

    ``batches`` are (features, losses, observed), ``draws`` (gram_noise, response_noise).
    """
    grams, responses, records, variance, found = 0.0, 0.0, 0.0, 0.0, []
    for batch, noise in zip(batches, draws, strict=True):
        n, p = batch[0].shape
        w = n / (n + clear * p * sigma**2)
        blocks = [
            noisy_block(batch, action, middle, sigma, response_sigma, *noise)
            for action in range(batch[1].shape[1])
        ]
        grams = grams + w * np.array([gram for gram, _ in blocks])
        responses = responses + w * np.array([response for _, response in blocks])
        records, variance = records + w * n, variance + w**2 * sigma**2
        found.append(pooled_weights(grams, responses, records, variance, floor, ridge))
    return found
