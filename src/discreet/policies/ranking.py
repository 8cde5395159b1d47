"""A whole order of the offered actions, for display."""

from __future__ import annotations

import numpy as np

from discreet.types import Floats


def sampled_order(probabilities: Floats, first: int, u: Floats) -> Floats:
    """The chosen action first, the others drawn one by one without replacement from u (K,).

    Keys log p − log(−log u) sort as draws in proportion to p do, each from what is left.
    [Gumbel-max: Yellott 1977]

    >>> sampled_order(np.array([0.1, 0.9, 0.0]), 0, np.array([0.5, 0.5, 0.5])).tolist()
    [0, 1, 2]
    """
    with np.errstate(divide="ignore"):
        keys = np.log(probabilities) - np.log(-np.log(u))
    keys[first] = np.inf
    return np.argsort(-keys, kind="stable")
