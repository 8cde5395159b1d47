"""Ridge regression on the whole design matrix, with the paper's noise and with ours."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

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

    ``matrix`` M says that rows were stretched; with None they were b. ``outcomes`` holds the noisy
    number of losses, 2·Σ(y − middle)², and of each action ½·Σ(y − middle) and half its number of
    losses; ``signal`` (λ, e_1 … e_A) was published with this batch. Both with bandit feedback only.
    """

    gram: Any
    response: Any
    records: int
    sigma: float
    matrix: Any = None
    outcomes: Any = None
    signal: Any = None


class Found(NamedTuple):
    """θ_a of plain features for centred losses, the next matrix, and (λ, e_1 … e_A)."""

    theta: Any
    following: Any
    signal: Any


def between(low, value, high):
    return min(max(low, value), high)


def row_bounds(records, p, sigma, history):
    """w = n/(n + k·p·σ²) and 1/w, k = 3·(1000/3)^λ, with the λ of the release before."""
    published = history[-1].signal if history else None
    clear = 1.0 if published is None else published[0]
    w = records / (records + 3.0 * (1000.0 / 3.0) ** clear * p * sigma**2)
    return w, 1.0 / w


def shortened(features, losses, middle, matrix, low, high):
    """Rows M b/max(low, ‖M b‖), and losses whose distance from the middle is shortened."""
    rows, moved = [], []
    for b, row_losses in zip(features, losses, strict=True):
        image = matrix @ b
        length = math.sqrt(sum(x * x for x in image))
        rows.append(image / max(low, length))
        moved.append(middle + (row_losses - middle) * min(1.0, high / length))
    return np.array(rows), np.array(moved)


def noisy_sums(batch, draws, middle, sigma, response_sigma, matrix=None, history=()):
    """One batch's sums in the coordinates of ``matrix``, with noise from standard draws."""
    features, losses, observed = batch
    rows, moved, outcomes = features, losses, None
    if matrix is not None:
        bounds = row_bounds(len(features), len(features[0]), sigma, history)
        rows, moved = shortened(features, losses, middle, matrix, *bounds)
    blocks = [
        noisy_block((rows, moved, observed), a, middle, sigma, response_sigma, *draws[:2])
        for a in range(len(losses[0]))
    ]
    gram = np.array([each for each, _ in blocks[: len(draws[0])]])
    if matrix is not None and len(draws) > 2:
        outcomes = np.array(outcome_sums(losses, observed, middle)) + sigma * draws[2]
    response = np.array([each for _, each in blocks])
    return Sums(gram, response, len(features), sigma, matrix, outcomes)


def outcome_sums(losses, observed, middle):
    """The count, 2·Σ(y − middle)², and of each action ½·Σ(y − middle) and ½·count."""
    actions = len(losses[0])
    outcomes = [0.0] * (2 + 2 * actions)
    for row_losses, row_observed in zip(losses, observed, strict=True):
        for a in range(actions):
            if row_observed[a]:
                y = row_losses[a] - middle
                outcomes[0] += 1.0
                outcomes[1] += 2.0 * y * y
                outcomes[2 + 2 * a] += 0.5 * y
                outcomes[3 + 2 * a] += 0.5
    return outcomes


def conclusion(history, floor, ridge, clear, half_life=None):
    """Conclusion from the releases of ``history``, as ``Found``."""
    newest, p = history[-1], history[-1].response.shape[1]
    blocks, actions = len(newest.gram), len(newest.response)
    M = np.eye(p) if newest.matrix is None else newest.matrix
    S, r, outcomes = np.zeros((blocks, p, p)), np.zeros((actions, p)), np.zeros(2 + 2 * actions)
    variance = N = observed_count = counted = of_gram = of_response = 0.0
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
        observed_count += w * (n if each.outcomes is None else each.outcomes[0])
        if each.outcomes is not None:
            outcomes += w * np.array(each.outcomes)
            counted += (w * each.sigma) ** 2
            row = math.sqrt(2) * np.linalg.inv(each.matrix)[0]
            of_gram += (w * each.sigma * (row @ row)) ** 2
            of_response += (w * each.sigma / 2) ** 2 * (row @ row)
    s = math.sqrt(2 * p * variance)

    def solved(least):
        return [
            np.linalg.solve(raised(S[a if blocks > 1 else 0], least), response)
            for a, response in enumerate(r)
        ]

    theta = solved(floor * s + ridge * N)
    if newest.matrix is None:
        return Found(np.array(theta), None, None)
    if newest.outcomes is not None:
        observed_count = between(3 * math.sqrt(counted) + 2.0**-20 * N, observed_count, N)
    back, least = np.linalg.inv(M), 0.3 * math.sqrt(blocks) * s + 1.0 / p
    known = 2.0**-32 * (N + least) * np.trace(back @ back.T)
    spread = sum(S) + known * M @ M.T
    T = raised(spread, least)
    # The constant feature is 1/√2: in plain coordinates its corner is ½ for each observed loss.
    c = math.sqrt(0.5 * observed_count / (back @ T @ back.T)[0, 0])
    low, high = row_bounds(newest.records, p, newest.sigma, history[:-1])
    length = between(low, c, high)
    # Rows have length one where they were c long and reach above the noise in all directions.
    axes = np.linalg.eigh(spread)[1].T
    reached = sum(max(0.0, axis @ sum(S) @ axis) / (axis @ T @ axis) for axis in axes)
    size = math.sqrt(observed_count / p) * math.sqrt(p / max(1.0, reached)) / c
    following = size * np.linalg.inv(sqrtm(T)) @ M
    if newest.outcomes is None:
        return Found(np.array([M.T @ each / length for each in theta]), following, None)
    sums = Outcomes(outcomes, observed_count, math.sqrt(counted))
    sums.excess = excess_losses(sums, S, r, math.sqrt(2) * back[0], of_gram, of_response)
    clear = clearness([each / length for each in theta], T / observed_count, sums)
    unclear, m = 1.0 - clear, sums.mean
    least = floor * s + ridge * N + 5.0 * unclear * s
    theta = solved(least)
    share = unclear * 2 * (math.sqrt(m**4 + m**2 / 2) - m**2)
    following = with_longer_constant(following, share)
    solid = [raised(each, least) for each in S]
    around, errors = around_means(theta, solid, S, (T, known), M, length, c, variance, sums)
    plain = [M.T @ each / length for each in theta]
    mixed = [clear * one + unclear * two for one, two in zip(plain, around, strict=True)]
    return Found(np.array(mixed), following, np.array([clear, *errors]))


class Outcomes:
    """Pooled sums: Q_a and n_a, m, the variance of losses, and the noise of these numbers.

    ``excess`` is Σ(y − ½ − m) of each action, and the deviation of its noise. ``sigma`` is the
    deviation of the noise in each of these numbers, ``nu`` that of Q_a and n_a.
    """

    def __init__(self, outcomes, observed_count, sigma):
        self.observed_count, self.sigma, self.nu = observed_count, sigma, 2 * sigma
        self.actions = (len(outcomes) - 2) // 2
        self.Q = [2 * outcomes[2 + 2 * a] for a in range(self.actions)]
        self.n = [max(0.0, 2 * outcomes[3 + 2 * a]) for a in range(self.actions)]
        self.mean = m = between(-0.5, sum(self.Q) / observed_count, 0.5)
        error = sigma / observed_count
        most = 0.25 - max(0.0, abs(m) - 2 * error) ** 2
        variance = max(0.0, outcomes[1] / (2 * observed_count) - m**2) + error / 2
        self.variance = max(min(variance, most), 1e-12)


def excess_losses(outcomes, S, r, row, of_gram, of_response):
    """D_a from the sums and D'_a from the constant, weighted by each other's noise; and the noise.

    [docs/privacy/ridge.md, "Predictions around action means"]
    """
    m, A = outcomes.mean, outcomes.actions
    x, g = [row @ each for each in r], [row @ each @ row for each in S]
    total = max(sum(g), 3 * math.sqrt(A * of_gram) + 2.0**-20)
    own = between(-0.5, sum(x) / total, 0.5)
    scale = outcomes.observed_count / total
    one = outcomes.nu**2 * (1 + m**2)
    two = scale**2 * (of_response + own**2 * of_gram)
    share = 1.0 if one == 0 else two / (one + two)
    found = []
    for a in range(A):
        by_constant = scale * (x[a] - own * g[a])
        found.append(share * (outcomes.Q[a] - m * outcomes.n[a]) + (1 - share) * by_constant)
    return found, math.sqrt(share**2 * one + (1 - share) ** 2 * two)


def ramp(ratio):
    return between(0.0, ratio - 1.0, 1.0)


def clearness(theta, second_moment, outcomes):
    """λ: the spread of predictions between actions, and rewards that are not rare."""
    A = len(theta)
    mean = sum(theta) / A
    spread = sum((each - mean) @ second_moment @ (each - mean) for each in theta) / A
    noise_of_mean = math.sqrt(A) * outcomes.nu / outcomes.observed_count
    reward = 0.5 - outcomes.mean + noise_of_mean
    return ramp(math.sqrt(spread) / 0.06) * ramp(A * reward / 0.4)


def around_means(theta, solid, S, total, M, length, c, variance, outcomes):
    """Weights of plain features that start from action means, and the error of each action.

    ``theta`` solve ``solid``, the Grams ``S`` with their eigenvalues raised; ``variance`` is that
    of the noise in ``S``, and ``total`` T₊ with what it adds in plain directions.
    [docs/privacy/ridge.md, "Predictions around action means"]
    """
    A, p, m, nu = len(theta), len(M), outcomes.mean, outcomes.nu
    back = np.linalg.inv(M)
    # Contexts are b = (1, x)/√2, and second moments in plain coordinates those of b.
    moments = back @ total[0] @ back.T - total[1] * np.eye(p)
    mean_x = [moments[0, j] / moments[0, 0] for j in range(1, p)]
    K = np.zeros((p, p))  # of b, in which the constant does not vary
    for i in range(1, p):
        for j in range(1, p):
            K[i, j] = (moments[i, j] / moments[0, 0] - mean_x[i - 1] * mean_x[j - 1]) / 2
    # 1. Means.
    means = []
    D, noise = outcomes.excess
    for above, n in zip(D, outcomes.n, strict=True):
        means.append(between(-0.5, m + above / (n + 3 * noise + 1), 0.5))
    # 2. Slopes: what noise gives to the predictions of an action, and what is left of them.
    mean_square = sum(each @ each for each in theta) / A
    V = []
    for a in range(A):
        total = 0.0
        for value, axis in zip(*eigen(solid[a]), strict=True):
            value = max(value, 1.0 / p)
            direction = M.T @ axis / length  # how weights along the axis predict, in plain features
            private = variance * (0.25 + mean_square / 2) / value**2
            of_losses = outcomes.variance / (max(c, 1.0) ** 2 * value)
            total += (private + of_losses) * (direction @ K @ direction)
        V.append(max(total, 1e-24))
    beta = [(M.T @ each / length)[1:] for each in theta]
    mean_slope = sum(b / v for b, v in zip(beta, V, strict=True)) / sum(1 / v for v in V)
    E = [(b - mean_slope) @ K[1:, 1:] @ (b - mean_slope) for b in beta]
    information = sum(1 / v**2 for v in V)
    g = sum((e - v) / v**2 for e, v in zip(E, V, strict=True)) / information
    h = 5 * math.sqrt(2 / (p - 1) / information)
    g = (g + math.sqrt(g**2 + h**2)) / 2
    made, errors = [], []
    for a in range(A):
        kept = g / (g + V[a])
        slope = mean_slope + kept * (beta[a] - mean_slope)
        # 3. Constant: the mean x of the records of the action, drawn toward that of all.
        own = back @ S[a] @ back.T
        prior = 3 * nu / outcomes.observed_count * moments[0, 0]
        constant = means[a]
        for j in range(1, p):
            x = (own[0, j] + prior * mean_x[j - 1]) / max(own[0, 0] + prior, 1e-300)
            constant -= slope[j - 1] * between(-1.0, x, 1.0) / math.sqrt(2)
        made.append(np.array([math.sqrt(2) * constant, *slope]))
        # 4. Errors.
        count = outcomes.n[a] + noise + 1
        square = outcomes.variance / count + noise**2 / count**2 + 0.1 * kept * V[a]
        errors.append(math.sqrt(square))
    return made, errors


def eigen(matrix):
    values, axes = np.linalg.eigh(matrix)
    return values, axes.T


def with_longer_constant(matrix, share):
    """The matrix M stretched along the constant feature, so that this has ``share`` of ‖M b‖² = 1.

    In M b the constant ½√2 is the part ½√2/‖u‖ along u, the first row of M⁻¹: u·M b = b_0.
    """
    u = np.linalg.inv(matrix)[0]
    own = 0.5 / (u @ u)
    rest = max(1.0 - own, 0.05)
    stretch = max(1.0, math.sqrt(share / (1.0 - share) * rest / own))
    longer = np.eye(len(u)) + (stretch - 1.0) * np.outer(u, u) / (u @ u)
    return math.sqrt((rest + own) / (rest + own * stretch**2)) * longer @ matrix


def pooled(
    batches, draws, middle, floor, ridge, clear, sigma, response_sigma, geometry, half_life=None
):
    """Conclusion after each batch from all noisy statistics so far, as ``Found``.

    ``batches`` are (features, losses, observed), ``draws`` standard normal: those of the Gram, the
    response and, with bandit feedback, of outcome sums. ``geometry``: whether rows are stretched.
    """
    history, found = [], []
    matrix = np.eye(batches[0][0].shape[1]) if geometry else None
    for batch, noise in zip(batches, draws, strict=True):
        history.append(noisy_sums(batch, noise, middle, sigma, response_sigma, matrix, history))
        found.append(conclusion(history, floor, ridge, clear, half_life))
        history[-1].signal, matrix = found[-1].signal, found[-1].following
    return found
