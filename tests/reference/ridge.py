"""Ridge regression on the whole design matrix, with the paper's noise and with ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import sqrtm

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


@dataclass
class Sums:
    """One batch as it was released: noisy Gram blocks, noisy responses, and their coordinates.

    ``matrix`` M says that rows were v = M b/‖M b‖; with None they were b. ``heard`` is the noisy
    number of losses, where it was told.
    """

    gram: Any
    response: Any
    records: int
    sigma: float
    matrix: Any = None
    heard: float | None = None


def stretched(features, matrix):
    """Rows M b/‖M b‖."""
    rows = [matrix @ b for b in features]
    return np.array([row / math.sqrt(sum(x * x for x in row)) for row in rows])


def noisy_sums(batch, draws, middle, sigma, response_sigma, matrix=None):
    """One batch's sums in the coordinates of ``matrix``, with noise from standard draws."""
    features, losses, observed = batch
    rows = features if matrix is None else stretched(features, matrix)
    blocks = [
        noisy_block((rows, losses, observed), a, middle, sigma, response_sigma, *draws[:2])
        for a in range(len(losses[0]))
    ]
    gram = np.array([each for each, _ in blocks[: len(draws[0])]])
    heard = None
    if matrix is not None and len(draws) > 2:
        heard = observed.sum() + sigma * draws[2][1]
    response = np.array([each for _, each in blocks])
    return Sums(gram, response, len(features), sigma, matrix, heard)


def conclusion(history, floor, ridge, clear, half_life=None):
    """θ_a of plain features for centred losses, and the next matrix (None without geometry)."""
    p, blocks = history[-1].response.shape[1], len(history[-1].gram)
    M = np.eye(p) if history[-1].matrix is None else history[-1].matrix
    back = np.linalg.inv(M)
    S, r = np.zeros((blocks, p, p)), np.zeros(history[-1].response.shape)
    variance = N = heard = counted = 0.0
    for age, each in zip(range(len(history) - 1, -1, -1), history, strict=True):
        if half_life is not None and age > 5 * half_life:
            continue
        C = M @ np.linalg.inv(np.eye(p) if each.matrix is None else each.matrix)
        kappa = max(1.0, sum(x * x for x in C.ravel()) / p)
        n = each.records
        w = n / (n + clear * p * (each.sigma * kappa) ** 2)
        if half_life is not None:
            w *= 0.5 ** (age / half_life)
        for a, block in enumerate(each.gram):
            S[a] += w * C @ block @ C.T
        for a, response in enumerate(each.response):
            r[a] += w * C @ response
        variance += (w * each.sigma * kappa) ** 2
        N += w * n
        heard += w * (n if each.heard is None else each.heard)
        counted += 0.0 if each.heard is None else (w * each.sigma) ** 2
    heard = min(max(heard, 3 * math.sqrt(counted)), N)
    s = math.sqrt(2 * p * variance)
    theta = [
        np.linalg.solve(raised(S[a if blocks > 1 else 0], floor * s + ridge * N), response)
        for a, response in enumerate(r)
    ]
    if history[-1].matrix is None:
        return np.array(theta), None
    least = 0.3 * math.sqrt(blocks) * s
    known = 2.0**-32 * (N + least) * np.trace(back @ back.T)
    T = raised(sum(S) + known * M @ M.T, least)
    # The constant feature is 1/√2: in plain coordinates its corner is ½ for each loss heard.
    c = math.sqrt(0.5 * heard / (back @ T @ back.T)[0, 0])
    following = math.sqrt(N / p) * np.linalg.inv(sqrtm(T)) @ M
    return np.array([M.T @ each / c for each in theta]), following


def pooled(
    batches, draws, middle, floor, ridge, clear, sigma, response_sigma, geometry, half_life=None
):
    """θ_a and the next matrix after each batch, from all noisy statistics so far.

    ``batches`` are (features, losses, observed), ``draws`` standard normal: those of the Gram, the
    response and, with bandit feedback, of what is told. ``geometry``: whether rows are stretched.
    """
    history, found = [], []
    matrix = np.eye(batches[0][0].shape[1]) if geometry else None
    for batch, noise in zip(batches, draws, strict=True):
        history.append(noisy_sums(batch, noise, middle, sigma, response_sigma, matrix))
        found.append(conclusion(history, floor, ridge, clear, half_life))
        matrix = found[-1][1]
    return found
