"""The protocol of the experiments, round by round. [paper, "Experimental protocol"]"""


def draw(probabilities, u):
    """The first action whose cumulative probability exceeds u."""
    total = 0.0
    for action, probability in enumerate(probabilities):
        total += probability
        if u < total:
            return action
    return len(probabilities) - 1


def play(rows, labels, uniforms, n_actions, probabilities, fit):
    """The 0–1 loss of every round and the history of fits.

    ``probabilities(history, b)`` is the policy, uniform while the history is empty;
    ``fit(records, number)`` makes a predictor of the records (b, action, loss) of a batch.
    The batch of round t is the one that starts at the largest power of two up to t; the last
    batch is never fitted.
    """
    horizon = len(rows)
    history, losses, records, number, end = [], [], [], 1, 1
    for t in range(1, horizon + 1):
        b, label, u = rows[t - 1], labels[t - 1], uniforms[t - 1]
        chances = probabilities(history, b) if history else [1 / n_actions] * n_actions
        action = draw(chances, u)
        loss = 0.0 if action == label else 1.0
        losses.append(loss)
        records.append((b, action, loss))
        if t == end and t < horizon:
            history.append(fit(records, number))
            records, number = [], number + 1
            end += 2 ** (number - 1)
    return losses, history
