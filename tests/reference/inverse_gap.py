"""SquareCB, FastCB and AdaCB's allocation, one row of predictions at a time."""


def gap_weight(scale, exponent, earlier_batches):
    """γ_m = γ0·(Σ_{j<m} B_j)^ρ, with at least one round on the clock."""
    return scale * max(1, sum(earlier_batches)) ** exponent


def square_cb(losses, gamma):
    """1/(A + γ·gap_a) for a ≠ b, the rest on the first minimiser b."""
    best = losses.index(min(losses))
    probabilities = [0.0] * len(losses)
    for action in range(len(losses)):
        if action != best:
            gap = losses[action] - losses[best]
            probabilities[action] = 1.0 / (len(losses) + gamma * gap)
    probabilities[best] = 1.0 - sum(probabilities)
    return probabilities


def fast_cb(losses, gamma):
    """f_b/(A·f_b + γ·gap_a) for a ≠ b, the rest on b; uniform over minimisers if f_b ≤ 0."""
    least = min(losses)
    if least <= 0.0:
        minimisers = [action for action, loss in enumerate(losses) if loss == least]
        return [1.0 / len(minimisers) if a in minimisers else 0.0 for a in range(len(losses))]
    best = losses.index(least)
    probabilities = [0.0] * len(losses)
    for action in range(len(losses)):
        if action != best:
            gap = losses[action] - least
            probabilities[action] = least / (len(losses) * least + gamma * gap)
    probabilities[best] = 1.0 - sum(probabilities)
    return probabilities


def ada_cb(losses, survivors, gamma):
    """SquareCB's rule inside the survivor set, |S| in place of A, zero outside."""
    inside = square_cb([losses[action] for action in survivors], gamma)
    probabilities = [0.0] * len(losses)
    for action, probability in zip(survivors, inside, strict=True):
        probabilities[action] = probability
    return probabilities
