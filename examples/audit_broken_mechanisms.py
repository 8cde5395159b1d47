"""Eight broken mechanisms, and what an audit says of each.

``attack`` needs a callable ``fit(batch) -> release`` and two neighbouring batches, so it works for
any mechanism, not only for those of discreet. Each of the eight claims an ε and is wrong.
"""

import math

import numpy as np

import discreet as dc
from discreet.audit import Rule, attack
from discreet.privacy.calibration import gaussian_multiplier

TRIALS = 2000
GAUSSIAN = dc.Budget(8.0, 1e-5)  # a claim about Gaussian noise: a few hundred releases judge it
PURE = dc.Budget(1.0)  # a claim about ratios of probabilities: they must be seen, so a small ε
MULTIPLIER = gaussian_multiplier(GAUSSIAN)  # σ over sensitivity
ENTROPY = np.random.default_rng()  # enough for an example; a real release draws SecureNoise


def statistics(rows, labels):
    """The sums that ridge regression needs, of rows b and centred losses."""
    return np.concatenate([(rows.T @ rows).ravel(), rows.T @ (labels - 0.5)])


def gaussian(values, sensitivity, rng=ENTROPY):
    return values + MULTIPLIER * sensitivity * rng.normal(size=np.shape(values))


def features(*contexts):
    """b = (1, c)/√2 for contexts in the unit ball."""
    c = np.asarray(contexts, dtype=float)
    return np.concatenate([np.ones((len(c), 1)), c], axis=1) / math.sqrt(2)


# The worst pair of sums of b bᵀ and (y − ½) b: c·c' = −¾, losses 1 and 0 (docs/privacy/ridge.md).
RIDGE = math.sqrt(81 / 32)
FIRST = features([1.0, 0.0]), np.array([1.0])
SECOND = features([-0.75, math.sqrt(7) / 4]), np.array([0.0])


def halved_noise(batch):
    return gaussian(statistics(*batch), RIDGE / 2)


def noise_from_a_seed(batch):
    return gaussian(statistics(*batch), RIDGE, np.random.default_rng(2024))


def batch_used_twice(batch):
    return [gaussian(statistics(*batch), RIDGE), gaussian(statistics(*batch), RIDGE)]


def no_bias_column(batch):
    """The paper's Δ = √2 for the sum of y·b needs b·b' ≥ 0, which the bias column gives."""
    rows, labels = batch
    return gaussian(rows.T @ labels, math.sqrt(2))


def general_losses_as_one_label(batch):
    """Noise for rows with exactly one zero, on losses that are anything in [0, 1]."""
    rows, losses = batch
    one_label = math.sqrt(4 - 2 / 12 + 1 / (2 * 12**2))
    return gaussian(rows.T @ (losses - (1 - 1 / 12)), one_label)


def determinant_dropped(batch):
    """Objective perturbation with the noise of ε and a ridge too small to pay for curvature."""
    return minimiser(batch, scale=2 / PURE.epsilon, ridge=0.001)[0]


def zero_if_not_converged(batch):
    """A proper ridge, twice the noise, but two steps of Newton's method, or zero."""
    theta, converged = minimiser(batch, scale=4 / PURE.epsilon, ridge=4.0, steps=2)
    return theta if converged else np.zeros(2)


def gram_after_a_choice(batch):
    """Noise only where somebody is: which of two actions was taken decides what is noised."""
    rows, actions = batch
    sums = [rows[actions == action].T @ rows[actions == action] for action in (0, 1)]
    return [gaussian(each, math.sqrt(2)) if each.any() else each for each in sums]


def minimiser(batch, scale, ridge, steps=25):
    """argmin Σ log(1 + e^{x·θ}) − y·x·θ + (ridge/2)‖θ‖² + b·θ, and whether it is one.

    The gradient is zero where the residuals balance ridge and noise; damped Newton steps find it.
    """
    rows, labels = batch
    b = ENTROPY.normal(size=2)
    b *= scale * ENTROPY.gamma(2) / np.linalg.norm(b)

    def gradient(theta):
        return rows.T @ (mean(rows @ theta) - labels) + ridge * theta + b

    theta = np.zeros(2)
    for _ in range(steps):
        chance = mean(rows @ theta)
        curvature = (rows.T * (chance * (1 - chance))) @ rows + ridge * np.eye(2)
        step = np.linalg.solve(curvature, gradient(theta))
        length = np.linalg.norm(step)
        theta = theta - step * (math.log1p(length) / length if steps > 2 and length > 1 else 1.0)
    return theta, bool(np.linalg.norm(gradient(theta)) < 1e-6)


def mean(scores):
    return 1 / (1 + np.exp(-np.clip(scores, -500, 500)))


# Pairs of batches that differ in one record.
UNIT = np.array([[1.0, 0.0]]), np.ones(1)
OPPOSITE = np.array([[-1.0, 0.0]]), np.ones(1)
SAME = features([1.0])
NOBODY = np.empty((0, 2)), np.empty(0)
SOMEBODY = SAME, np.ones(1)

CASES = {  # mechanism, two batches, its claim, a rule where one is better than a learnt one
    "halved noise": (halved_noise, FIRST, SECOND, GAUSSIAN, None),
    "noise drawn from a seed": (noise_from_a_seed, FIRST, SECOND, GAUSSIAN, None),
    "response sensitivity without the bias column": (
        no_bias_column,
        UNIT,
        OPPOSITE,
        GAUSSIAN,
        None,
    ),
    "general losses as one-label rows": (
        general_losses_as_one_label,
        (SAME, np.ones((1, 12))),
        (SAME, np.zeros((1, 12))),
        GAUSSIAN,
        None,
    ),
    "determinant term dropped": (
        determinant_dropped,
        NOBODY,
        SOMEBODY,
        PURE,
        Rule(lambda theta: -abs(float(SAME[0] @ theta)), -10.0),
    ),
    "a branch for fits that did not converge": (
        zero_if_not_converged,
        NOBODY,
        SOMEBODY,
        PURE,
        None,
    ),
    "a batch used twice": (batch_used_twice, FIRST, SECOND, GAUSSIAN, None),
    "a Gram noised after a choice": (
        gram_after_a_choice,
        (SAME, np.array([0])),
        (SAME, np.array([1])),
        PURE,
        None,
    ),
}


def main():
    caught = 0
    for name, (fit, first, second, budget, rule) in CASES.items():
        finding = attack(
            fit, first, second, budget, trials=TRIALS, rule=rule, gaussian=budget is GAUSSIAN
        )
        caught += finding.failed
        proven = f"claimed ε = {budget.epsilon:g}, proven ε ≥ {finding.measured:.1f}"
        print(f"{name:46} {proven:34} {finding.verdict}")
    print(f"{caught} of {len(CASES)} are caught")


if __name__ == "__main__":
    main()
